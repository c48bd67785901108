// SPDX-License-Identifier: Apache-2.0
#include "copy/route/planner.h"

#include <algorithm>
#include <array>
#include <utility>

#include "base/axes.h"
#include "base/pieces.h"
#include "copy/host/walk.h"

namespace berth::internal::copy {

namespace {

enum class Convert : unsigned char { nowhere, at_source, between, at_target };

// Row-major strides of the loop's axes.
base::AxisArray dense_strides(const Loop& loop) noexcept {
  base::AxisArray strides;
  std::int64_t step = 1;
  for (std::size_t axis = loop.rank; axis-- > 0;) {
    strides[axis] = step;
    step *= loop.all[axis].size;
  }
  return strides;
}

// One of the two ends, in the order of the loop.
struct Side {
  const RouteEnd& end;
  StepMemory memory;
  StepMemory scratch;
  base::AxisArray strides;
  bool dense;  // each piece of it is one contiguous run

  bool host() const noexcept { return end.abilities.host_access; }
  bool kernels() const noexcept { return !host() && end.abilities.kernels; }
  bool can_convert() const noexcept { return host() || kernels(); }
};

class Planner {
 public:
  Planner(const RouteEnd& source, const RouteEnd& target, const RouteSettings& settings)
      : settings_(settings),
        loop_(make_loop(source.shape, source.strides, target.strides, order_of(source.abilities, target.abilities))),
        dense_(dense_strides(loop_)),
        source_(side(source, StepMemory::source, StepMemory::source_scratch, &LoopAxis::source_stride)),
        target_(side(target, StepMemory::target, StepMemory::target_scratch, &LoopAxis::target_stride)) {
    for (std::size_t axis = 0; axis < loop_.rank; ++axis) shape_[axis] = loop_.all[axis].size;
    route_.num_elements = source.shape.num_elements();
  }

  Route plan() {
    const bool one_memory = (source_.host() && target_.host()) || source_.end.device == target_.end.device;
    route_.overlap = settings_.overlap && one_memory;
    if (route_.overlap)
      plan_overlap();
    else if (one_memory)
      plan_within();
    else
      plan_between();
    cut_into_pieces();
    return std::move(route_);
  }

 private:
  Side side(const RouteEnd& end, StepMemory memory, StepMemory scratch, std::int64_t LoopAxis::*stride) const noexcept {
    Side made{end, memory, scratch, {}, true};
    for (std::size_t axis = 0; axis < loop_.rank; ++axis) {
      made.strides[axis] = loop_.all[axis].*stride;
      made.dense = made.dense && made.strides[axis] == dense_[axis];
    }
    return made;
  }

  bool converts() const noexcept { return source_.end.dtype != target_.end.dtype; }
  Device staging() const {
    const bool pinned = (!source_.host() && source_.end.abilities.wants_pinned) || (!target_.host() && target_.end.abilities.wants_pinned);
    return pinned ? Device("pinned") : Device();
  }

  const base::AxisArray& strides_at(StepMemory memory) const noexcept {
    return memory == StepMemory::source ? source_.strides : memory == StepMemory::target ? target_.strides : dense_;
  }

  // Appends a step that starts from the memory where the elements are at this point of the route.
  void step(StepKind kind, Device runs_on, StepMemory to, DType dtype) {
    Walk walk = walk_of(std::span(shape_).first(loop_.rank), std::span(strides_at(at_)).first(loop_.rank),
                        std::span(strides_at(to)).first(loop_.rank));
    const bool by_runs = kind == StepKind::transfer || kind == StepKind::peer;
    if (by_runs && walk == Walk::tiles) walk = Walk::strided;
    route_.steps.push_back({kind, runs_on, at_, to, dtype_, dtype, walk});
    if (to == StepMemory::staging) route_.staging = staging();
    at_ = to;
    dtype_ = dtype;
  }

  void host_step(StepMemory to, DType dtype) { step(StepKind::host, Device(), to, dtype); }
  void transfer(const Side& runs_on, StepMemory to) { step(StepKind::transfer, runs_on.end.device, to, dtype_); }
  void kernel(const Side& runs_on, StepMemory to, DType dtype) { step(StepKind::kernel, runs_on.end.device, to, dtype); }

  // Temporaries hold the smaller of the two dtypes.
  DType between_dtype() const noexcept {
    return size_bytes(target_.end.dtype) < size_bytes(source_.end.dtype) ? target_.end.dtype : source_.end.dtype;
  }

