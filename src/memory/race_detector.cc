// SPDX-License-Identifier: Apache-2.0
#include "memory/race_detector.h"

#include <algorithm>
#include <cstdlib>
#include <map>
#include <memory>
#include <new>
#include <tuple>
#include <vector>

#include "berth/record/misuse.h"
#include "device/stream_clock.h"
#include "device/stream_work.h"
#include "os/lock/mutex.h"
#include "os/system.h"
#include "record/check_words.h"
#include "record/emit.h"

namespace berth::internal::memory {

namespace {

constexpr std::size_t kMostTouches = 64;  // kept for each block: the last ones

struct Touch {
  std::uintptr_t begin;
  std::uintptr_t end;
  std::shared_ptr<const device::StreamProgress> progress;  // of its stream
  std::uint64_t point;                                     // the first event of the stream that can be after it
  bool writes;

  std::uint64_t stream_id() const noexcept { return progress->stream_id(); }
};

struct Watched {
  Block block;
  std::weak_ptr<StreamState> stream;  // of the request; empty: none, or destroyed
  std::vector<std::uint64_t> used_on;
  std::vector<Touch> touches;
};

// Different devices may use the same addresses.
struct Position {
  std::uint16_t kind;
  std::uint16_t index;
  std::uintptr_t address;
  auto operator<=>(const Position&) const = default;
};
Position position_of(Device device, const void* address) noexcept {
  return {device.key().kind, device.key().index, reinterpret_cast<std::uintptr_t>(address)};
}

using Blocks = std::map<Position, Watched>;

struct Checker {
  os::Mutex mutex;
  Blocks blocks BERTH_GUARDED_BY(mutex);
};

Checker& checker() {
  static auto* const made = new Checker;  // never destroyed: blocks are also freed after main
  return *made;
}

// Whether a touch is over, or happens before what the caller does next: on the stream with that clock (null:
// nothing is known), or on this thread.
bool is_before(const Touch& touch, const device::StreamClock* clock) noexcept {
  if (touch.progress->done() >= touch.point) return true;
  if (clock != nullptr && clock->point_of(touch.stream_id()) >= touch.point) return true;
  for (const device::RunningWork* work = device::t_running_work; work != nullptr; work = work->outer()) {
    if (work->stream_id() == touch.stream_id() && work->point() >= touch.point) return true;
  }
  return false;
}

Misuse misuse_of(const Block& block, std::uint64_t stream_id, std::uint64_t other) noexcept {
  return {.kind = MisuseKind::unordered_streams,
          .allocator = "race detection",
          .device = block.device.key(),
          .address = block.data,
          .bytes = block.bytes,
          .tag = block.tag,
          .stream_id = stream_id,
          .other_stream_id = other};
}

// The block that contains an address.
Blocks::iterator find_covering(Blocks& blocks, const Position& position) noexcept {
  auto next = blocks.upper_bound(position);
  if (next == blocks.begin()) return blocks.end();
  --next;
  const bool inside = next->first.kind == position.kind && next->first.index == position.index &&
                      position.address - next->first.address < next->second.block.bytes;
  return inside ? next : blocks.end();
}

[[gnu::constructor]] void start_at_load() noexcept {
  const char* const check = os::environment_text("BERTH_CHECK");
  if (check != nullptr && record::has_word(check, "streams")) set_race_detection(RaceDetection::on);
}

}  // namespace

void race_detector::allocated(const Block& block, StreamRef stream) noexcept {
  try {
    Watched watched{.block = block, .stream = {}, .used_on = {}, .touches = {}};
    if (stream) watched.stream = stream->weak_from_this();
    const os::Lock lock(checker().mutex);
    checker().blocks.insert_or_assign(position_of(block.device, block.data), std::move(watched));
  } catch (const std::bad_alloc&) {  // the block is not watched
  }
}

void race_detector::used_on(const Block& block, StreamRef stream) noexcept {
  const os::Lock lock(checker().mutex);
  const auto found = checker().blocks.find(position_of(block.device, block.data));
  if (found == checker().blocks.end()) return;
  try {
    found->second.used_on.push_back(stream.id());
  } catch (const std::bad_alloc&) {
    checker().blocks.erase(found);  // rather unwatched than a false report
  }
}

void race_detector::grown(const Block& block) noexcept {
  const os::Lock lock(checker().mutex);
  const auto found = checker().blocks.find(position_of(block.device, block.data));
  if (found != checker().blocks.end()) found->second.block = block;
}

void race_detector::touched(const void* begin, std::size_t bytes, Device device, StreamRef stream, bool writes) noexcept {
  const std::shared_ptr<const device::StreamClock> clock = stream ? stream->clock() : nullptr;
  std::vector<Misuse> found;
  try {
    const auto from = reinterpret_cast<std::uintptr_t>(begin);
    const os::Lock lock(checker().mutex);
    const auto block = find_covering(checker().blocks, position_of(device, begin));
    if (block == checker().blocks.end()) return;
    std::vector<Touch>& touches = block->second.touches;
    std::erase_if(touches, [&](const Touch& touch) {
      if (touch.progress->done() >= touch.point) return true;
      const bool same = touch.stream_id() == stream.id();
      // What orders the new touch orders this one.
      if (same) return writes && from <= touch.begin && touch.end <= from + bytes;
      const bool meets = touch.begin < from + bytes && from < touch.end && (touch.writes || writes);
      if (!meets || is_before(touch, clock.get())) return false;
      found.push_back(misuse_of(block->second.block, stream.id(), touch.stream_id()));
      return true;  // reported once
    });
    if (stream) {
      if (touches.size() >= kMostTouches) touches.erase(touches.begin());
      touches.push_back({from, from + bytes, stream->progress(), next_point(), writes});
    }
  } catch (const std::bad_alloc&) {  // less is known, so less is found
  }
  for (const Misuse& misuse : found) report_misuse(misuse);
}

void race_detector::freed(const Block& block) noexcept {
  Blocks::node_type node;
  {
    const os::Lock lock(checker().mutex);
    const auto found = checker().blocks.find(position_of(block.device, block.data));
    if (found == checker().blocks.end()) return;
    const Block& known = found->second.block;
    const bool same = known.allocator_id == block.allocator_id && (block.serial == 0 || known.serial == block.serial);
    if (!same || known.bytes != block.bytes) return;  // not this block: its free will be refused
    node = checker().blocks.extract(found);
  }
  const Watched& watched = node.mapped();
  const std::shared_ptr<StreamState> stream = watched.stream.lock();
  const std::shared_ptr<const device::StreamClock> clock = stream == nullptr ? nullptr : stream->clock();
  for (const Touch& touch : watched.touches) {
    const bool own = touch.stream_id() == watched.block.stream_id;
    const bool said = std::ranges::find(watched.used_on, touch.stream_id()) != watched.used_on.end();
    if (!own && !said && !is_before(touch, clock.get()))
      report_misuse(misuse_of(watched.block, watched.block.stream_id, touch.stream_id()));
  }
}

}  // namespace berth::internal::memory

namespace berth {

using namespace internal;
using namespace internal::memory;

// While it is on, requests and frees take the path of those that are recorded.
void set_race_detection(RaceDetection wanted) noexcept {
  const bool on = wanted == RaceDetection::on;
  if (g_detects_races.exchange(on, std::memory_order_relaxed) == on) return;
  record::g_watchers.add(on ? static_cast<int>(record::kSlowWatcher) : -static_cast<int>(record::kSlowWatcher));
  if (on) return;
  Blocks gone;
  const os::Lock lock(checker().mutex);
  gone.swap(checker().blocks);
}

RaceDetection race_detection() noexcept { return is_detecting_races() ? RaceDetection::on : RaceDetection::off; }

}  // namespace berth
