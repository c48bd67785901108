// SPDX-License-Identifier: Apache-2.0
#include "expandable.h"

#include <algorithm>

#include "berth/base/checked.h"
#include "berth/base/units.h"

namespace berth::bench {

namespace {

constexpr std::size_t kGrain = 512;
constexpr std::size_t kMostSmall = 1_MiB;
constexpr std::size_t kSmallHandle = 2_MiB;
constexpr std::size_t kLargeHandle = 20_MiB;
constexpr std::size_t kLeastAlone = 10_MiB;  // longer requests count as they are against a limit
constexpr std::size_t kAddresses = std::size_t{1} << 38;

constexpr std::size_t round_up(std::size_t bytes, std::size_t unit) noexcept { return (bytes + unit - 1) / unit * unit; }

}  // namespace

ExpandableSegments::Segment& ExpandableSegments::segment_of(bool small, std::uint16_t stream) {
  std::unique_ptr<Segment>& segment = segments_[{small, stream}];
  if (segment == nullptr) {
    segment = std::make_unique<Segment>();
    segment->handle = small ? kSmallHandle : kLargeHandle;
    segment->pieces.emplace(0, Piece{kAddresses, State::unmapped});
  }
  return *segment;
}

ExpandableSegments::Pieces::iterator ExpandableSegments::split(Segment& segment, Pieces::iterator at, std::size_t bytes) {
  const auto rest = segment.pieces.emplace(at->first + bytes, Piece{at->second.bytes - bytes, at->second.state}).first;
  at->second.bytes = bytes;
  return rest;
}

// Free or unmapped, in one with neighbours that are so too. It is in no list of free ones before.
ExpandableSegments::Pieces::iterator ExpandableSegments::become(Segment& segment, Pieces::iterator at, State state) {
  at->second.state = state;
  if (const auto next = std::next(at); next != segment.pieces.end() && next->second.state == state) {
    segment.free.erase({next->second.bytes, next->first});
    at->second.bytes += next->second.bytes;
    segment.pieces.erase(next);
  }
  if (at != segment.pieces.begin() && std::prev(at)->second.state == state) {
    const auto before = std::prev(at);
    segment.free.erase({before->second.bytes, before->first});
    before->second.bytes += at->second.bytes;
    segment.pieces.erase(at);
    at = before;
  }
  if (state == State::free) segment.free.insert({at->second.bytes, at->first});
  return at;
}

// Makes the front of a free piece live.
void ExpandableSegments::use(Segment& segment, Pieces::iterator at, std::size_t bytes) {
  segment.free.erase({at->second.bytes, at->first});
  if (at->second.bytes > bytes) {
    const auto rest = split(segment, at, bytes);
    segment.free.insert({rest->second.bytes, rest->first});
  }
  at->second.state = State::live;
}

// Best fit, where a piece that could be expanded counts as long as it could become.
bool ExpandableSegments::take_free(Segment& segment, std::size_t bytes, std::size_t& begin) {
  auto found = segment.free.lower_bound({bytes, 0});
  if (found == segment.free.end()) return false;
  const auto could_be = [&](const auto& one) {
    const auto next = std::next(segment.pieces.find(one->second));
    return one->first + (next != segment.pieces.end() && next->second.state == State::unmapped ? next->second.bytes : 0);
  };
  for (auto next = std::next(found); next != segment.free.end() && could_be(next) < could_be(found);) found = next++;
  begin = found->second;
  use(segment, segment.pieces.find(begin), bytes);
  return true;
}

// Maps handles for so many bytes from the front of an unmapped piece; `made` is then free, joined with its
// neighbours.
bool ExpandableSegments::map(Segment& segment, Pieces::iterator at, std::size_t bytes, Pieces::iterator& made) {
  const std::size_t mapped = std::min(round_up(bytes, segment.handle), at->second.bytes);
  if (reserved_ + mapped > limit_) return false;
  for (std::size_t done = 0; done < mapped; done += segment.handle) calls_.make(segment.handle);
  reserved_ += mapped;
  peak_ = std::max(peak_, reserved_);
  if (mapped < at->second.bytes) split(segment, at, mapped);
  made = become(segment, at, State::free);
  return true;
}

bool ExpandableSegments::take_new(Segment& segment, std::size_t bytes, std::size_t& begin) {
  const auto room_from = [&](Pieces::iterator at) {
    std::size_t room = 0;
    for (; at != segment.pieces.end() && at->second.state != State::live && room < bytes; ++at) room += at->second.bytes;
    return room;
  };
  for (auto at = segment.pieces.begin(); at != segment.pieces.end(); ++at) {
    if (at->second.state != State::unmapped) continue;
    auto first = at != segment.pieces.begin() && std::prev(at)->second.state == State::free ? std::prev(at) : at;
    if (room_from(first) < bytes) continue;
    if (first == at && !map(segment, at, std::min(at->second.bytes, bytes), first)) return false;
    while (first->second.bytes < bytes) {
      const auto next = std::next(first);
      if (!map(segment, next, std::min(bytes - first->second.bytes, next->second.bytes), first)) return false;
    }
    begin = first->first;
    use(segment, first, bytes);
    return true;
  }
  return false;
}

// Unmaps the whole handles in a free piece.
void ExpandableSegments::give_back(Segment& segment, std::size_t begin) {
  auto at = segment.pieces.find(begin);
  const std::size_t from = round_up(begin, segment.handle);
  const std::size_t to = align_down(begin + at->second.bytes, segment.handle);
  if (from >= to) return;
  segment.free.erase({at->second.bytes, begin});
  if (from > begin) {
    const auto rest = split(segment, at, from - begin);
    segment.free.insert({at->second.bytes, at->first});
    at = rest;
  }
  if (at->first + at->second.bytes > to) {
    const auto rest = split(segment, at, to - from);
    segment.free.insert({rest->second.bytes, rest->first});
  }
  for (std::size_t done = from; done < to; done += segment.handle) calls_.give_back(segment.handle);
  reserved_ -= to - from;
  become(segment, at, State::unmapped);
}

void ExpandableSegments::give_all_back() {
  for (const auto& [key, segment] : segments_) {
    std::vector<std::size_t> begins;
    for (const auto& [bytes, begin] : segment->free) begins.push_back(begin);
    for (const std::size_t begin : begins) give_back(*segment, begin);
  }
}

bool ExpandableSegments::allocate(std::uint32_t id, std::size_t bytes, std::uint16_t stream) {
  bytes = std::max(round_up(bytes, kGrain), kGrain);
  const bool small = bytes <= kMostSmall;
  const std::size_t counted = small ? kSmallHandle : bytes < kLeastAlone ? kLargeHandle : round_up(bytes, kSmallHandle);
  Segment& segment = segment_of(small, stream);
  std::size_t begin = 0;
  const auto try_new = [&] { return reserved_ + counted <= limit_ && take_new(segment, bytes, begin); };
  if (!take_free(segment, bytes, begin) && !try_new()) {
    give_all_back();
    if (!try_new()) return false;
  }
  live_[id] = {&segment, begin};
  return true;
}

void ExpandableSegments::free(std::uint32_t id) {
  const auto found = live_.find(id);
  const Place place = found->second;
  live_.erase(found);
  become(*place.segment, place.segment->pieces.find(place.begin), State::free);
}

}  // namespace berth::bench
