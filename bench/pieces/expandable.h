// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <tuple>
#include <vector>

#include "driver_costs.h"

// PyTorch's caching allocator with expandable segments, as its versions 2.9 to 2.11 behave: a segment of addresses for
// each stream and each of two classes of size, in which handles of 2 MiB (blocks up to 1 MiB) or 20 MiB are mapped
// where they are needed. Best fit; memory is given back before a request is refused. A block is reused by its own
// stream alone. It computes, and calls nothing.
namespace berth::bench {

class ExpandableSegments {
 public:
  explicit ExpandableSegments(std::size_t limit = SIZE_MAX) : limit_(limit) {}

  // False: out of memory.
  bool allocate(std::uint32_t id, std::size_t bytes, std::uint16_t stream);
  void free(std::uint32_t id);

  std::size_t peak_reserved() const noexcept { return peak_; }
  const DriverCalls& calls() const noexcept { return calls_; }

 private:
  enum class State : std::uint8_t { live, free, unmapped };
  struct Segment;
  struct Piece {  // of a segment, by its first byte
    std::size_t bytes = 0;
    State state = State::unmapped;
  };
  using Pieces = std::map<std::size_t, Piece>;
  struct Segment {
    std::size_t handle = 0;
    Pieces pieces;
    std::set<std::pair<std::size_t, std::size_t>> free;  // bytes, begin
  };
  struct Place {
    Segment* segment = nullptr;
    std::size_t begin = 0;
  };

  Segment& segment_of(bool small, std::uint16_t stream);
  bool take_free(Segment& segment, std::size_t bytes, std::size_t& begin);
  bool take_new(Segment& segment, std::size_t bytes, std::size_t& begin);
  bool map(Segment& segment, Pieces::iterator at, std::size_t bytes, Pieces::iterator& made);
  void give_all_back();
  void give_back(Segment& segment, std::size_t begin);
  static Pieces::iterator become(Segment& segment, Pieces::iterator at, State state);
  static Pieces::iterator split(Segment& segment, Pieces::iterator at, std::size_t bytes);
  static void use(Segment& segment, Pieces::iterator at, std::size_t bytes);

  const std::size_t limit_;
  std::map<std::pair<bool, std::uint16_t>, std::unique_ptr<Segment>> segments_;
  std::map<std::uint32_t, Place> live_;
  std::size_t reserved_ = 0;
  std::size_t peak_ = 0;
  DriverCalls calls_;
};

}  // namespace berth::bench
