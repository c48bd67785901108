// SPDX-License-Identifier: Apache-2.0
#include "copy/execute.h"

#include <cstring>
#include <vector>

#include "base/pieces.h"
#include "berth/copy/threads.h"
#include "berth/device/element_copy.h"
#include "berth/device/registry.h"
#include "berth/memory/default_allocator.h"
#include "copy/host_copy.h"
#include "copy/planner.h"

namespace berth {

namespace {

// Host copies up to here take no time to decide how.
constexpr std::size_t kInline = std::size_t{4} << 10;

// Memory for as long as a route runs.
class Scratch {
 public:
  Scratch(Device device, std::size_t bytes) : allocator_(*default_allocator(device)), block_(allocator_.allocate(request(bytes))) {}
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;
  ~Scratch() { allocator_.deallocate(block_); }

  std::byte* data() const noexcept { return static_cast<std::byte*>(block_.data); }

 private:
  static Request request(std::size_t bytes) {
    return {.bytes = bytes, .tag = Tag("copy"), .site = Site::here()};  // a report of who holds memory has a name for it
  }

  Allocator& allocator_;  // a default one: never destroyed
  const Block block_;
};

using AxisList = std::array<std::int64_t, kMaxRank>;

// One side of one step, for one piece.
struct StepEnd {
  std::byte* data = nullptr;
  DType dtype = DType::u8;
  Device device = {};
  AxisList strides;

  HostSide host_side(std::size_t rank) const noexcept { return {data, dtype, std::span(strides).first(rank)}; }
};

void require(const Status& done, Device device, const char* what) {
  if (!done) throw_failure(done.failure(), device, what);
}

// A device's own copy of what lies together, and of single elements where nothing does.
void transfer(Backend& runner, std::span<const std::int64_t> shape, const StepEnd& from, const StepEnd& to) {
  const auto size = static_cast<std::int64_t>(size_bytes(from.dtype));
  const Loop loop = make_loop(shape, std::span(from.strides).first(shape.size()), std::span(to.strides).first(shape.size()));
  const std::size_t most = loop.is_dense() ? static_cast<std::size_t>(loop.row().size) : 1;
  for_each_chunk(loop, most, [&](std::int64_t source, std::int64_t target, std::size_t count) {
    require(runner.copy(
                {to.data + target * size, to.device, from.data + source * size, from.device, count * static_cast<std::size_t>(size)}, {}),
            runner.device(), "copying");
  });
}

void run_kernel(Backend& runner, std::span<const std::int64_t> shape, const StepEnd& from, const StepEnd& to) {
  const ElementCopy copy{.target = to.data,
                         .target_dtype = to.dtype,
                         .target_strides = Strides(std::span(to.strides).first(shape.size())),
                         .source = from.data,
                         .source_dtype = from.dtype,
                         .source_strides = Strides(std::span(from.strides).first(shape.size())),
                         .shape = Shape(shape)};
  require(runner.copy_elements(copy, {}), runner.device(), "copying elements");
}

class Execution {
 public:
  Execution(const Route& route, const SpanRef& source, const SpanRef& target, const CheckedPair& pair)
      : route_(route), source_(source), target_(target), pair_(pair) {
    scratch_.reserve(route.steps.size() - 1);
    for (std::size_t i = 0; i + 1 < route.steps.size(); ++i) {
      const std::size_t bytes = route.piece_elements * size_bytes(route.steps[i].to_dtype);
      scratch_.push_back(std::make_unique<Scratch>(device_of(route.steps[i].to), bytes));
    }
  }

  void run(const Loop& piece) const {
    AxisList shape;
    for (std::size_t axis = 0; axis < piece.rank; ++axis) shape[axis] = piece.all[axis].size;
    for (std::size_t i = 0; i < route_.steps.size(); ++i)
      run_step(route_.steps[i], std::span(shape).first(piece.rank), from(i, piece), to(i, piece));
  }

 private:
  Device device_of(StepPlace place) const noexcept {
    switch (place) {
      case StepPlace::source:
      case StepPlace::source_scratch: return source_.device;
      case StepPlace::target:
      case StepPlace::target_scratch: return target_.device;
      case StepPlace::staging: break;
    }
    return route_.staging;
  }

  StepEnd from(std::size_t step, const Loop& piece) const noexcept {
    if (step > 0) return between(step - 1, piece);
    return side(source_, piece.source_start, piece, &LoopAxis::source_stride);
  }
  StepEnd to(std::size_t step, const Loop& piece) const noexcept {
    if (step + 1 < route_.steps.size()) return between(step, piece);
    return side(target_, piece.target_start, piece, &LoopAxis::target_stride);
  }

  static StepEnd side(const SpanRef& span, std::int64_t start, const Loop& piece, std::int64_t LoopAxis::*stride) noexcept {
    StepEnd end{
        static_cast<std::byte*>(span.data) + start * static_cast<std::int64_t>(size_bytes(span.dtype)), span.dtype, span.device, {}};
    for (std::size_t axis = 0; axis < piece.rank; ++axis) end.strides[axis] = piece.all[axis].*stride;
    return end;
  }

