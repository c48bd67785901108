// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <memory>
#include <vector>

#include "base/axes.h"
#include "berth/copy/route.h"
#include "berth/device/backend.h"
#include "berth/memory/allocator.h"
#include "copy/span_ref.h"
#include "copy/validate.h"

// Runs the steps of a route for one piece. Used by both executors: the one that runs pieces one after another,
// and the pipeline. One thread at a time per stage.
namespace berth::internal::copy {

// A temporary allocation for the duration of a route.
class Scratch {
 public:
  Scratch(Device device, std::size_t bytes);
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;
  ~Scratch() { allocator_.deallocate(block_); }

  std::byte* data() const noexcept { return static_cast<std::byte*>(block_.data); }

 private:
  Allocator& allocator_;  // a default allocator: never destroyed
  const Block block_;
};

// The buffers that one piece passes through: scratch or staging after each step but the last. Everything it
// refers to must outlive it. A caller that passes a stream must wait for the enqueued work before it destroys
// the stage.
class RouteStage {
 public:
  // Throws OutOfMemory.
  RouteStage(const Route& route, const SpanRef& source, const SpanRef& target, const ValidatedPair& pair);

  // Device steps run in the stream, or synchronously without one; host steps run here, on at most `threads`
  // threads. Throws DeviceError.
  void run_step(std::size_t step, const Loop& piece, StreamRef stream, int threads) const;

 private:
  struct End;

  Device device_of(StepMemory memory) const noexcept;
  End from(std::size_t step, const Loop& piece) const noexcept;
  End to(std::size_t step, const Loop& piece) const noexcept;
  End between(std::size_t step, const Loop& piece) const noexcept;
  Backend& runner(const RouteStep& step) const noexcept;
  void run_on_host(std::span<const std::int64_t> shape, const End& from, const End& to, int threads) const;

  const Route& route_;
  const SpanRef& source_;
  const SpanRef& target_;
  const ValidatedPair& pair_;
  std::vector<std::unique_ptr<Scratch>> scratch_;  // the output of each step but the last
};

// Throws the failure, if there is one.
void require_done(const Status& done, Device device, const char* what);

}  // namespace berth::internal::copy
