// SPDX-License-Identifier: Apache-2.0
#include "plan/parallel/pack.h"

#include <algorithm>
#include <bit>
#include <numeric>
#include <utility>

#include "base/allowance.h"

namespace berth::internal::plan::parallel {

namespace {

using Order = std::vector<std::uint32_t>;  // members of the conflicts

class Packer {
 public:
  explicit Packer(const PackTogether& task) : task_(task), count_(task.conflicts.size()) {
    for (std::uint32_t i = 0; i < count_; ++i) (at(i).fixed ? fixed_ : free_).push_back(i);
  }

  std::optional<Packing> run() {
    if (fixed_clash()) return std::nullopt;
    for (const Order& order : orders()) {
      if (is_done()) break;
      try_order(order);
    }
    improve();
    Packing out{std::vector<std::size_t>(task_.buffers.size(), 0), best_.peak_bytes};
    for (std::size_t i = 0; i < count_; ++i) out.offsets[task_.conflicts.buffer(i)] = best_.offsets[i];
    return out;
  }

 private:
  const PackBuffer& at(std::size_t i) const { return task_.buffers[task_.conflicts.buffer(i)]; }
  std::size_t end_of(const Packing& packing, std::size_t i) const { return packing.offsets[i] + at(i).bytes; }

  // At least one order is tried, whatever the time.
  bool is_done() const { return has_order_ && (best_.peak_bytes <= task_.enough || looks_ > kMostLooks || task_.patience.over()); }

  bool fixed_clash() const {
    for (const std::uint32_t a : fixed_)
      for (const std::uint32_t b : fixed_)
        if (a < b && task_.conflicts.has(a, b) && *at(a).fixed < *at(b).fixed + at(b).bytes && *at(b).fixed < *at(a).fixed + at(a).bytes)
          return true;
    return false;
  }

  // By falling key, the earlier first among equals.
  template <class Key>
  Order sorted(Key key) const {
    Order order = free_;
    std::ranges::stable_sort(order, std::greater<>(), key);
    return order;
  }

  std::vector<Order> orders() const {
    std::vector<std::size_t> load(count_, 0);  // the bytes that each conflicts with
    for (std::size_t i = 0; i < count_; ++i) {
      base::checkpoint_now();
      for (std::size_t word = 0; word < task_.conflicts.row(i).size(); ++word)
        for (std::uint64_t bits = task_.conflicts.row(i)[word]; bits != 0; bits &= bits - 1)
          load[i] += at(word * 64 + static_cast<std::size_t>(std::countr_zero(bits))).bytes;
    }
    const auto bytes = [&](std::uint32_t i) { return at(i).bytes; };
    // The first leaves no gaps for alignment, so that it never needs more than all buffers side by side.
    std::vector<Order> orders = {sorted([&](std::uint32_t i) { return std::pair(std::size_t{at(i).alignment}, at(i).bytes); }),
                                 sorted(bytes),
                                 sorted([&](std::uint32_t i) { return load[i]; }),
                                 sorted([&](std::uint32_t i) { return std::pair(load[i] + bytes(i), bytes(i)); }),
                                 sorted([&](std::uint32_t i) { return static_cast<double>(load[i]) * static_cast<double>(bytes(i)); }),
                                 free_};
    if (!task_.hints.empty()) {
      Order by_hint = free_;
      std::ranges::stable_sort(by_hint, {}, [&](std::uint32_t i) { return task_.hints[task_.conflicts.buffer(i)]; });
      orders.push_back(std::move(by_hint));
    }
    return orders;
  }

  // A placed member. They are kept by their offsets.
  struct Placed {
    std::size_t offset;
    std::size_t end;
    std::uint32_t member;
  };

  void try_order(const Order& order) {
    Packing packing{std::vector<std::size_t>(count_, 0), 0};
    placed_.clear();
    const auto take = [&](std::uint32_t i, std::size_t offset) {
      const Placed one{offset, offset + at(i).bytes, i};
      placed_.insert(std::ranges::upper_bound(placed_, offset, {}, &Placed::offset), one);
      packing.offsets[i] = offset;
      packing.peak_bytes = std::max(packing.peak_bytes, one.end);
    };
    for (const std::uint32_t i : fixed_) take(i, *at(i).fixed);
    for (const std::uint32_t i : order) {
      base::checkpoint_now();
      take(i, lowest_gap(i));
      if (has_order_ && packing.peak_bytes >= best_.peak_bytes) return;
    }
    best_ = std::move(packing);
    best_order_ = order;
    has_order_ = true;
  }

  std::size_t lowest_gap(std::uint32_t i) {
    looks_ += placed_.size();
    const std::vector<std::uint64_t>& conflicts = task_.conflicts.row(i);
    const std::size_t bytes = at(i).bytes;
    std::size_t offset = 0;
    for (const Placed& one : placed_) {
      if ((conflicts[one.member / 64] >> (one.member % 64) & 1) == 0) continue;
      if (one.offset >= offset && one.offset - offset >= bytes) break;
      if (one.end > offset) offset = align_offset(one.end, at(i).alignment);
    }
    return offset;
  }

  // Squeaky wheel: what ends above the target comes first the next time.
  void improve() {
    Order order = best_order_;
    for (int round = 0; round < kRounds && !is_done(); ++round) {
      const std::size_t target = task_.enough + (best_.peak_bytes - task_.enough) / 2;
      const std::size_t before = best_.peak_bytes;
      std::stable_partition(order.begin(), order.end(), [&](std::uint32_t i) { return end_of(best_, i) > target; });
      try_order(order);
      if (best_.peak_bytes == before && round % 2 == 1)
        std::ranges::stable_sort(order, std::greater<>(), [&](std::uint32_t i) { return end_of(best_, i); });
    }
  }

  static constexpr int kRounds = 12;  // each takes as long as one order
  // Of buffers at placed ones, after which no more orders are tried: some seconds.
  static constexpr std::uint64_t kMostLooks = std::uint64_t{1} << 30;

  const PackTogether& task_;
  const std::size_t count_;
  Order fixed_;
  Order free_;
  Packing best_;
  Order best_order_;
  bool has_order_ = false;
  std::vector<Placed> placed_;
  std::uint64_t looks_ = 0;
};

}  // namespace

std::optional<Packing> pack_offsets(const PackTogether& task) { return Packer(task).run(); }

}  // namespace berth::internal::plan::parallel
