// SPDX-License-Identifier: Apache-2.0
#include "berth/plan/slot_allocator.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <vector>

#include "base/random.h"
#include "support/errors.h"
#include "support/everything.h"
#include "support/scale.h"

// Slots that are requested and released by hand, and the plain rule of older planners, which requests them node by node.
namespace berth::testing {

using namespace internal::base;

namespace {

TEST(SlotAllocator, HandsOnWhatWasReleased) {
  SlotAllocator slots(1);
  const std::uint32_t a = slots.request({.bytes = 64});
  const std::uint32_t b = slots.request({.bytes = 64});
  EXPECT_NE(a, b);
  slots.release(a);
  EXPECT_EQ(slots.request({.bytes = 64}), a);
  EXPECT_EQ(slots.slots().size(), 2U);
}

TEST(SlotAllocator, TakesTheSmallestThatIsLargeEnoughTheFirstReleasedOfEquals) {
  SlotAllocator slots(4);
  std::vector<std::uint32_t> given;
  for (const std::size_t bytes : {300U, 100U, 100U, 100U}) given.push_back(slots.request({.bytes = bytes}));
  for (const std::size_t i : {0U, 3U, 1U, 2U}) slots.release(given[i]);
  EXPECT_EQ(slots.request({.bytes = 80}), given[3]);
  EXPECT_EQ(slots.request({.bytes = 80}), given[1]);
  EXPECT_EQ(slots.request({.bytes = 101}), given[0]);
}

TEST(SlotAllocator, GrowsTheLargestThatIsTooSmallTheLastReleasedOfEquals) {
  SlotAllocator slots(4);
  std::vector<std::uint32_t> given;
  for (const std::size_t bytes : {30U, 40U, 40U, 200U}) given.push_back(slots.request({.bytes = bytes}));
  for (const std::size_t i : {0U, 1U, 2U}) slots.release(given[i]);
  EXPECT_EQ(slots.request({.bytes = 100}), given[2]);
  EXPECT_EQ(slots.slots()[given[2]].bytes, 100U);
  EXPECT_EQ(slots.request({.bytes = 164}), 4U) << "a quarter of it is more than 40";
}

TEST(SlotAllocator, KeepsDevicesApartAndPrefersAColour) {
  SlotAllocator slots(2);
  const std::uint32_t far = slots.request({.bytes = 64, .device = 3});
  const std::uint32_t red = slots.request({.bytes = 64, .colour = 1});
  const std::uint32_t blue = slots.request({.bytes = 64, .colour = 2});
  for (const std::uint32_t slot : {far, red, blue}) slots.release(slot);
  EXPECT_EQ(slots.request({.bytes = 64, .colour = 2}), blue);
  EXPECT_EQ(slots.request({.bytes = 64, .colour = 7}), red) << "none has it";
  EXPECT_EQ(slots.request({.bytes = 64}), 3U);
  EXPECT_EQ(slots.request({.bytes = 64, .device = 3}), far);
}

TEST(SlotAllocator, WithRangeZeroUsesNoSlotTwice) {
  SlotAllocator slots(0);
  slots.release(slots.request({.bytes = 64}));
  EXPECT_EQ(slots.request({.bytes = 64}), 1U);
}

TEST(SlotAllocator, AnEmptyValueNeedsNone) {
  SlotAllocator slots;
  const std::uint32_t none = slots.request({});
  EXPECT_EQ(none, kNoSlot);
  slots.release(none);
  EXPECT_TRUE(slots.laid_out().empty());
}

TEST(SlotAllocator, LaysSlotsOutByFallingAlignment) {
  SlotAllocator slots;
  (void)slots.request({.bytes = 4, .alignment = 4});
  (void)slots.request({.bytes = 64, .alignment = 64});
  const std::vector<PlanSlot> table = slots.laid_out();
  EXPECT_EQ(table[1].offset, 0U);
  EXPECT_EQ(table[0].offset, 64U);
}

TEST(SlotAllocator, ASlotThatIsOccupiedStaysAsItIs) {
  SlotAllocator slots(16, {{.bytes = 32, .offset = 0}, {.bytes = 40, .offset = 100}, {.bytes = 24, .offset = 32}});
  slots.occupy(1);
  EXPECT_EQ(slots.request({.bytes = 48}), 0U) << "of the free ones, it is the largest that is too small";
  slots.release(1);
  EXPECT_EQ(slots.request({.bytes = 50}), 2U) << "the one that was occupied may be used, and does not grow";
  EXPECT_EQ(slots.request({.bytes = 40, .alignment = 8}), 3U) << "it does not lie at a multiple of 8";
  EXPECT_EQ(slots.request({.bytes = 40, .alignment = 4}), 1U);
  const std::vector<PlanSlot> table = slots.laid_out();
  EXPECT_EQ(table[1], (PlanSlot{0, 40, 100}));
  EXPECT_EQ(table[2].offset, 0U) << "the largest first, below it";
  EXPECT_EQ(table[0].offset, 50U);
  EXPECT_EQ(table[3].offset, 144U);
}

TEST(SlotAllocator, RefusesWhatCannotBe) {
  EXPECT_ERROR(SlotAllocator(-1), ArgumentError, ErrorCode::invalid_argument);
  EXPECT_ERROR(SlotAllocator(1 << 21), ArgumentError, ErrorCode::invalid_argument);
  EXPECT_ERROR(SlotAllocator(16, {{.bytes = SIZE_MAX}}), ArgumentError, ErrorCode::size_overflow);
  SlotAllocator slots;
  EXPECT_ERROR(slots.request({.bytes = 8, .alignment = 3}), ArgumentError, ErrorCode::invalid_alignment);
  EXPECT_ERROR(slots.request({.bytes = SIZE_MAX}), ArgumentError, ErrorCode::size_overflow);
  const std::uint32_t slot = slots.request({.bytes = 8});
  EXPECT_ERROR(slots.occupy(slot), ArgumentError, ErrorCode::invalid_argument);
  slots.release(slot);
  EXPECT_ERROR(slots.release(slot), ArgumentError, ErrorCode::invalid_argument);
  EXPECT_ERROR(slots.release(9), ArgumentError, ErrorCode::invalid_argument);
}

// ---- The plain rule.

Plan plain(const Graph& graph, int match_range) { return plan(graph, {.strategy = "slots_plain", .match_range = match_range}); }

TEST(PlainSlots, TheLargestOutputRequestsFirst) {
  Graph graph;
  const ValueId a = graph.add_value({.name = "a", .bytes = 16});
  const ValueId b = graph.add_value({.name = "b", .bytes = 8});
  const ValueId c = graph.add_value({.name = "c", .bytes = 16, .output = true});
  graph.add_node({.outputs = {a}});
  graph.add_node({.inputs = {a}});
  graph.add_node({.inputs = {}, .outputs = {b, c}});
  const Plan made = plain(graph, 2);
  EXPECT_EQ(made.location(c).slot, made.location(a).slot);
  EXPECT_EQ(made.peak_bytes(), 24U);
}

TEST(PlainSlots, ANodeWritesBeforeItReleasesItsInputs) {
  Graph graph;
  const ValueId a = graph.add_value({.name = "a", .bytes = 16});
  const ValueId b = graph.add_value({.name = "b", .bytes = 16});
  const ValueId c = graph.add_value({.name = "c", .bytes = 16, .output = true});
  graph.add_node({.outputs = {a}});
  graph.add_node({.inputs = {a}, .outputs = {b}});
  graph.add_node({.inputs = {b}, .outputs = {c}});
  const Plan made = plain(graph, 16);
  EXPECT_NE(made.location(b).slot, made.location(a).slot);
  EXPECT_EQ(made.location(c).slot, made.location(a).slot);
}

TEST(PlainSlots, TakesInPlaceOnlyWhatIsAsLargeAndDies) {
  Graph graph;
  const ValueId a = graph.add_value({.name = "a", .bytes = 16});
  const ValueId same = graph.add_value({.name = "same", .bytes = 16});
  const ValueId less = graph.add_value({.name = "less", .bytes = 8});
  const ValueId end = graph.add_value({.name = "end", .bytes = 8, .output = true});
  graph.add_node({.outputs = {a}});
  graph.add_node({.inputs = {a}, .outputs = {same}, .inplace = {{}}});
  graph.add_node({.inputs = {same}, .outputs = {less}, .inplace = {{}}});
  graph.add_node({.inputs = {less}, .outputs = {end}, .inplace = {{}}});
  const Plan made = plain(graph, 1);
  EXPECT_EQ(made.location(same).reuse, Reuse::in_place);
  EXPECT_EQ(made.location(less).reuse, Reuse::own) << "it is smaller";
  EXPECT_EQ(made.location(end).slot, made.location(less).slot);
  EXPECT_EQ(made.peak_bytes(), 24U);
}

TEST(PlainSlots, AreForNodesInOrder) {
  EXPECT_ERROR(plan(Graph{}, {.strategy = "slots_plain", .parallel = 2}), ArgumentError, ErrorCode::invalid_argument);
}

// The rule again, in lists: the sum of all slots.
class SlowRule {
 public:
  SlowRule(const Graph& graph, std::size_t range) : graph_(graph), range_(range), reads_(graph.values.size(), 0) {
    for (ValueId v = 0; v < graph.values.size(); ++v) reads_[v] = graph.values[v].output ? 1 : 0;
    for (const GraphNode& node : graph.nodes)
      for (std::size_t i = 0; i < node.inputs.size(); ++i)
        if (!ignores(node, i)) ++reads_[node.inputs[i]];
    slot_.assign(graph.values.size(), kNoSlot);
  }

