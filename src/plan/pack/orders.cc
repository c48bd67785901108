// SPDX-License-Identifier: Apache-2.0
#include "plan/pack/orders.h"

#include <algorithm>
#include <numeric>

namespace berth::planning {

namespace {

using Key = unsigned __int128;  // an area has 96 bits

Key area(const PackBuffer& buffer) { return Key{buffer.bytes} * (buffer.end - buffer.begin); }

// For each buffer, the most bytes live at once during its life: the maximum over a range, by doubling.
std::vector<Key> loads(const Part& part) {
  std::vector<std::size_t> live(part.steps + 1, 0);
  for (const PackBuffer& buffer : part.buffers) {
    live[buffer.begin] += buffer.bytes;
    live[buffer.end] -= buffer.bytes;
  }
  std::partial_sum(live.begin(), live.end(), live.begin());
  std::vector<std::vector<std::size_t>> most = {std::move(live)};
  for (std::size_t width = 1; 2 * width <= part.steps; width *= 2) {
    const std::vector<std::size_t>& half = most.back();
    std::vector<std::size_t> next(part.steps + 1 - 2 * width);
    for (std::size_t i = 0; i < next.size(); ++i) next[i] = std::max(half[i], half[i + width]);
    most.push_back(std::move(next));
  }
  std::vector<Key> keys;
  keys.reserve(part.buffers.size());
  for (const PackBuffer& buffer : part.buffers) {
    const std::uint32_t length = buffer.end - buffer.begin;
    const auto level = static_cast<unsigned>(31 - __builtin_clz(length));
    keys.push_back(std::max(most[level][buffer.begin], most[level][buffer.end - (1U << level)]));
  }
  return keys;
}

// All others but those that end before it begins or begin after it ends.
std::vector<Key> conflicts(const Part& part) {
  std::vector<std::size_t> begun(part.steps + 1, 0);  // up to and with a step
  std::vector<std::size_t> ended(part.steps + 1, 0);
  for (const PackBuffer& buffer : part.buffers) {
    ++begun[buffer.begin];
    ++ended[buffer.end];
  }
  std::partial_sum(begun.begin(), begun.end(), begun.begin());
  std::partial_sum(ended.begin(), ended.end(), ended.begin());
  std::vector<Key> keys;
  keys.reserve(part.buffers.size());
  for (const PackBuffer& buffer : part.buffers) keys.push_back(begun[buffer.end - 1] - ended[buffer.begin]);
  return keys;
}

template <class KeyOf>
std::vector<Key> keys_by(const Part& part, KeyOf key_of) {
  std::vector<Key> keys;
  keys.reserve(part.buffers.size());
  for (const PackBuffer& buffer : part.buffers) keys.push_back(key_of(buffer));
  return keys;
}

std::vector<Key> keys_of(const Part& part, Order order) {
  switch (order) {
    // Of equal ones the earliest first: layers repeat the same sizes, and then fall into the same pattern.
    case Order::size: return keys_by(part, [&](const PackBuffer& b) { return (Key{b.bytes} << 32) + (part.steps - b.begin); });
    case Order::area: return keys_by(part, area);
    case Order::life: return keys_by(part, [](const PackBuffer& b) { return Key{b.end - b.begin}; });
    case Order::load: return loads(part);
    case Order::conflicts: return conflicts(part);
    case Order::time: return keys_by(part, [&](const PackBuffer& b) { return (Key{part.steps - b.begin} << 64) + b.bytes; });
  }
  return {};
}

}  // namespace

std::vector<std::uint32_t> order_buffers(const Part& part, Order order) {
  const std::vector<Key> keys = keys_of(part, order);
  std::vector<std::uint32_t> indices(part.buffers.size());
  std::iota(indices.begin(), indices.end(), 0U);
  std::sort(indices.begin() + static_cast<std::ptrdiff_t>(part.fixed), indices.end(), [&](std::uint32_t a, std::uint32_t b) {
    if (keys[a] != keys[b]) return keys[a] > keys[b];
    const PackBuffer& x = part.buffers[a];
    const PackBuffer& y = part.buffers[b];
    if (area(x) != area(y)) return area(x) > area(y);
    if (x.begin != y.begin) return x.begin < y.begin;
    return a < b;
  });
  return indices;
}

}  // namespace berth::planning
