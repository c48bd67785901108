// SPDX-License-Identifier: Apache-2.0
// The plan of a backward range that was given the slots of the forward range put a new value into a slot whose value it
// still read: the slots said nothing of what lived in them. A shadow run of the second plan alone found nothing wrong.
#include <gtest/gtest.h>

#include <memory>
#include <vector>

#include "berth/plan/placement.h"
#include "berth/plan/plan.h"
#include "berth/plan/verify.h"
#include "support/errors.h"
#include "support/everything.h"

namespace berth::testing {
namespace {

TEST(KeptSlots, OfAnEarlierRangeAreNotOverwrittenWhileTheyAreRead) {
  auto graph = std::make_shared<Graph>();
  const ValueId x = graph->add_value({.name = "x", .bytes = 64, .external = true});
  const ValueId a = graph->add_value({.name = "a", .bytes = 64});
  const ValueId b = graph->add_value({.name = "b", .bytes = 64});
  const ValueId db = graph->add_value({.name = "db", .bytes = 64});
  const ValueId da = graph->add_value({.name = "da", .bytes = 64, .output = true});
  graph->add_node({.name = "forward a", .inputs = {x}, .outputs = {a}});
  graph->add_node({.name = "forward b", .inputs = {a}, .outputs = {b}});
  graph->add_node({.name = "backward b", .inputs = {b}, .outputs = {db}});
  graph->add_node({.name = "backward a", .inputs = {db, a}, .outputs = {da}});
  const Plan forward = plan(graph, {.strategy = "slots", .nodes = NodeRange{0, 2}});
  const std::vector<PlanSlot>& slots = forward.tables().slots;
  EXPECT_ERROR(plan(graph, {.strategy = "slots", .nodes = NodeRange{2, 4}, .slots = slots}), ArgumentError, ErrorCode::invalid_argument);

  const Plan wrong = plan(graph, {.strategy = "slots", .nodes = NodeRange{2, 4}, .slots = slots, .slots_are_free = true});
  ASSERT_TRUE(wrong.location(db).slot == forward.location(a).slot || wrong.location(db).slot == forward.location(b).slot);
  const std::vector<Placement> memory = place(std::vector{forward, wrong});
  EXPECT_TRUE(shadow_run(memory[1]).ok());
  EXPECT_FALSE(shadow_run(memory).ok());
  EXPECT_FALSE(verify_plans(std::vector{forward, wrong}).empty());

  const Plan backward = plan(graph, {.strategy = "slots", .nodes = NodeRange{2, 4}, .after = &forward});
  EXPECT_NE(backward.location(db).slot, forward.location(a).slot);
  EXPECT_NE(backward.location(db).slot, forward.location(b).slot);
  EXPECT_TRUE(verify_plans(std::vector{forward, backward}).empty());
  EXPECT_TRUE(shadow_run(place(std::vector{forward, backward})).ok());
}

}  // namespace
}  // namespace berth::testing
