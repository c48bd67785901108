// SPDX-License-Identifier: Apache-2.0
#include "plan/pack/lowest.h"

#include <algorithm>
#include <bit>
#include <functional>
#include <queue>

namespace berth::internal::plan {

namespace {

// The skyline: for every step the top of the packed buffers, as a segment tree with a range-maximum query and a
// range update. A new buffer is always above the range it rests on, so updates need no propagation: a node's
// `lift` is a floor for its whole subtree, and its `highest` includes the subtree. In a leaf both are the same.
// Heights are in units of which all are multiples.
template <class Height>
class Skyline {
 public:
  explicit Skyline(std::uint32_t steps) : size_(steps), inner_(steps), leaves_(steps, 0) {}

  Height highest(std::uint32_t begin, std::uint32_t end) const {
    std::size_t left = begin + size_;
    std::size_t right = end + size_;
    // The nodes that cover the range, and the lifts of all their ancestors.
    Height most = std::max(leaves_[begin], leaves_[end - 1]);
    for (std::size_t up = left / 2; up != 0; up /= 2) most = std::max(most, inner_[up].lift);
    for (std::size_t up = (right - 1) / 2; up != 0; up /= 2) most = std::max(most, inner_[up].lift);
    for (; left < right; left /= 2, right /= 2) {
      if (left & 1) most = std::max(most, highest_of(left++));
      if (right & 1) most = std::max(most, highest_of(--right));
    }
    return most;
  }

  void lift(std::uint32_t begin, std::uint32_t end, Height top) {
    const std::size_t first = begin + size_;
    const std::size_t last = end - 1 + size_;
    for (std::size_t left = first, right = last + 1; left < right; left /= 2, right /= 2) {
      if (left & 1) raise(left++, top);
      if (right & 1) raise(--right, top);
    }
    for (std::size_t up = first / 2; up != 0; up /= 2) inner_[up].highest = std::max(inner_[up].highest, top);
    for (std::size_t up = last / 2; up != 0; up /= 2) inner_[up].highest = std::max(inner_[up].highest, top);
  }

 private:
  struct Node {
    Height lift = 0;
    Height highest = 0;
  };

  Height highest_of(std::size_t node) const { return node < size_ ? inner_[node].highest : leaves_[node - size_]; }

  void raise(std::size_t node, Height top) {
    if (node >= size_) {
      leaves_[node - size_] = std::max(leaves_[node - size_], top);
      return;
    }
    inner_[node].lift = std::max(inner_[node].lift, top);
    inner_[node].highest = std::max(inner_[node].highest, top);
  }

  const std::size_t size_;
  std::vector<Node> inner_;  // the children of node n are 2n and 2n + 1; from `size_` on they are leaves
  std::vector<Height> leaves_;
};

struct Waiting {
  std::size_t offset;  // a lower bound of its offset: the skyline may have risen since
  std::uint32_t rank;
  std::uint32_t index;

  friend bool operator>(const Waiting& a, const Waiting& b) { return a.offset != b.offset ? a.offset > b.offset : a.rank > b.rank; }
};

// All sizes, and so all heights, are multiples of this power of two.
int unit_shift(const Part& part) {
  std::size_t bits = 0;
  for (const PackBuffer& one : part.buffers) bits |= one.bytes | one.alignment;
  return std::countr_zero(bits);
}

template <class Height>
PackAnswer pack_with(const PackTask& task, const std::vector<std::uint32_t>& order, int shift) {
  // About a second in total.
  const std::size_t most_looks = order.size() > kVeryMany ? 4 * order.size() : std::size_t{1} << 23;
  const Part& part = task.part;
  std::vector<Waiting> first;
  first.reserve(order.size());
  for (std::uint32_t rank = 0; rank < order.size(); ++rank) first.push_back({0, rank, order[rank]});
  std::priority_queue<Waiting, std::vector<Waiting>, std::greater<>> waiting(std::greater<>(), std::move(first));
  Skyline<Height> skyline(part.steps);
  PackAnswer answer;
  answer.packing.offsets.resize(order.size());
  for (std::size_t looks = 0; !waiting.empty(); ++looks) {
    Waiting next = waiting.top();
    waiting.pop();
    const PackBuffer& buffer = part.buffers[next.index];
    const std::size_t offset = align_offset(std::size_t{skyline.highest(buffer.begin, buffer.end)} << shift, buffer.alignment);
    if (offset >= task.below || buffer.bytes >= task.below - offset) return {PackEnd::above};
    if (looks > most_looks) return {PackEnd::too_much_live};
    if (looks % 1024 == 0 && task.patience.over()) return {PackEnd::out_of_time};
    if (offset > next.offset) {
      next.offset = offset;
      waiting.push(next);
      continue;
    }
    skyline.lift(buffer.begin, buffer.end, static_cast<Height>((offset + buffer.bytes) >> shift));
    answer.packing.offsets[next.index] = offset;
    answer.packing.peak_bytes = std::max(answer.packing.peak_bytes, offset + buffer.bytes);
  }
  return answer;
}

}  // namespace

PackAnswer pack_lowest(const PackTask& task, Order ties) { return pack_lowest(task, order_buffers(task.part, ties)); }

PackAnswer pack_lowest(const PackTask& task, const std::vector<std::uint32_t>& order) {
  if (task.part.fixed != 0) return {PackEnd::has_fixed};
  // No buffer ends at or above `below`, so 32-bit heights mostly suffice.
  const int shift = unit_shift(task.part);
  return task.below >> shift <= UINT32_MAX ? pack_with<std::uint32_t>(task, order, shift) : pack_with<std::uint64_t>(task, order, shift);
}

}  // namespace berth::internal::plan
