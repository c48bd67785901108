// SPDX-License-Identifier: Apache-2.0
#include "copy/route/execute.h"

#include <cstring>

#include "base/pieces.h"
#include "berth/copy/threads.h"
#include "berth/device/backend.h"
#include "berth/device/element_copy.h"
#include "copy/host/host_copy.h"
#include "copy/mapped_bytes.h"
#include "copy/route/planner.h"
#include "copy/route/route_stage.h"
#include "copy/route/staged.h"
#include "os/memory/bus_guard.h"

namespace berth::internal::copy {

namespace {

// Host copies up to this size are a plain memmove, without planning.
constexpr std::size_t kInline = std::size_t{4} << 10;

// A device with kernels fills strided elements by a kernel copy from a single element, with strides of 0.
void fill_by_kernel(const SpanRef& target, Backend& backend, std::span<const std::byte> element) {
  const Scratch one(target.device, element.size());
  require_done(backend.fill(one.data(), element.size(), element, {}), target.device, "filling");
  const ElementCopy copy{.target = target.data,
                         .target_dtype = target.dtype,
                         .target_strides = *target.strides,
                         .source = one.data(),
                         .source_dtype = target.dtype,
                         .source_strides = Strides(target.shape->rank(), 0),
                         .shape = *target.shape};
  require_done(backend.copy_elements(copy, {}), target.device, "filling");
}

}  // namespace

void run_route(const Route& route, const SpanRef& source, const SpanRef& target, const ValidatedPair& pair) {
  if (route.steps.empty()) return;
  const LoopOrder order = order_of(pair.source->properties().abilities, pair.target->properties().abilities);
  const Loop loop = make_loop(*source.shape, *source.strides, *target.strides, order);
  const Cut by = cut(loop, route.piece_elements);
  if (is_pipelined(route, pair)) return run_staged(route, source, target, pair, loop, by);
  const RouteStage stage(route, source, target, pair);
  const int threads = copy_threads();
  for_each_piece(loop, by, [&](const Loop& piece) {
    for (std::size_t step = 0; step < route.steps.size(); ++step) stage.run_step(step, piece, {}, threads);
  });
}

namespace {

void run_copy(const SpanRef& source, const SpanRef& target, const ValidatedPair& pair) {
  if (pair.on_host && pair.run_bytes != 0 && pair.run_bytes <= kInline)
    return os::BusGuard::touch([&] { std::memmove(target.data, source.data, pair.run_bytes); });
  if (pair.kind != PairKind::host) return run_route(plan_checked(source, target, pair), source, target, pair);
  copy_on_host(target.shape->span(), {static_cast<std::byte*>(source.data), source.dtype, source.strides->span()},
               {static_cast<std::byte*>(target.data), target.dtype, target.strides->span()}, copy_threads());
}

void fill_span(const SpanRef& target, Backend& backend, const std::array<std::byte, 16>& element) {
  const std::size_t size = size_bytes(target.dtype);
  if (backend.properties().abilities.host_access) {
    // Two threads must not write the same element, even with the same value: that is a data race.
    const bool apart = is_contiguous(*target.shape, *target.strides) || !overlaps_itself(*target.shape, *target.strides);
    return fill_on_host(target.shape->span(), {static_cast<std::byte*>(target.data), target.dtype, target.strides->span()}, element.data(),
                        apart ? copy_threads() : 1);
  }
  const Loop loop = make_loop(*target.shape, *target.strides, *target.strides);
  if (!loop.is_whole() && backend.properties().abilities.kernels) return fill_by_kernel(target, backend, std::span(element).first(size));
  const std::size_t most = loop.is_dense() ? static_cast<std::size_t>(loop.row().size) : 1;
  for_each_chunk(loop, most, [&](std::int64_t, std::int64_t at, std::size_t count) {
    require_done(backend.fill(static_cast<std::byte*>(target.data) + at * static_cast<std::int64_t>(size), count * size,
                              std::span(element).first(size), {}),
                 target.device, "filling");
  });
}

}  // namespace

void run_pair(const SpanRef& source, const SpanRef& target, const ValidatedPair& pair) {
  if (pair.kind == PairKind::nothing) return;
  MappedTouches mapped;
  if (pair.source_mapped) mapped.add(source);
  if (pair.target_mapped) mapped.add(target);
  mapped.run([&] { run_copy(source, target, pair); });
}

void run_fill(const SpanRef& target, Backend& backend, const std::array<std::byte, 16>& element) {
  if (target.shape->num_elements() == 0) return;
  MappedTouches mapped;
  mapped.add(target);
  mapped.run([&] { fill_span(target, backend, element); });
}

}  // namespace berth::internal::copy
