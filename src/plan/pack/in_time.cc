// SPDX-License-Identifier: Apache-2.0
#include "plan/pack/in_time.h"

#include <algorithm>
#include <numeric>
#include <set>

namespace berth::internal::plan {

namespace {

constexpr std::uint32_t kNoBuffer = UINT32_MAX;
constexpr std::uint32_t kFree = UINT32_MAX;
constexpr std::size_t kEndless = SIZE_MAX / 2;

// The address space as a doubly linked list of contiguous pieces, free or taken; free neighbours are coalesced.
// The last piece is free and unbounded.
class Ranges {
 public:
  explicit Ranges(std::size_t buffers) : piece_of_(buffers, kNoBuffer) {
    pieces_.push_back({.offset = 0, .end = kEndless});
    add_free(0);
  }

  // Allocates a buffer that ends at `dies`; returns its offset.
  std::size_t place(std::uint32_t index, const PackBuffer& buffer, std::uint32_t dies, Choice choice) {
    const std::uint32_t at = choice == Choice::smallest ? smallest(buffer) : together(buffer, dies);
    const std::size_t offset = align_offset(pieces_[at].offset, buffer.alignment);
    drop_free(at);
    if (offset != pieces_[at].offset) {
      const std::uint32_t below = insert_before(at, pieces_[at].offset, offset);
      add_free(below);
    }
    pieces_[at].offset = offset;
    if (pieces_[at].end - offset > buffer.bytes) {
      // Split: the piece keeps the rest, so that the unbounded one stays last.
      const std::uint32_t taken = insert_before(at, offset, offset + buffer.bytes);
      pieces_[at].offset = offset + buffer.bytes;
      add_free(at);
      pieces_[taken].dies = dies;
      piece_of_[index] = taken;
    } else {
      pieces_[at].dies = dies;
      piece_of_[index] = at;
    }
    return offset;
  }

  void release(std::uint32_t index) {
    const std::uint32_t at = piece_of_[index];
    pieces_[at].dies = kFree;
    if (const std::uint32_t below = pieces_[at].below; below != kNoBuffer && pieces_[below].dies == kFree) {
      drop_free(below);
      pieces_[at].offset = pieces_[below].offset;
      unlink(below);
    }
    if (const std::uint32_t above = pieces_[at].above; above != kNoBuffer && pieces_[above].dies == kFree) {
      drop_free(above);
      pieces_[at].end = pieces_[above].end;
      unlink(above);
    }
    add_free(at);
  }

 private:
  struct Piece {
    std::size_t offset;
    std::size_t end;
    std::uint32_t dies = kFree;
    std::uint32_t below = kNoBuffer;
    std::uint32_t above = kNoBuffer;
  };

  struct FreeRange {
    std::size_t bytes;
    std::size_t offset;
    std::uint32_t piece;
    friend bool operator<(const FreeRange& a, const FreeRange& b) { return a.bytes != b.bytes ? a.bytes < b.bytes : a.offset < b.offset; }
  };

  FreeRange as_free(std::uint32_t at) const { return {pieces_[at].end - pieces_[at].offset, pieces_[at].offset, at}; }
  void add_free(std::uint32_t at) { free_.insert(as_free(at)); }
  void drop_free(std::uint32_t at) { free_.erase(as_free(at)); }

  std::uint32_t insert_before(std::uint32_t at, std::size_t offset, std::size_t end) {
    std::uint32_t fresh;
    if (spare_.empty()) {
      fresh = static_cast<std::uint32_t>(pieces_.size());
      pieces_.emplace_back();
    } else {
      fresh = spare_.back();
      spare_.pop_back();
    }
    pieces_[fresh] = {.offset = offset, .end = end, .below = pieces_[at].below, .above = at};
    if (pieces_[fresh].below != kNoBuffer) pieces_[pieces_[fresh].below].above = fresh;
    pieces_[at].below = fresh;
    return fresh;
  }

  void unlink(std::uint32_t at) {
    const Piece& piece = pieces_[at];
    if (piece.below != kNoBuffer) pieces_[piece.below].above = piece.above;
    if (piece.above != kNoBuffer) pieces_[piece.above].below = piece.below;
    spare_.push_back(at);
  }

  static bool holds(const FreeRange& range, const PackBuffer& buffer) {
    const std::size_t offset = align_offset(range.offset, buffer.alignment);
    return offset - range.offset <= range.bytes && range.bytes - (offset - range.offset) >= buffer.bytes;
  }

  std::uint32_t smallest(const PackBuffer& buffer) const {
    auto at = free_.lower_bound({buffer.bytes, 0, 0});
    while (!holds(*at, buffer)) ++at;  // the unbounded one fits anything
    return at->piece;
  }

  std::uint32_t together(const PackBuffer& buffer, std::uint32_t dies) const {
    constexpr int kCandidates = 8;
    const std::uint32_t first = smallest(buffer);
    const FreeRange smallest_range = as_free(first);
    if (smallest_range.bytes == buffer.bytes) return first;
    std::uint32_t best = first;
    std::uint32_t least = distance(first, dies);
    int seen = 0;
    for (auto at = free_.upper_bound(smallest_range); at != free_.end() && seen < kCandidates && at->bytes < kEndless / 2; ++at, ++seen) {
      if (!holds(*at, buffer)) continue;
      const std::uint32_t far = distance(at->piece, dies);
      if (far < least) {
        least = far;
        best = at->piece;
      }
    }
    return best;
  }