  // What a step leaves to the next: dense.
  StepEnd between(std::size_t step, const Loop& piece) const noexcept {
    StepEnd end{scratch_[step]->data(), route_.steps[step].to_dtype, device_of(route_.steps[step].to), {}};
    std::int64_t stride = 1;
    for (std::size_t axis = piece.rank; axis-- > 0; stride *= piece.all[axis].size) end.strides[axis] = stride;
    return end;
  }

  void run_step(const RouteStep& step, std::span<const std::int64_t> shape, const StepEnd& from, const StepEnd& to) const {
    switch (step.kind) {
      case StepKind::host: return run_on_host(shape, from, to);
      case StepKind::transfer:
      case StepKind::peer: return transfer(runner(step), shape, from, to);
      case StepKind::kernel: return run_kernel(runner(step), shape, from, to);
    }
  }

  Backend& runner(const RouteStep& step) const noexcept { return step.runs_on == source_.device ? *pair_.source : *pair_.target; }

  void run_on_host(std::span<const std::int64_t> shape, const StepEnd& from, const StepEnd& to) const {
    if (route_.overlap && route_.steps.size() == 1) {  // one run on both sides, which meet
      std::memmove(to.data, from.data, route_.num_elements * size_bytes(to.dtype));
      return;
    }
    copy_on_host(shape, from.host_side(shape.size()), to.host_side(shape.size()), copy_threads());
  }

  const Route& route_;
  const SpanRef& source_;
  const SpanRef& target_;
  const CheckedPair& pair_;
  std::vector<std::unique_ptr<Scratch>> scratch_;  // one for each step but the last, which it leaves its piece in
};

// Where a device has kernels, elements with gaps between them are filled by one, from a single element that it repeats.
void fill_by_kernel(const SpanRef& target, Backend& backend, std::span<const std::byte> element) {
  const Scratch one(target.device, element.size());
  require(backend.fill(one.data(), element.size(), element, {}), target.device, "filling");
  const ElementCopy copy{.target = target.data,
                         .target_dtype = target.dtype,
                         .target_strides = *target.strides,
                         .source = one.data(),
                         .source_dtype = target.dtype,
                         .source_strides = Strides(target.shape->rank(), 0),
                         .shape = *target.shape};
  require(backend.copy_elements(copy, {}), target.device, "filling");
}

}  // namespace

void run_route(const Route& route, const SpanRef& source, const SpanRef& target, const CheckedPair& pair) {
  if (route.steps.empty()) return;
  const LoopOrder order = order_of(pair.source->properties().abilities, pair.target->properties().abilities);
  const Loop loop = make_loop(*source.shape, *source.strides, *target.strides, order);
  const Execution execution(route, source, target, pair);
  for_each_piece(loop, cut(loop, route.piece_elements), [&](const Loop& piece) { execution.run(piece); });
}

void run_pair(const SpanRef& source, const SpanRef& target, const CheckedPair& pair) {
  if (pair.kind == PairKind::nothing) return;
  if (pair.run_bytes != 0 && pair.run_bytes <= kInline) {
    std::memmove(target.data, source.data, pair.run_bytes);
    return;
  }
  if (pair.kind != PairKind::host) return run_route(plan_checked(source, target, pair), source, target, pair);
  copy_on_host(target.shape->span(), {static_cast<std::byte*>(source.data), source.dtype, source.strides->span()},
               {static_cast<std::byte*>(target.data), target.dtype, target.strides->span()}, copy_threads());
}

void run_fill(const SpanRef& target, Backend& backend, const std::array<std::byte, 16>& element) {
  const std::size_t size = size_bytes(target.dtype);
  if (target.shape->num_elements() == 0) return;
  if (backend.properties().abilities.host_access) {
    // Two threads must not write one element, be it the same value.
    const bool apart = is_contiguous(*target.shape, *target.strides) || !overlaps_itself(*target.shape, *target.strides);
    return fill_on_host(target.shape->span(), {static_cast<std::byte*>(target.data), target.dtype, target.strides->span()}, element.data(),
                        apart ? copy_threads() : 1);
  }
  const Loop loop = make_loop(*target.shape, *target.strides, *target.strides);
  if (!loop.is_whole() && backend.properties().abilities.kernels) return fill_by_kernel(target, backend, std::span(element).first(size));
  const std::size_t most = loop.is_dense() ? static_cast<std::size_t>(loop.row().size) : 1;
  for_each_chunk(loop, most, [&](std::int64_t, std::int64_t at, std::size_t count) {
    require(backend.fill(static_cast<std::byte*>(target.data) + at * static_cast<std::int64_t>(size), count * size,
                         std::span(element).first(size), {}),
            target.device, "filling");
  });
}

}  // namespace berth
