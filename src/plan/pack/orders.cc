// SPDX-License-Identifier: Apache-2.0
#include "plan/pack/orders.h"

#include <algorithm>
#include <numeric>
#include <utility>

namespace berth::internal::plan {

namespace {

using Area = unsigned __int128;  // needs 96 bits

Area area(const PackBuffer& buffer) { return Area{buffer.bytes} * (buffer.end - buffer.begin); }

// Range-maximum queries: a segment tree whose leaves are the numbers.
class RangeMaximum {
 public:
  explicit RangeMaximum(std::vector<std::size_t> tree) : size_(tree.size() / 2), tree_(std::move(tree)) {
    for (std::size_t at = size_; at-- > 1;) tree_[at] = std::max(tree_[2 * at], tree_[2 * at + 1]);
  }

  std::size_t operator()(std::size_t begin, std::size_t end) const {
    std::size_t most = 0;
    for (begin += size_, end += size_; begin < end; begin /= 2, end /= 2) {
      if (begin & 1) most = std::max(most, tree_[begin++]);
      if (end & 1) most = std::max(most, tree_[--end]);
    }
    return most;
  }

 private:
  const std::size_t size_;
  std::vector<std::size_t> tree_;  // leaves are in the upper half
};

// For each buffer, the peak of live bytes during its lifetime.
std::vector<std::size_t> loads(const Part& part) {
  const std::size_t leaves = part.steps + std::size_t{1};
  std::vector<std::size_t> live(2 * leaves, 0);
  for (const PackBuffer& buffer : part.buffers) {
    live[leaves + buffer.begin] += buffer.bytes;
    live[leaves + buffer.end] -= buffer.bytes;
  }
  const auto first = live.begin() + static_cast<std::ptrdiff_t>(leaves);
  std::partial_sum(first, live.end(), first);
  const RangeMaximum most(std::move(live));
  std::vector<std::size_t> keys;
  keys.reserve(part.buffers.size());
  for (const PackBuffer& buffer : part.buffers) keys.push_back(most(buffer.begin, buffer.end));
  return keys;
}

// For each buffer, all buffers but those that end before it begins or begin after it ends.
std::vector<std::uint32_t> conflicts(const Part& part) {
  std::vector<std::uint32_t> begun(part.steps + 1, 0);  // up to and including a step
  std::vector<std::uint32_t> ended(part.steps + 1, 0);
  for (const PackBuffer& buffer : part.buffers) {
    ++begun[buffer.begin];
    ++ended[buffer.end];
  }
  std::partial_sum(begun.begin(), begun.end(), begun.begin());
  std::partial_sum(ended.begin(), ended.end(), ended.begin());
  std::vector<std::uint32_t> keys;
  keys.reserve(part.buffers.size());
  for (const PackBuffer& buffer : part.buffers) keys.push_back(begun[buffer.end - 1] - ended[buffer.begin]);
  return keys;
}

template <class Key>
std::vector<std::uint32_t> sorted_by(const Part& part, Key key) {
  std::vector<std::uint32_t> indices(part.buffers.size());
  std::iota(indices.begin(), indices.end(), 0U);
  std::sort(indices.begin() + static_cast<std::ptrdiff_t>(part.fixed), indices.end(), [&](std::uint32_t a, std::uint32_t b) {
    if (key(a) != key(b)) return key(a) > key(b);
    const PackBuffer& x = part.buffers[a];
    const PackBuffer& y = part.buffers[b];
    if (area(x) != area(y)) return area(x) > area(y);
    if (x.begin != y.begin) return x.begin < y.begin;
    return a < b;
  });
  return indices;
}

template <class Key>
std::vector<std::uint32_t> sorted_by_keys(const Part& part, const std::vector<Key>& keys) {
  return sorted_by(part, [&](std::uint32_t i) { return keys[i]; });
}

}  // namespace

std::vector<std::uint32_t> order_buffers(const Part& part, Order order) {
  const auto one = [&](std::uint32_t i) -> const PackBuffer& { return part.buffers[i]; };
  switch (order) {
    // Ties by begin: layers repeat the same sizes, and then form the same pattern.
    case Order::size: return sorted_by(part, [&](std::uint32_t i) { return std::pair(one(i).bytes, part.steps - one(i).begin); });
    case Order::area: return sorted_by(part, [&](std::uint32_t i) { return area(one(i)); });
    case Order::life: return sorted_by(part, [&](std::uint32_t i) { return one(i).end - one(i).begin; });
    case Order::load: return sorted_by_keys(part, loads(part));
    case Order::conflicts: return sorted_by_keys(part, conflicts(part));
    case Order::time: return sorted_by(part, [&](std::uint32_t i) { return std::pair(part.steps - one(i).begin, one(i).bytes); });
  }
  return {};
}

}  // namespace berth::internal::plan