  // The distance in time to the end of the buffer below a free range.
  std::uint32_t distance(std::uint32_t at, std::uint32_t dies) const {
    const std::uint32_t below = pieces_[at].below;
    if (below == kNoBuffer) return kNoBuffer;
    const std::uint32_t other = pieces_[below].dies;
    return other > dies ? other - dies : dies - other;
  }

  std::vector<Piece> pieces_;
  std::vector<std::uint32_t> spare_;     // unused entries of pieces_
  std::vector<std::uint32_t> piece_of_;  // of each buffer
  std::set<FreeRange> free_;
};

// The buffers as seen in one direction of time.
class View {
 public:
  View(const Part& part, bool backwards) : part_(part), backwards_(backwards) {}

  std::uint32_t begin(std::uint32_t i) const { return backwards_ ? part_.steps - part_.buffers[i].end : part_.buffers[i].begin; }
  std::uint32_t end(std::uint32_t i) const { return backwards_ ? part_.steps - part_.buffers[i].begin : part_.buffers[i].end; }
  std::size_t bytes(std::uint32_t i) const { return part_.buffers[i].bytes; }
  const PackBuffer& operator[](std::uint32_t i) const { return part_.buffers[i]; }

 private:
  const Part& part_;
  const bool backwards_;
};

// Adds buffers one by one to a packing, as long as they stay below the task's limit.
class Placer {
 public:
  explicit Placer(const PackTask& task) : task_(task) { answer_.packing.offsets.resize(task.part.buffers.size()); }

  // False when packing has ended: `answer` says why.
  bool put(std::uint32_t index, std::size_t offset) {
    const std::size_t bytes = task_.part.buffers[index].bytes;
    if (offset >= task_.below || bytes >= task_.below - offset) return end(PackEnd::above);
    answer_.packing.offsets[index] = offset;
    answer_.packing.peak_bytes = std::max(answer_.packing.peak_bytes, offset + bytes);
    return placed_++ % 4096 != 0 || !task_.patience.over() || end(PackEnd::out_of_time);
  }

  // Stacks the buffers of `stack`, then sweeps on and allocates the rest. REQUIRES: `stack` is sorted.
  bool walk(const View& view, const std::vector<std::uint32_t>& stack, std::vector<std::uint32_t> births, Choice choice) {
    Ranges ranges(task_.part.buffers.size());
    for (const std::uint32_t index : stack)
      if (!put(index, ranges.place(index, view[index], view.end(index), Choice::smallest))) return false;
    std::vector<std::uint32_t> deaths = stack;
    deaths.insert(deaths.end(), births.begin(), births.end());
    std::sort(births.begin(), births.end(), [&](std::uint32_t a, std::uint32_t b) {
      if (view.begin(a) != view.begin(b)) return view.begin(a) < view.begin(b);
      if (view.bytes(a) != view.bytes(b)) return view.bytes(a) > view.bytes(b);
      return view.end(a) != view.end(b) ? view.end(a) > view.end(b) : a < b;
    });
    std::sort(deaths.begin(), deaths.end(),
              [&](std::uint32_t a, std::uint32_t b) { return view.end(a) != view.end(b) ? view.end(a) < view.end(b) : a < b; });
    auto dead = deaths.begin();
    for (const std::uint32_t index : births) {
      for (; dead != deaths.end() && view.end(*dead) <= view.begin(index); ++dead) ranges.release(*dead);
      if (!put(index, ranges.place(index, view[index], view.end(index), choice))) return false;
    }
    return true;
  }

  PackAnswer answer() && { return std::move(answer_); }

 private:
  bool end(PackEnd why) {
    answer_ = {why};
    return false;
  }

  const PackTask& task_;
  PackAnswer answer_;
  std::size_t placed_ = 0;
};

std::uint32_t busiest_step(const Part& part) {
  std::vector<std::size_t> change(part.steps + 1, 0);  // differences may wrap, prefix sums do not
  for (const PackBuffer& buffer : part.buffers) {
    change[buffer.begin] += buffer.bytes;
    change[buffer.end] -= buffer.bytes;
  }
  std::partial_sum(change.begin(), change.end(), change.begin());
  return static_cast<std::uint32_t>(std::max_element(change.begin(), change.end()) - change.begin());
}

PackAnswer pack_outwards(const PackTask& task, Choice choice) {
  const Part& part = task.part;
  const std::uint32_t middle = busiest_step(part);
  std::vector<std::uint32_t> stack;
  std::vector<std::uint32_t> before;
  std::vector<std::uint32_t> after;
  for (std::uint32_t i = 0; i < part.buffers.size(); ++i) {
    const PackBuffer& buffer = part.buffers[i];
    (buffer.end <= middle ? before : buffer.begin > middle ? after : stack).push_back(i);
  }
  const auto length = [&](std::uint32_t i) { return part.buffers[i].end - part.buffers[i].begin; };
  std::stable_sort(stack.begin(), stack.end(), [&](std::uint32_t a, std::uint32_t b) { return length(a) > length(b); });
  Placer placer(task);
  if (placer.walk(View(part, false), stack, std::move(after), choice)) placer.walk(View(part, true), stack, std::move(before), choice);
  return std::move(placer).answer();
}

}  // namespace

PackAnswer pack_in_time(const PackTask& task, WalkDirection walk, Choice choice) {
  if (task.part.fixed != 0) return {PackEnd::has_fixed};
  if (walk == WalkDirection::outwards) return pack_outwards(task, choice);
  std::vector<std::uint32_t> all(task.part.buffers.size());
  std::iota(all.begin(), all.end(), 0U);
  Placer placer(task);
  placer.walk(View(task.part, walk == WalkDirection::backwards), {}, std::move(all), choice);
  return std::move(placer).answer();
}

}  // namespace berth::internal::plan
