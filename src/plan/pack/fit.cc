// SPDX-License-Identifier: Apache-2.0
#include "plan/pack/fit.h"

#include <algorithm>

namespace berth::planning {

namespace {

// A buffer that has been placed, in [offset, top) and [begin, end).
struct Placed {
  std::size_t offset;
  std::size_t top;
  std::uint32_t begin;
  std::uint32_t end;
};

bool live_together(const Placed& placed, const PackBuffer& buffer) { return placed.begin < buffer.end && buffer.begin < placed.end; }

// Neighbours in a list, with what they have in common, so that a walk can mostly pass them at once.
struct Chunk {
  static constexpr std::size_t kMost = 64;

  std::vector<Placed> placed = {};         // by offset; never empty in a list
  std::uint32_t first_begin = UINT32_MAX;  // some live only from there on
  std::uint32_t last_end = 0;              // … and until there
  std::uint32_t last_begin = 0;            // all are alive from there on
  std::uint32_t first_end = UINT32_MAX;    // … until there
  std::size_t top = 0;
  std::size_t widest_gap = 0;  // between them when all are alive

  void insert(const Placed& one) {
    const auto at =
        std::upper_bound(placed.begin(), placed.end(), one, [](const Placed& a, const Placed& b) { return a.offset < b.offset; });
    if (at == placed.end()) {  // by far the most: what is placed comes to lie on the rest
      add_to_measure(one);
      placed.push_back(one);
    } else {
      placed.insert(at, one);
      measure();
    }
  }

  void measure() {
    first_begin = first_end = UINT32_MAX;
    last_begin = last_end = 0;
    top = widest_gap = 0;
    for (const Placed& one : placed) add_to_measure(one);
  }

  bool none_live_with(const PackBuffer& buffer) const { return last_end <= buffer.begin || buffer.end <= first_begin; }
  bool all_live_with(const PackBuffer& buffer) const { return last_begin < buffer.end && buffer.begin < first_end; }

 private:
  void add_to_measure(const Placed& one) {
    first_begin = std::min(first_begin, one.begin);
    last_begin = std::max(last_begin, one.begin);
    first_end = std::min(first_end, one.end);
    last_end = std::max(last_end, one.end);
    if (top != 0 && one.offset > top) widest_gap = std::max(widest_gap, one.offset - top);
    top = std::max(top, one.top);
  }
};

// Placed buffers by offset.
class List {
 public:
  void insert(const Placed& one) {
    const auto after = std::upper_bound(chunks_.begin(), chunks_.end(), one.offset,
                                        [](std::size_t offset, const Chunk& chunk) { return offset < chunk.placed.front().offset; });
    auto at = after == chunks_.begin() ? after : after - 1;
    if (at == chunks_.end()) at = chunks_.insert(at, Chunk());
    at->insert(one);
    if (at->placed.size() > Chunk::kMost) split(at);
  }

  // Calls see(offset, gap) for the gaps that are large enough, from below, until it answers true; the last is endless. Answers how much it
  // had to look at.
  template <class See>
  std::size_t walk(const PackBuffer& buffer, See see) const {
    std::size_t looks = 0;
    std::size_t offset = 0;  // nothing up to here is free
    for (const Chunk& chunk : chunks_) {
      ++looks;
      if (chunk.none_live_with(buffer)) continue;
      if (chunk.widest_gap < buffer.bytes && chunk.all_live_with(buffer)) {
        const std::size_t from = chunk.placed.front().offset;
        if (from >= offset && from - offset >= buffer.bytes && see(offset, from - offset)) return looks;
        if (chunk.top > offset) offset = align_offset(chunk.top, buffer.alignment);
        continue;
      }
      looks += chunk.placed.size();
      for (const Placed& placed : chunk.placed) {
        if (!live_together(placed, buffer)) continue;
        if (placed.offset >= offset && placed.offset - offset >= buffer.bytes && see(offset, placed.offset - offset)) return looks;
        if (placed.top > offset) offset = align_offset(placed.top, buffer.alignment);
      }
    }
    see(offset, SIZE_MAX);
    return looks;
  }

 private:
  void split(std::vector<Chunk>::iterator at) {
    constexpr std::ptrdiff_t kHalf = Chunk::kMost / 2;
    Chunk upper;
    upper.placed.assign(at->placed.begin() + kHalf, at->placed.end());
    at->placed.erase(at->placed.begin() + kHalf, at->placed.end());
    upper.measure();
    at->measure();
    chunks_.insert(at + 1, std::move(upper));
  }