  std::size_t run() {
    for (const GraphNode& node : graph_.nodes) step(node);
    return std::accumulate(bytes_.begin(), bytes_.end(), std::size_t{0});
  }

 private:
  static bool ignores(const GraphNode& node, std::size_t i) {
    return std::count(node.ignored_inputs.begin(), node.ignored_inputs.end(), i) != 0;
  }
  std::size_t size(ValueId v) const { return *graph_.values[v].bytes; }

  void step(const GraphNode& node) {
    std::vector<ValueId> taken;
    for (const InplaceOption& option : node.inplace) {
      const ValueId in = node.inputs[option.input];
      const ValueId out = node.outputs[option.output];
      const bool is_free = std::find(taken.begin(), taken.end(), in) == taken.end() && slot_[out] == kNoSlot;
      if (!is_free || ignores(node, option.input) || reads_[out] == 0 || size(out) != size(in)) continue;
      if (uses_[slot_[in]] != 1 && !option.identity) continue;
      taken.push_back(in);
      slot_[out] = slot_[in];
      uses_[slot_[out]] += reads_[out];
    }
    std::vector<ValueId> rest;
    for (const ValueId v : node.outputs)
      if (slot_[v] == kNoSlot) rest.insert(rest.begin(), v);
    std::stable_sort(rest.begin(), rest.end(), [&](ValueId a, ValueId b) { return size(a) > size(b); });
    for (const ValueId v : rest) {
      slot_[v] = request(size(v));
      uses_[slot_[v]] = reads_[v];
    }
    for (std::size_t i = 0; i < node.inputs.size(); ++i)
      if (!ignores(node, i) && --uses_[slot_[node.inputs[i]]] == 0) free_.push_back(slot_[node.inputs[i]]);
    for (const ValueId v : node.outputs)
      if (uses_[slot_[v]] == 0) free_.push_back(slot_[v]);
  }

