// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <memory>
#include <vector>

#include "base/axes.h"
#include "berth/copy/route.h"
#include "berth/memory/allocator.h"
#include "copy/span_ref.h"
#include "copy/validate.h"

// The steps of a route, one at a time, for one piece: what those who run routes have in common, be it piece after piece or several at once.
namespace berth::internal::copy {

// Memory for as long as a route runs.
class Scratch {
 public:
  Scratch(Device device, std::size_t bytes);
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;
  ~Scratch() { allocator_.deallocate(block_); }

  std::byte* data() const noexcept { return static_cast<std::byte*>(block_.data); }

 private:
  Allocator& allocator_;  // a default one: never destroyed
  const Block block_;
};

// Room for one piece on its way: scratch or staging behind each step but the last. Everything it refers to must outlive it, and so must what
// it has put into a stream outlive the memory: whoever passes a stream waits for it first.
class RouteSlot {
 public:
  // Throws OutOfMemory.
  RouteSlot(const Route& route, const SpanRef& source, const SpanRef& target, const CheckedPair& pair);

  // Device steps run in the stream, and are done on return without one; host steps run here, on at most so many threads.
  // Throws DeviceError.
  void run_step(std::size_t step, const Loop& piece, StreamRef stream, int threads) const;

 private:
  struct End;

  Device device_of(StepPlace place) const noexcept;
  End from(std::size_t step, const Loop& piece) const noexcept;
  End to(std::size_t step, const Loop& piece) const noexcept;
  End between(std::size_t step, const Loop& piece) const noexcept;
  Backend& runner(const RouteStep& step) const noexcept;
  void run_on_host(std::span<const std::int64_t> shape, const End& from, const End& to, int threads) const;

  const Route& route_;
  const SpanRef& source_;
  const SpanRef& target_;
  const CheckedPair& pair_;
  std::vector<std::unique_ptr<Scratch>> scratch_;  // one for each step but the last, which it leaves its piece in
};

// Throws unless it is done.
void require_done(const Status& done, Device device, const char* what);

}  // namespace berth::internal::copy
