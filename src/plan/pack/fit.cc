// SPDX-License-Identifier: Apache-2.0
#include "plan/pack/fit.h"

#include <algorithm>
#include <type_traits>

namespace berth::internal::plan {

namespace {

// A buffer that has been placed, in [offset, top) and [begin, end).
struct Placed {
  std::size_t offset;
  std::size_t top;
  std::uint32_t begin;
  std::uint32_t end;
};

bool live_together(const Placed& placed, const PackBuffer& buffer) { return placed.begin < buffer.end && buffer.begin < placed.end; }

// Storage of the lists' entries: by value, which is fast to read …
struct ByValue {
  using Entry = Placed;
  static constexpr bool kSaves = false;
  const Placed& operator[](const Placed& entry) const { return entry; }
};

// … or by index, which takes a sixth of the memory: every buffer is in seven lists or more.
struct ByNumber {
  using Entry = std::uint32_t;
  static constexpr bool kSaves = true;  // capacity, too
  const Part& part;
  const std::vector<std::size_t>& offsets;
  Placed operator[](std::uint32_t index) const {
    const PackBuffer& one = part.buffers[index];
    return {offsets[index], offsets[index] + one.bytes, one.begin, one.end};
  }
};

// Neighbours in a list with a summary, so that a walk can mostly skip them at once.
template <class Memory>
struct Chunk {
  static constexpr std::size_t kMost = 64;
  using Entry = typename Memory::Entry;

  std::vector<Entry> placed = {};          // by offset; never empty in a list
  std::uint32_t first_begin = UINT32_MAX;  // the union of lifetimes begins here …
  std::uint32_t last_end = 0;              // … and ends here
  std::uint32_t last_begin = 0;            // the intersection of lifetimes begins here …
  std::uint32_t first_end = UINT32_MAX;    // … and ends here
  std::size_t top = 0;
  std::size_t widest_gap = 0;  // between them when all are live

  void insert(const Entry& entry, const Memory& memory) {
    // Grows by a few entries: there are very many chunks, and most never fill up.
    if (Memory::kSaves && placed.size() == placed.capacity()) placed.reserve(std::min(placed.size() + kMost / 8, kMost + 1));
    const auto at = std::upper_bound(placed.begin(), placed.end(), memory[entry].offset,
                                     [&](std::size_t offset, const Entry& other) { return offset < memory[other].offset; });
    if (at == placed.end()) {  // by far the most frequent case: the new buffer is on top
      add_to_measure(memory[entry]);
      placed.push_back(entry);
    } else {
      placed.insert(at, entry);
      measure(memory);
    }
  }