  void plan_overlap() {
    const DType kept = between_dtype();
    const bool one_run = loop_.is_whole() && !converts();
    if (source_.host()) {
      if (!one_run) host_step(StepMemory::staging, kept);
      host_step(StepMemory::target, target_.end.dtype);
    } else if (one_run) {
      transfer(source_, StepMemory::source_scratch);
      transfer(source_, StepMemory::target);
    } else if (source_.kernels()) {
      kernel(source_, StepMemory::source_scratch, kept);
      kernel(source_, StepMemory::target, target_.end.dtype);
    } else {
      through_staging();
    }
  }

  void plan_within() {
    if (source_.host())
      host_step(StepMemory::target, target_.end.dtype);
    else if (loop_.is_whole() && !converts())
      transfer(source_, StepMemory::target);
    else if (source_.kernels())
      kernel(source_, StepMemory::target, target_.end.dtype);
    else if (!converts())
      transfer(source_, StepMemory::target);
    else
      through_staging();
  }

  void through_staging() {
    transfer(source_, StepMemory::staging);
    if (converts()) host_step(StepMemory::staging, target_.end.dtype);
    transfer(target_, StepMemory::target);
  }

  // Whether a side needs its own step even without a conversion.
  bool is_busy(const Side& side, const Side& other) const noexcept {
    if (side.host()) return side.end.mapped || !side.dense || (other.end.abilities.wants_pinned && !side.end.abilities.pinned);
    return side.kernels() && !side.dense;
  }

  Convert choose() const noexcept {
    if (!converts()) return Convert::nowhere;
    const auto first = [&](const Side& wanted, const Side& other, Convert if_wanted, Convert if_other) {
      return wanted.can_convert() ? if_wanted : other.can_convert() ? if_other : Convert::between;
    };
    const std::size_t from = size_bytes(source_.end.dtype);
    const std::size_t to = size_bytes(target_.end.dtype);
    // For equal sizes: on the side that has a step anyway, else on a device.
    const bool source_first = from != to                                               ? to < from
                              : is_busy(source_, target_) != is_busy(target_, source_) ? is_busy(source_, target_)
                                                                                       : source_.kernels() || !target_.kernels();
    return source_first ? first(source_, target_, Convert::at_source, Convert::at_target)
                        : first(target_, source_, Convert::at_target, Convert::at_source);
  }

  void plan_between() {
    const Convert convert = choose();
    if (is_busy(source_, target_) || convert == Convert::at_source) {
      const DType dtype = convert == Convert::at_source ? target_.end.dtype : dtype_;
      source_.host() ? host_step(StepMemory::staging, dtype) : kernel(source_, StepMemory::source_scratch, dtype);
    }
    const bool lands_aside = is_busy(target_, source_) || convert == Convert::at_target;
    const StepMemory lands = !lands_aside ? StepMemory::target : target_.host() ? StepMemory::staging : StepMemory::target_scratch;
    if (source_.host() || target_.host())
      transfer(source_.host() ? target_ : source_, lands);
    else
      between_devices(lands, convert);
    if (!lands_aside) return;
    target_.host() ? host_step(StepMemory::target, target_.end.dtype) : kernel(target_, StepMemory::target, target_.end.dtype);
  }

  void between_devices(StepMemory lands, Convert convert) {
    if (convert != Convert::between && (settings_.source_reaches || settings_.target_reaches))
      return step(StepKind::peer, settings_.target_reaches ? target_.end.device : source_.end.device, lands, dtype_);
    transfer(source_, StepMemory::staging);
    if (convert == Convert::between) host_step(StepMemory::staging, target_.end.dtype);
    transfer(target_, lands);
  }

  void cut_into_pieces() {
    const bool at_once = route_.overlap || route_.steps.size() == 1;
    const std::size_t element = std::max(size_bytes(source_.end.dtype), size_bytes(target_.end.dtype));
    const std::size_t most = at_once ? route_.num_elements : std::max<std::size_t>(settings_.piece_bytes / element, 1);
    const Cut made = cut(loop_, most);
    route_.piece_elements = made.elements;
    route_.pieces = made.pieces;
  }

  const RouteSettings& settings_;
  const Loop loop_;
  const base::AxisArray dense_;
  const Side source_;
  const Side target_;
  base::AxisArray shape_;
  Route route_;
  StepMemory at_ = StepMemory::source;
  DType dtype_ = source_.end.dtype;
};

}  // namespace

LoopOrder order_of(const Abilities& source, const Abilities& target) noexcept {
  // How much a side loses when it is walked in another order than its own.
  const auto need = [](const Abilities& side) { return side.host_access ? 1 : side.kernels ? 0 : 2; };
  return need(source) > need(target) ? LoopOrder::source : LoopOrder::target;
}

Route plan_steps(const RouteEnd& source, const RouteEnd& target, const RouteSettings& settings) {
  return Planner(source, target, settings).plan();
}

}  // namespace berth::internal::copy
