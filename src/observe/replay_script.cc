// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <limits>
#include <memory_resource>
#include <unordered_map>

#include "base/allowance.h"
#include "base/text.h"
#include "berth/base/checked.h"
#include "berth/observe/replay.h"
#include "observe/block_name.h"

namespace berth {

using namespace internal;
using namespace internal::observe;

namespace {

class ScriptPlanner {
 public:
  ScriptPlanner(std::size_t events, std::size_t scale) : scale_(scale) {
    base::take(kTablePieceBytes);
    base::reserve(script_.steps, events);
  }

  void add(const TraceEvent& event) {
    if (event.operation == TraceEvent::Operation::allocate)
      add_allocation(event);
    else
      add_free(event);
  }

  ReplayScript take() { return std::move(script_); }

 private:
  struct Live {
    std::uint32_t block;
    std::size_t bytes;
  };

  void add_allocation(const TraceEvent& event) {
    const std::size_t bytes = event.bytes == 0 ? 0 : std::max<std::size_t>(1, event.bytes / scale_);
    const Live block{take_index(), bytes};
    if (!base::emplace(live_, BlockName{event.allocator_id, event.serial}, block).second)
      refuse("a block is allocated that is already live");
    const auto sum = try_add(live_bytes_, bytes);
    if (!sum || *sum > kMaxBytes) refuse("its live blocks have more bytes than an address space");
    live_bytes_ = *sum;
    script_.peak_live_bytes = std::max(script_.peak_live_bytes, live_bytes_);
    script_.steps.push_back({.bytes = bytes, .block = block.block, .stream = stream_number(event.stream_id), .allocates = true});
  }

  void add_free(const TraceEvent& event) {
    const auto found = live_.find(BlockName{event.allocator_id, event.serial});
    if (found == live_.end()) refuse("a block is freed that is not live");
    const Live block = found->second;
    base::erase(live_, found);
    live_bytes_ -= block.bytes;
    base::append(free_indices_, block.block);
    script_.steps.push_back({.bytes = block.bytes, .block = block.block});
  }

  // LIFO reuse: the cache line of the last freed index is still hot.
  std::uint32_t take_index() {
    if (free_indices_.empty()) {
      if (script_.blocks == std::numeric_limits<std::uint32_t>::max()) refuse("it has more live blocks than 32 bits count");
      return script_.blocks++;
    }
    const std::uint32_t block = free_indices_.back();
    free_indices_.pop_back();
    return block;
  }

  std::uint16_t stream_number(std::uint64_t id) {
    if (id == 0) return 0;
    const auto [found, fresh] = base::emplace(streams_, id, script_.streams + 1);
    if (fresh && ++script_.streams == std::numeric_limits<std::uint16_t>::max()) refuse("it has more streams than 16 bits count");
    return static_cast<std::uint16_t>(found->second);
  }

  [[noreturn]] void refuse(const char* why) const {
    throw FormatError(ErrorCode::format_error,
                      {text::join("planning the replay of event ", script_.steps.size() + 1), why, "record the trace again"},
                      {{"event", script_.steps.size() + 1}});
  }

  const std::size_t scale_;
  ReplayScript script_;
  std::size_t live_bytes_ = 0;  // sum over live_, <= script_.peak_live_bytes
  // In pieces that go back to the system at the end: malloc would keep what lies between others, beside what the replay takes.
  std::pmr::unsynchronized_pool_resource pieces_{kTablePieces};
  std::pmr::unordered_map<BlockName, Live, BlockNameHash> live_{&pieces_};
  std::unordered_map<std::uint64_t, int> streams_;
  std::vector<std::uint32_t> free_indices_;  // live_.size() + free_indices_.size() == script_.blocks
};

}  // namespace

ReplayScript plan_replay(const std::vector<TraceEvent>& events, std::size_t scale) {
  if (scale == 0)
    throw ArgumentError(ErrorCode::invalid_argument, {"a replay with sizes divided by 0", "sizes cannot be divided by 0", "use 1 or more"});
  ScriptPlanner planner(events.size(), scale);
  for (const TraceEvent& event : events) {
    base::checkpoint();
    planner.add(event);
  }
  return planner.take();
}

}  // namespace berth
