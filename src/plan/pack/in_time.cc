// SPDX-License-Identifier: Apache-2.0
#include "plan/pack/in_time.h"

#include <algorithm>
#include <numeric>

#include "plan/pack/by_step.h"
#include "plan/pack/ranges.h"

namespace berth::internal::plan {

namespace {

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
    ranges.add_space(kEndlessSpace);
    for (const std::uint32_t index : stack)
      if (!put(index, ranges.place(index, view[index], view.end(index), Choice::smallest)->offset)) return false;
    std::vector<std::uint32_t> deaths = stack;
    deaths.insert(deaths.end(), births.begin(), births.end());
    const auto begin = [&](std::uint32_t i) { return view.begin(i); };
    births = sorted_by_step(std::move(births), task_.part.steps, begin);
    sort_equal_steps(births, begin, [&](auto first, auto last) {
      std::sort(first, last, [&](std::uint32_t a, std::uint32_t b) {
        if (view.bytes(a) != view.bytes(b)) return view.bytes(a) > view.bytes(b);
        return view.end(a) != view.end(b) ? view.end(a) > view.end(b) : a < b;
      });
    });
    // What ends together leaves the same free ranges in any order.
    deaths = sorted_by_step(std::move(deaths), task_.part.steps + std::size_t{1}, [&](std::uint32_t i) { return view.end(i); });
    auto dead = deaths.begin();
    for (const std::uint32_t index : births) {
      for (; dead != deaths.end() && view.end(*dead) <= view.begin(index); ++dead) ranges.release(*dead);
      if (!put(index, ranges.place(index, view[index], view.end(index), choice)->offset)) return false;
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
