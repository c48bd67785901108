// SPDX-License-Identifier: Apache-2.0
#include "copy/route/route_stage.h"

#include <cstring>

#include "berth/device/backend.h"
#include "berth/device/element_copy.h"
#include "berth/memory/default_allocator.h"
#include "copy/host/host_copy.h"
#include "os/memory/bus_guard.h"

namespace berth::internal::copy {

namespace {

Request request(std::size_t bytes) {
  return {.bytes = bytes, .tag = Tag("copy"), .site = Site::here()};  // so that memory reports have a name for
                                                                      // it
}

}  // namespace

Scratch::Scratch(Device device, std::size_t bytes)
    : allocator_(*default_allocator(device)), block_(allocator_.allocate(request(bytes), Site())) {}

void require_done(const Status& done, Device device, const char* what) {
  if (!done) throw_failure(done.failure(), device, what);
}

// One side of one step, for one piece.
struct RouteStage::End {
  std::byte* data = nullptr;
  DType dtype = DType::u8;
  Device device = {};
  base::AxisArray strides;

  std::span<const std::int64_t> strides_of(std::size_t rank) const noexcept { return std::span(strides).first(rank); }
  HostSide host_side(std::size_t rank) const noexcept { return {data, dtype, strides_of(rank)}; }

  static End of(const SpanRef& span, std::int64_t start, const Loop& piece, std::int64_t LoopAxis::*stride) noexcept {
    End end{static_cast<std::byte*>(span.data) + start * static_cast<std::int64_t>(size_bytes(span.dtype)), span.dtype, span.device, {}};
    for (std::size_t axis = 0; axis < piece.rank; ++axis) end.strides[axis] = piece.all[axis].*stride;
    return end;
  }

  // Copies by the device's memory copy: contiguous runs, or single elements where there are no runs.
  static void transfer(Backend& runner, std::span<const std::int64_t> shape, const End& from, const End& to, StreamRef stream) {
    const auto size = static_cast<std::int64_t>(size_bytes(from.dtype));
    const Loop loop = make_loop(shape, from.strides_of(shape.size()), to.strides_of(shape.size()));
    const std::size_t most = loop.is_dense() ? static_cast<std::size_t>(loop.row().size) : 1;
    for_each_chunk(loop, most, [&](std::int64_t source, std::int64_t target, std::size_t count) {
      require_done(
          runner.copy({to.data + target * size, to.device, from.data + source * size, from.device, count * static_cast<std::size_t>(size)},
                      stream),
          runner.device(), "copying");
    });
  }

  static void run_kernel(Backend& runner, std::span<const std::int64_t> shape, const End& from, const End& to, StreamRef stream) {
    const ElementCopy copy{.target = to.data,
                           .target_dtype = to.dtype,
                           .target_strides = Strides(to.strides_of(shape.size())),
                           .source = from.data,
                           .source_dtype = from.dtype,
                           .source_strides = Strides(from.strides_of(shape.size())),
                           .shape = Shape(shape)};
    require_done(runner.copy_elements(copy, stream), runner.device(), "copying elements");
  }
};

RouteStage::RouteStage(const Route& route, const SpanRef& source, const SpanRef& target, const ValidatedPair& pair)
    : route_(route), source_(source), target_(target), pair_(pair) {
  scratch_.reserve(route.steps.size() - 1);
  for (std::size_t i = 0; i + 1 < route.steps.size(); ++i) {
    const std::size_t bytes = route.piece_elements * size_bytes(route.steps[i].to_dtype);
    scratch_.push_back(std::make_unique<Scratch>(device_of(route.steps[i].to), bytes));
  }
}

void RouteStage::run_step(std::size_t number, const Loop& piece, StreamRef stream, int threads) const {
  base::AxisArray sizes;
  for (std::size_t axis = 0; axis < piece.rank; ++axis) sizes[axis] = piece.all[axis].size;
  const std::span<const std::int64_t> shape = std::span(sizes).first(piece.rank);
  const RouteStep& step = route_.steps[number];
  const End reads = from(number, piece);
  const End writes = to(number, piece);
  switch (step.kind) {
    case StepKind::host: return run_on_host(shape, reads, writes, threads);
    case StepKind::transfer:
    case StepKind::peer: return End::transfer(runner(step), shape, reads, writes, stream);
    case StepKind::kernel: return End::run_kernel(runner(step), shape, reads, writes, stream);
  }
}

Device RouteStage::device_of(StepMemory memory) const noexcept {
  switch (memory) {
    case StepMemory::source:
    case StepMemory::source_scratch: return source_.device;
    case StepMemory::target:
    case StepMemory::target_scratch: return target_.device;
    case StepMemory::staging: break;
  }
  return route_.staging;
}

RouteStage::End RouteStage::from(std::size_t step, const Loop& piece) const noexcept {
  if (step > 0) return between(step - 1, piece);
  return End::of(source_, piece.source_start, piece, &LoopAxis::source_stride);
}

RouteStage::End RouteStage::to(std::size_t step, const Loop& piece) const noexcept {
  if (step + 1 < route_.steps.size()) return between(step, piece);
  return End::of(target_, piece.target_start, piece, &LoopAxis::target_stride);
}

// The dense buffer between a step and the next.
RouteStage::End RouteStage::between(std::size_t step, const Loop& piece) const noexcept {
  End end{scratch_[step]->data(), route_.steps[step].to_dtype, device_of(route_.steps[step].to), {}};
  std::int64_t stride = 1;
  for (std::size_t axis = piece.rank; axis-- > 0; stride *= piece.all[axis].size) end.strides[axis] = stride;
  return end;
}

Backend& RouteStage::runner(const RouteStep& step) const noexcept { return step.runs_on == source_.device ? *pair_.source : *pair_.target; }

void RouteStage::run_on_host(std::span<const std::int64_t> shape, const End& from, const End& to, int threads) const {
  if (route_.overlap && route_.steps.size() == 1) {  // one run on both sides, and they overlap
    return os::BusGuard::touch([&] { std::memmove(to.data, from.data, route_.num_elements * size_bytes(to.dtype)); });
  }
  copy_on_host(shape, from.host_side(shape.size()), to.host_side(shape.size()), threads);
}

}  // namespace berth::internal::copy
