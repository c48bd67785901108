// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <bit>
#include <numeric>
#include <optional>

#include "base/allowance.h"
#include "berth/base/checked.h"
#include "plan/parallel/pack.h"

namespace berth::internal::plan::parallel {

namespace {

class SlotsApart {
 public:
  SlotsApart(const SlotsTask& task, const std::vector<Conflicts>& conflicts) : task_(task), conflicts_(conflicts) {
    out_.slot.assign(task.buffers.size(), kNoSlot);
    for (const PlanSlot& slot : task.given.slots) add({slot.device, slot.bytes, 0});
  }

  SlotsPacking run() && {
    for (std::uint32_t device = 0; device < conflicts_.size(); ++device) fill(device);
    lay_out();
    return std::move(out_);
  }

 private:
  const PackBuffer& at(const Conflicts& conflicts, std::size_t i) const { return task_.buffers[conflicts.buffer(i)]; }

  std::uint32_t add(PlanSlot slot) {
    out_.slots.push_back(slot);
    colour_.push_back(UINT32_MAX);
    alignment_.push_back(1);
    busy_.push_back(0);
    return static_cast<std::uint32_t>(out_.slots.size() - 1);
  }

  // The largest output of a node first: it has the fewest candidates.
  void fill(std::uint32_t device) {
    const Conflicts& conflicts = conflicts_[device];
    std::vector<std::size_t> order(conflicts.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::ranges::stable_sort(order, [&](std::size_t a, std::size_t b) {
      const PackBuffer& one = at(conflicts, a);
      const PackBuffer& other = at(conflicts, b);
      return one.begin != other.begin ? one.begin < other.begin : one.bytes > other.bytes;
    });
    std::vector<std::uint64_t> placed((conflicts.size() + 63) / 64);
    for (const std::size_t i : order) {
      base::checkpoint_now();
      mark_busy(conflicts, i, placed);
      give(device, conflicts.buffer(i));
      placed[i / 64] |= std::uint64_t{1} << (i % 64);
    }
  }

  void mark_busy(const Conflicts& conflicts, std::size_t i, const std::vector<std::uint64_t>& placed) {
    ++turn_;
    for (std::size_t word = 0; word < placed.size(); ++word)
      for (std::uint64_t bits = placed[word] & conflicts.row(i)[word]; bits != 0; bits &= bits - 1)
        busy_[out_.slot[conflicts.buffer(word * 64 + static_cast<std::size_t>(std::countr_zero(bits)))]] = turn_;
  }

  void give(std::uint32_t device, std::uint32_t index) {
    const PackBuffer& buffer = task_.buffers[index];
    const std::uint32_t colour = task_.colours.empty() ? UINT32_MAX : task_.colours[index];
    std::uint32_t slot = find(device, buffer.bytes, colour);
    if (slot == kNoSlot) slot = add({device, buffer.bytes, 0});
    out_.slots[slot].bytes = std::max(out_.slots[slot].bytes, buffer.bytes);
    alignment_[slot] = std::max<std::size_t>(alignment_[slot], buffer.alignment);
    colour_[slot] = colour;
    out_.slot[index] = slot;
  }

  // Best fit: the smallest slot that is large enough, else the largest that is too small, which grows; of each kind,
  // one of the same colour where there is one.
  std::uint32_t find(std::uint32_t device, std::size_t bytes, std::uint32_t colour) const {
    if (task_.match_range == 0) return kNoSlot;
    const auto range = static_cast<std::size_t>(task_.match_range);
    const std::size_t most = try_multiply(bytes, range).value_or(SIZE_MAX);
    std::uint32_t best = kNoSlot;
    for (std::uint32_t slot = 0; slot < out_.slots.size(); ++slot) {
      const PlanSlot& one = out_.slots[slot];
      if (one.device != device || busy_[slot] == turn_ || one.bytes > most || one.bytes < bytes / range) continue;
      if (best == kNoSlot || is_better(slot, best, bytes, colour)) best = slot;
    }
    return best;
  }

  bool is_better(std::uint32_t slot, std::uint32_t best, std::size_t bytes, std::uint32_t colour) const {
    const std::size_t mine = out_.slots[slot].bytes;
    const std::size_t its = out_.slots[best].bytes;
    if ((mine >= bytes) != (its >= bytes)) return mine >= bytes;
    if ((colour_[slot] == colour) != (colour_[best] == colour)) return colour_[slot] == colour;
    return mine >= bytes ? mine < its : mine > its;
  }

  // Slots of an earlier plan first, in their order; the others by falling alignment, which leaves the fewest gaps.
  void lay_out() {
    std::vector<std::size_t> order(out_.slots.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::stable_sort(order.begin() + static_cast<std::ptrdiff_t>(task_.given.slots.size()), order.end(),
                     [&](std::size_t a, std::size_t b) { return alignment_[a] > alignment_[b]; });
    std::vector<std::size_t> tops(conflicts_.size(), 0);
    for (const std::size_t i : order) {
      PlanSlot& slot = out_.slots[i];
      slot.offset = checked_align_up(tops[slot.device], alignment_[i], "the bytes of all slots");
      tops[slot.device] = checked_add(slot.offset, slot.bytes, "the bytes of all slots");
    }
    for (const std::size_t top : tops) out_.total_bytes = checked_add(out_.total_bytes, top, "the bytes of all slots");
  }

  const SlotsTask& task_;
  const std::vector<Conflicts>& conflicts_;
  SlotsPacking out_;
  std::vector<std::uint32_t> colour_;   // of the last buffer of each slot
  std::vector<std::size_t> alignment_;  // the greatest of its buffers
  std::vector<std::size_t> busy_;       // the last turn in which a buffer in it conflicts
  std::size_t turn_ = 0;
};

}  // namespace

SlotsPacking pack_slots_apart(const SlotsTask& task, const std::vector<Conflicts>& conflicts) { return SlotsApart(task, conflicts).run(); }

}  // namespace berth::internal::plan::parallel