  std::uint32_t request(std::size_t bytes) {
    std::size_t larger = SIZE_MAX;
    std::size_t smaller = SIZE_MAX;
    for (std::size_t i = 0; i < free_.size(); ++i) {
      const std::size_t has = bytes_[free_[i]];
      if (has >= bytes && has <= bytes * range_ && (larger == SIZE_MAX || has < bytes_[free_[larger]])) larger = i;
      if (has < bytes && has >= bytes / range_ && (smaller == SIZE_MAX || has >= bytes_[free_[smaller]])) smaller = i;
    }
    const std::size_t found = range_ == 0 ? SIZE_MAX : larger != SIZE_MAX ? larger : smaller;
    if (found == SIZE_MAX) {
      bytes_.push_back(bytes);
      uses_.push_back(0);
      return static_cast<std::uint32_t>(bytes_.size() - 1);
    }
    const std::uint32_t slot = free_[found];
    free_.erase(free_.begin() + static_cast<std::ptrdiff_t>(found));
    bytes_[slot] = std::max(bytes_[slot], bytes);
    return slot;
  }

  const Graph& graph_;
  const std::size_t range_;
  std::vector<std::size_t> reads_;
  std::vector<std::uint32_t> slot_;
  std::vector<std::size_t> bytes_;   // of each slot
  std::vector<std::size_t> uses_;    // reads that are left of the values in each slot
  std::vector<std::uint32_t> free_;  // in the order of their release
};

// Values of plain bytes, with in-place and identity options, several outputs a node, ignored inputs and dead outputs.
Graph plain_graph(Random& random) {
  Graph graph;
  std::vector<ValueId> ready;
  const std::size_t spread = random.one_in(2) ? 1000 : 8;
  for (std::uint64_t left = 5 + random.below(60); left > 0; --left) {
    GraphNode node;
    for (std::uint64_t i = random.below(4); i > 0 && !ready.empty(); --i)
      node.inputs.push_back(ready[ready.size() - 1 - random.below(std::min<std::size_t>(ready.size(), 6))]);
    for (std::uint64_t i = 1 + random.below(3); i > 0; --i)
      node.outputs.push_back(graph.add_value({.bytes = 1 + random.below(spread), .output = random.one_in(12)}));
    for (std::uint32_t i = 0; i < node.inputs.size(); ++i) {
      if (random.one_in(10)) node.ignored_inputs.push_back(i);
      const auto o = static_cast<std::uint32_t>(random.below(node.outputs.size()));
      if (random.one_in(2)) graph.values[node.outputs[o]].bytes = graph.values[node.inputs[i]].bytes;
      if (random.one_in(2)) node.inplace.push_back({o, i, random.one_in(4)});
    }
    ready.insert(ready.end(), node.outputs.begin(), node.outputs.end());
    graph.add_node(std::move(node));
  }
  return graph;
}

TEST(PlainSlots, AreNeverSmallerThanTheStrategyOfSlots) {
  Random random(seed());
  const std::uint64_t runs = scaled(6'000, 1'200);
  std::uint64_t taken = 0;
  for (std::uint64_t i = 0; i < runs; ++i) {
    const Graph graph = plain_graph(random);
    const int range = std::vector{1, 2, 4, 8, 16}[random.below(5)];
    const std::size_t rule = SlowRule(graph, static_cast<std::size_t>(range)).run();
    ASSERT_EQ(plain(graph, range).peak_bytes(), rule) << "run " << i;
    const Plan ours = plan(graph, {.strategy = "slots", .match_range = range});
    ASSERT_LE(ours.peak_bytes(), rule) << "run " << i;
    taken += ours.strategy() == "slots_plain";
  }
  EXPECT_GT(taken, 0U) << "the plain rule is never needed";
  did(std::to_string(runs) + " graphs, " + std::to_string(taken) + " of them by the plain rule");
}

}  // namespace
}  // namespace berth::testing