  void measure(const Memory& memory) {
    first_begin = first_end = UINT32_MAX;
    last_begin = last_end = 0;
    top = widest_gap = 0;
    for (const Entry& one : placed) add_to_measure(memory[one]);
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
template <class Memory>
class List {
 public:
  using Entry = typename Memory::Entry;

  void insert(const Entry& entry, const Memory& memory) {
    const auto after =
        std::upper_bound(chunks_.begin(), chunks_.end(), memory[entry].offset,
                         [&](std::size_t offset, const Chunk<Memory>& chunk) { return offset < memory[chunk.placed.front()].offset; });
    auto at = after == chunks_.begin() ? after : after - 1;
    if (at == chunks_.end()) at = chunks_.insert(at, Chunk<Memory>());
    at->insert(entry, memory);
    if (at->placed.size() > Chunk<Memory>::kMost) split(at, memory);
  }

  // Calls see(offset, gap) for the gaps that are large enough, from below, until it returns true; the last gap
  // is unbounded. Returns the number of entries inspected.
  template <class See>
  std::size_t walk(const PackBuffer& buffer, const Memory& memory, See see) const {
    std::size_t looks = 0;
    std::size_t offset = 0;  // no gap below this
    for (const Chunk<Memory>& chunk : chunks_) {
      ++looks;
      if (chunk.none_live_with(buffer)) continue;
      if (chunk.widest_gap < buffer.bytes && chunk.all_live_with(buffer)) {
        const std::size_t from = memory[chunk.placed.front()].offset;
        if (from >= offset && from - offset >= buffer.bytes && see(offset, from - offset)) return looks;
        if (chunk.top > offset) offset = align_offset(chunk.top, buffer.alignment);
        continue;
      }
      looks += chunk.placed.size();
      for (const Entry& entry : chunk.placed) {
        const Placed& placed = memory[entry];
        if (!live_together(placed, buffer)) continue;
        if (placed.offset >= offset && placed.offset - offset >= buffer.bytes && see(offset, placed.offset - offset)) return looks;
        if (placed.top > offset) offset = align_offset(placed.top, buffer.alignment);
      }
    }
    see(offset, SIZE_MAX);
    return looks;
  }

 private:
  void split(typename std::vector<Chunk<Memory>>::iterator at, const Memory& memory) {
    constexpr std::ptrdiff_t kHalf = Chunk<Memory>::kMost / 2;
    Chunk<Memory> upper;
    upper.placed.assign(at->placed.begin() + kHalf, at->placed.end());
    at->placed.erase(at->placed.begin() + kHalf, at->placed.end());
    if (Memory::kSaves) at->placed.shrink_to_fit();
    upper.measure(memory);
    at->measure(memory);
    chunks_.insert(at + 1, std::move(upper));
  }

  std::vector<Chunk<Memory>> chunks_;
};

// Placed buffers by time: the timeline is cut into blocks at several scales, each scale twice, the second time
// shifted by half a block, so that a lifetime of at most half a block fits in one. A block lists all buffers
// that reach into it. A query is then one walk through the list of the smallest block that contains the
// buffer's lifetime; most entries there overlap it.
//
//     scale 0   |---------------------------------------|
//     scale 1   |------------|------------|-------------|
//     shifted   |-----|------------|------------|-------|
template <class Memory>
class Timeline {
 public:
  Timeline(std::uint32_t steps, std::size_t buffers) {
    scales_.push_back({steps, 0, Lists(1)});
    // Finer blocks pay off as long as enough buffers begin in each.
    for (std::uint32_t blocks = 4; blocks <= kMostBlocks && blocks * 16 <= buffers && steps / blocks >= 4; blocks *= 4) {
      const std::uint32_t width = steps / blocks + 1;
      for (const std::uint32_t shift : {0U, width / 2}) scales_.push_back({width, shift, Lists(blocks + 2)});
    }
  }

  const List<Memory>& around(const PackBuffer& buffer) const {
    for (std::size_t i = scales_.size(); i-- > 1;) {
      const Scale& scale = scales_[i];
      if (scale.block(buffer.begin) == scale.block(buffer.end - 1)) return scale.lists[scale.block(buffer.begin)];
    }
    return scales_[0].lists[0];
  }

  // Returns the number of lists that it is in.
  std::size_t add(const typename Memory::Entry& entry, const Memory& memory) {
    const Placed& one = memory[entry];
    std::size_t lists = 0;
    for (Scale& scale : scales_)
      for (std::size_t block = scale.block(one.begin); block <= scale.block(one.end - 1); ++block, ++lists)
        scale.lists[block].insert(entry, memory);
    return lists;
  }

 private:
  static constexpr std::uint32_t kMostBlocks = 64;
  using Lists = std::vector<List<Memory>>;

  struct Scale {
    std::uint32_t width;
    std::uint32_t shift;
    Lists lists;

    std::size_t block(std::uint32_t step) const noexcept { return (step + shift) / width; }
  };

  std::vector<Scale> scales_;
};

// The chosen offset, and the cost of finding it.
struct Found {
  std::size_t offset = 0;
  std::size_t looks = 0;
};

template <class Memory>
Found first_gap(const List<Memory>& around, const PackBuffer& buffer, const Memory& memory) {
  Found found;
  found.looks = around.walk(buffer, memory, [&](std::size_t offset, std::size_t) {
    found.offset = offset;
    return true;
  });
  return found;
}

template <class Memory>
Found best_gap(const List<Memory>& around, const PackBuffer& buffer, const Memory& memory) {
  Found found;
  std::size_t least = 0;  // size of the best gap so far
  found.looks = around.walk(buffer, memory, [&](std::size_t offset, std::size_t gap) {
    if (least == 0 || gap < least) {
      least = gap;
      found.offset = offset;
    }
    return gap == buffer.bytes;
  });
  return found;
}

template <class Memory>
Found choose(const List<Memory>& around, const PackBuffer& buffer, Fit fit, const Memory& memory) {
  if (buffer.fixed) return {*buffer.fixed};
  return fit == Fit::first ? first_gap(around, buffer, memory) : best_gap(around, buffer, memory);
}

template <class Memory>
PackEnd place_all(const PackTask& task, const std::vector<std::uint32_t>& order, Fit fit, const Memory& memory, Packing& packing) {
  // About a second in total; less for very many buffers, where the walks seldom finish in time and the packers
  // that sweep over time do better.
  const std::size_t most_looks = std::size_t{1} << (order.size() > kVeryMany ? 24 : 28);
  Timeline<Memory> timeline(task.part.steps, order.size());
  constexpr std::size_t kWorkPerClock = std::size_t{1} << 14;  // looks and insertions between two looks at the clock: well
                                                               // under a millisecond
  std::size_t work = kWorkPerClock;
  std::size_t looks = 0;
  for (const std::uint32_t index : order) {
    const PackBuffer& buffer = task.part.buffers[index];
    const Found found = choose(timeline.around(buffer), buffer, fit, memory);
    const std::size_t top = found.offset + buffer.bytes;
    if (top >= task.below) return PackEnd::above;
    packing.offsets[index] = found.offset;
    packing.peak_bytes = std::max(packing.peak_bytes, top);
    if constexpr (std::is_same_v<Memory, ByNumber>)
      work += timeline.add(index, memory);
    else
      work += timeline.add({found.offset, top, buffer.begin, buffer.end}, memory);
    looks += found.looks;
    work += found.looks;
    if (looks > most_looks) return PackEnd::too_much_live;
    if (work < kWorkPerClock) continue;
    work = 0;
    if (task.patience.over()) return PackEnd::out_of_time;
  }
  return PackEnd::done;
}

}  // namespace

PackAnswer pack_in_order(const PackTask& task, const std::vector<std::uint32_t>& order, Fit fit) {
  Packing packing;
  packing.offsets.resize(order.size());
  const PackEnd end = order.size() > kVeryMany ? place_all(task, order, fit, ByNumber{task.part, packing.offsets}, packing)
                                               : place_all(task, order, fit, ByValue{}, packing);
  if (end != PackEnd::done) return {end};
  return {end, std::move(packing)};
}

}  // namespace berth::internal::plan
