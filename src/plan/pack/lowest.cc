// SPDX-License-Identifier: Apache-2.0
#include "plan/pack/lowest.h"

#include <algorithm>
#include <queue>

namespace berth::planning {

namespace {

// For every step the top of what is placed there. Asks for the highest over a range, and lifts a range; what is placed always tops the range
// it lies on, so that lifting needs no second look: a node's `lift` is a floor for all below it, its `highest` includes all of them.
class Skyline {
 public:
  explicit Skyline(std::uint32_t steps) {
    while (size_ < steps) size_ *= 2;
    nodes_.resize(2 * size_);
  }

  std::size_t highest(std::uint32_t begin, std::uint32_t end) const {
    std::size_t most = 0;
    std::size_t left = begin + size_;
    std::size_t right = end + size_;
    // Nodes inside the range, and the lifts of everything above them.
    for (std::size_t up = left; up != 0; up /= 2) most = std::max(most, nodes_[up].lift);
    for (std::size_t up = right - 1; up != 0; up /= 2) most = std::max(most, nodes_[up].lift);
    for (; left < right; left /= 2, right /= 2) {
      if (left & 1) most = std::max(most, nodes_[left++].highest);
      if (right & 1) most = std::max(most, nodes_[--right].highest);
    }
    return most;
  }

  void lift(std::uint32_t begin, std::uint32_t end, std::size_t top) {
    const std::size_t first = begin + size_;
    const std::size_t last = end - 1 + size_;
    for (std::size_t left = first, right = last + 1; left < right; left /= 2, right /= 2) {
      if (left & 1) raise(left++, top);
      if (right & 1) raise(--right, top);
    }
    for (std::size_t up = first / 2; up != 0; up /= 2) nodes_[up].highest = std::max(nodes_[up].highest, top);
    for (std::size_t up = last / 2; up != 0; up /= 2) nodes_[up].highest = std::max(nodes_[up].highest, top);
  }

 private:
  struct Node {
    std::size_t lift = 0;
    std::size_t highest = 0;
  };

  void raise(std::size_t node, std::size_t top) {
    nodes_[node].lift = std::max(nodes_[node].lift, top);
    nodes_[node].highest = std::max(nodes_[node].highest, top);
  }

  std::size_t size_ = 1;
  std::vector<Node> nodes_;
};

struct Waiting {
  std::size_t offset;  // where it would lie, or lower than that: it may have been lifted since
  std::uint32_t rank;
  std::uint32_t index;

  friend bool operator>(const Waiting& a, const Waiting& b) { return a.offset != b.offset ? a.offset > b.offset : a.rank > b.rank; }
};

}  // namespace

PackAnswer pack_lowest(const PackTask& task, Order ties) { return pack_lowest(task, order_buffers(task.part, ties)); }

PackAnswer pack_lowest(const PackTask& task, const std::vector<std::uint32_t>& order) {
  const std::size_t most_looks = order.size() > kVeryMany ? 4 * order.size() : std::size_t{1} << 23;  // in all: about a second
  const Part& part = task.part;
  if (part.fixed != 0) return {PackEnd::has_fixed};
  std::priority_queue<Waiting, std::vector<Waiting>, std::greater<>> waiting;
  for (std::uint32_t rank = 0; rank < order.size(); ++rank) waiting.push({0, rank, order[rank]});
  Skyline skyline(part.steps);
  PackAnswer answer;
  answer.packing.offsets.resize(order.size());
  for (std::size_t looks = 0; !waiting.empty(); ++looks) {
    Waiting next = waiting.top();
    waiting.pop();
    const PackBuffer& buffer = part.buffers[next.index];
    const std::size_t offset = align_offset(skyline.highest(buffer.begin, buffer.end), buffer.alignment);
    if (offset >= task.below || buffer.bytes >= task.below - offset) return {PackEnd::above};
    if (looks > most_looks) return {PackEnd::too_much_live};
    if (looks % 1024 == 0 && task.patience.over()) return {PackEnd::out_of_time};
    if (offset > next.offset) {
      next.offset = offset;
      waiting.push(next);
      continue;
    }
    skyline.lift(buffer.begin, buffer.end, offset + buffer.bytes);
    answer.packing.offsets[next.index] = offset;
    answer.packing.peak_bytes = std::max(answer.packing.peak_bytes, offset + buffer.bytes);
  }
  return answer;
}

}  // namespace berth::planning
