// SPDX-License-Identifier: Apache-2.0
#include "plan/pack/improve.h"

#include <algorithm>
#include <numeric>

#include "base/random.h"
#include "plan/pack/exact/buffer_set.h"
#include "plan/pack/fit.h"
#include "plan/pack/lowest.h"
#include "plan/pack/orders.h"

namespace berth::internal::plan {

namespace {

constexpr std::size_t kMostPlaced = std::size_t{1} << 17;       // packed buffers in total, when nothing else
                                                                // stops it
constexpr std::size_t kMostPlacedOfFew = std::size_t{1} << 13;  // where the exact search comes next

bool is_few(const Part& part) { return part.buffers.size() <= pack::exact::kMostBuffers; }

// Keeps the best of many packings, and decides whether to try once more.
class Tries {
 public:
  Tries(const PackTask& task, std::size_t most_placed)
      : task_(task),
        target_(std::max(task.part.lower_bound_bytes, task.enough)),
        most_placed_(task.patience.has_deadline() ? most_placed : most_placed / task.sharing),
        below_(task.below) {}

  std::size_t target() const noexcept { return target_; }
  std::size_t below() const noexcept { return below_; }

  bool go_on() {
    if (below_ <= target_ + 1 || best_.end == PackEnd::too_much_live || task_.patience.over()) return false;
    placed_ += task_.part.buffers.size();
    return placed_ <= most_placed_;
  }

  void offer(const PackAnswer& answer) {
    if (answer.end == PackEnd::done && answer.packing.peak_bytes < below_) {
      below_ = answer.packing.peak_bytes;
      best_ = answer;
    } else if (answer.end == PackEnd::too_much_live && best_.end != PackEnd::done) {
      best_.end = answer.end;
    }
  }

  PackAnswer best() && { return std::move(best_); }

 private:
  const PackTask& task_;
  const std::size_t target_;
  const std::size_t most_placed_;
  std::size_t below_;
  std::size_t placed_ = 0;
  PackAnswer best_{PackEnd::above};
};

// Sorts movable buffers by rising key.
void sort_by(std::vector<std::uint32_t>& order, std::size_t fixed, const std::vector<std::uint64_t>& keys) {
  std::stable_sort(order.begin() + static_cast<std::ptrdiff_t>(fixed), order.end(),
                   [&](std::uint32_t a, std::uint32_t b) { return keys[a] < keys[b]; });
}

// Buffers that end above the target move to half their rank.
void promote(const Part& part, const Packing& packing, std::size_t target, std::vector<std::uint32_t>& order) {
  std::vector<std::uint64_t> keys(order.size());
  for (std::size_t rank = 0; rank < order.size(); ++rank) {
    const std::uint32_t index = order[rank];
    const bool high = packing.offsets[index] + part.buffers[index].bytes > target;
    keys[index] = high ? rank : 2 * rank + 1;
  }
  sort_by(order, part.fixed, keys);
}

void shake(const Part& part, Random& random, std::vector<std::uint32_t>& order) {
  std::vector<std::uint64_t> keys(order.size());
  for (std::size_t rank = 0; rank < order.size(); ++rank) keys[order[rank]] = rank * (1000 + random.below(100));
  sort_by(order, part.fixed, keys);
}

// Sorts by area with up to a tenth of noise. Integers, which scale with the bytes: 64 bits of bytes, 32 of
// steps and 11 of noise.
void shake_areas(const Part& part, Random& random, std::vector<std::uint32_t>& order) {
  std::vector<unsigned __int128> keys(order.size());
  for (const std::uint32_t index : order) {
    const PackBuffer& one = part.buffers[index];
    keys[index] = static_cast<unsigned __int128>(one.bytes) * (one.end - one.begin) * (1000 + random.below(100));
  }
  std::stable_sort(order.begin() + static_cast<std::ptrdiff_t>(part.fixed), order.end(),
                   [&](std::uint32_t a, std::uint32_t b) { return keys[a] > keys[b]; });
}

}  // namespace

PackAnswer pack_promoting(const PackTask& task) {
  constexpr int kPromotions = 12;
  constexpr Order kOrders[] = {Order::load, Order::size, Order::life, Order::area};
  const Part& part = task.part;
  if (part.buffers.size() > kMostPlaced && !task.patience.has_deadline()) return {PackEnd::too_many};
  Tries tries(task, is_few(part) ? kMostPlacedOfFew : kMostPlaced);
  Random random(task.seed);
  std::vector<std::vector<std::uint32_t>> orders;
  for (const Order order : kOrders) orders.push_back(order_buffers(part, order));
  // The four orders take turns, each from where its promotions led; after kPromotions rounds each is shaken.
  for (int round = 0;; ++round) {
    for (std::vector<std::uint32_t>& order : orders) {
      if (!tries.go_on()) return std::move(tries).best();
      const PackAnswer answer = pack_in_order({part, SIZE_MAX, task.patience}, order, Fit::first);
      tries.offer(answer);
      if (answer.end != PackEnd::done) return std::move(tries).best();
      promote(part, answer.packing, tries.target(), order);
      if (round % kPromotions == kPromotions - 1) shake(part, random, order);
    }
  }
}

PackAnswer pack_lowest_with_noise(const PackTask& task) {
  const Part& part = task.part;
  // With a deadline, this strategy, the best of them, goes on until then.
  const std::size_t most = task.patience.has_deadline() ? SIZE_MAX : kMostPlaced;
  if (part.buffers.size() > most) return {PackEnd::too_many};
  Tries tries(task, is_few(part) ? kMostPlacedOfFew : most);
  Random loads(task.seed);
  Random areas(~task.seed);
  const std::vector<std::uint32_t> by_load = order_buffers(part, Order::load);
  const std::vector<std::uint32_t> by_area = order_buffers(part, Order::area);
  for (bool area = false; tries.go_on(); area = !area) {  // alternate: which is better differs from trace to
                                                          // trace
    std::vector<std::uint32_t> order = area ? by_area : by_load;
    if (area)
      shake_areas(part, areas, order);
    else
      shake(part, loads, order);
    tries.offer(pack_lowest({part, tries.below(), task.patience}, order));
  }
  return std::move(tries).best();
}

}  // namespace berth::internal::plan