  std::vector<Chunk> chunks_;
};

// Placed buffers by time: the timeline is cut into blocks at several scales, each scale twice, the second time shifted by half a block, so
// that a life of at most half a block lies in one. A block lists all that reach into it. Looking around a buffer is then one walk through
// the list of the smallest block that holds its life; most of what it meets there lives with it.
//
//     scale 0   |---------------------------------------|
//     scale 1   |------------|------------|-------------|
//     shifted   |-----|------------|------------|-------|
class Timeline {
 public:
  Timeline(std::uint32_t steps, std::size_t buffers) {
    scales_.push_back({steps, 0, std::vector<List>(1)});
    // Finer blocks pay as long as each begins a good number of buffers.
    for (std::uint32_t blocks = 4; blocks <= kMostBlocks && blocks * 16 <= buffers && steps / blocks >= 4; blocks *= 4) {
      const std::uint32_t width = steps / blocks + 1;
      for (const std::uint32_t shift : {0U, width / 2}) scales_.push_back({width, shift, std::vector<List>(blocks + 2)});
    }
  }

  const List& around(const PackBuffer& buffer) const {
    for (std::size_t i = scales_.size(); i-- > 1;) {
      const Scale& scale = scales_[i];
      if (scale.block(buffer.begin) == scale.block(buffer.end - 1)) return scale.lists[scale.block(buffer.begin)];
    }
    return scales_[0].lists[0];
  }

  void add(const Placed& one) {
    for (Scale& scale : scales_)
      for (std::size_t block = scale.block(one.begin); block <= scale.block(one.end - 1); ++block) scale.lists[block].insert(one);
  }

 private:
  static constexpr std::uint32_t kMostBlocks = 64;

  struct Scale {
    std::uint32_t width;
    std::uint32_t shift;
    std::vector<List> lists;

    std::size_t block(std::uint32_t step) const noexcept { return (step + shift) / width; }
  };

  std::vector<Scale> scales_;
};

// Where a buffer goes, and what it took to find out.
struct Found {
  std::size_t offset = 0;
  std::size_t looks = 0;
};

Found first_gap(const List& around, const PackBuffer& buffer) {
  Found found;
  found.looks = around.walk(buffer, [&](std::size_t offset, std::size_t) {
    found.offset = offset;
    return true;
  });
  return found;
}

Found best_gap(const List& around, const PackBuffer& buffer) {
  Found found;
  std::size_t least = 0;  // of the gap that was found
  found.looks = around.walk(buffer, [&](std::size_t offset, std::size_t gap) {
    if (least == 0 || gap < least) {
      least = gap;
      found.offset = offset;
    }
    return gap == buffer.bytes;
  });
  return found;
}

Found choose(const List& around, const PackBuffer& buffer, Fit fit) {
  if (buffer.fixed) return {*buffer.fixed};
  return fit == Fit::first ? first_gap(around, buffer) : best_gap(around, buffer);
}

}  // namespace

PackAnswer pack_in_order(const PackTask& task, const std::vector<std::uint32_t>& order, Fit fit) {
  // In all: about a second; less of very many, where looking seldom ends in time and those who walk through time do better.
  const std::size_t most_looks = std::size_t{1} << (order.size() > kVeryMany ? 24 : 28);
  Timeline timeline(task.part.steps, order.size());
  PackAnswer answer;
  answer.packing.offsets.resize(order.size());
  std::size_t placed = 0;
  std::size_t looks = 0;
  for (const std::uint32_t index : order) {
    const PackBuffer& buffer = task.part.buffers[index];
    const Found found = choose(timeline.around(buffer), buffer, fit);
    const std::size_t top = found.offset + buffer.bytes;
    if (top >= task.below) return {PackEnd::above};
    answer.packing.offsets[index] = found.offset;
    answer.packing.peak_bytes = std::max(answer.packing.peak_bytes, top);
    timeline.add({found.offset, top, buffer.begin, buffer.end});
    looks += found.looks;
    if (looks > most_looks) return {PackEnd::too_much_live};
    if (++placed % 256 == 0 && task.patience.over()) return {PackEnd::out_of_time};
  }
  return answer;
}

}  // namespace berth::planning
