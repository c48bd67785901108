// SPDX-License-Identifier: Apache-2.0
#include "berth/plan/placement.h"

#include <gtest/gtest.h>

#include "support/errors.h"
#include "support/everything.h"

namespace berth::testing {
namespace {

struct Network {
  Graph graph;
  ValueId x = graph.add_value({.name = "x", .bytes = 64, .external = true});
  ValueId a = graph.add_value({.name = "a", .dtype = DType::f32, .shape = Shape{4, 8}});
  ValueId b = graph.add_value({.name = "b", .dtype = DType::f32, .shape = Shape{8, 4}});
  ValueId y = graph.add_value({.name = "y", .bytes = 100, .output = true});

  Network() {
    graph.add_node({.name = "n0", .inputs = {x}, .outputs = {a}});
    graph.add_node({.name = "n1", .inputs = {a}, .outputs = {b}});
    graph.add_node({.name = "n2", .inputs = {b}, .outputs = {y}});
  }
};

TEST(Placement, GivesEveryValueAStorage) {
  const Network net;
  const auto memory = track(direct("cpu"));
  const Placement placed = place(plan(net.graph), {{"cpu", memory}});
  EXPECT_EQ(memory->live().size(), 1U) << "one buffer for all";
  EXPECT_EQ(placed[net.a].shape(), (Shape{4, 8}));
  EXPECT_EQ(placed[net.a].dtype(), DType::f32);
  EXPECT_EQ(placed[net.y].dtype(), DType::u8) << "bytes where the graph does not say";
  EXPECT_EQ(placed[net.y].size_bytes(), 100U);
  EXPECT_TRUE(placed[net.a].is_view_of(placed[net.b]));
  EXPECT_EQ(static_cast<std::byte*>(placed[net.b].data_ptr()) - static_cast<std::byte*>(placed.arena(0).data()),
            static_cast<std::ptrdiff_t>(placed.plan().location(net.b).offset));
}

TEST(Placement, RefusesWhatHasNoPlaceAndSaysWhy) {
  const Network net;
  const Placement placed = place(plan(net.graph));
  EXPECT_ERROR(placed[net.x], ArgumentError, ErrorCode::invalid_argument);
  EXPECT_ERROR(placed[99], ArgumentError, ErrorCode::out_of_bounds);
  EXPECT_ERROR(placed.arena(1), ArgumentError, ErrorCode::out_of_bounds);
  EXPECT_ERROR(place(plan(net.graph, {.capacity_bytes = 1})), ArgumentError, ErrorCode::invalid_argument);
  EXPECT_ERROR(place(plan(net.graph), {{"cpu", direct("sim:0")}}), ArgumentError, ErrorCode::invalid_argument);
  EXPECT_ERROR(place(plan(net.graph), {{"sim:0", direct("sim:0")}}), ArgumentError, ErrorCode::invalid_argument);
  EXPECT_ERROR(place(plan(net.graph), {{"cpu", nullptr}}), ArgumentError, ErrorCode::invalid_argument);
}

TEST(Placement, ASmallerShapeIsServedALargerOneRefused) {
  const Network net;
  const Placement placed = place(plan(net.graph));
  EXPECT_EQ(placed.at(net.a, DType::f32, {2, 8}).data_ptr(), placed[net.a].data_ptr());
  EXPECT_ERROR(placed.at(net.a, DType::f32, {5, 8}), ArgumentError, ErrorCode::limit_exceeded);
}

TEST(Placement, DoesNotMoveWhileStoragesAreOut) {
  const Network net;
  Placement placed = place(plan(net.graph));
  {
    const Storage out = placed[net.a];
    out.fill(3.0F);
    EXPECT_ERROR(placed.move(0, direct("cpu")), AccessError, ErrorCode::busy);
    EXPECT_TRUE(out.is_view_of(placed[net.a])) << "nothing has changed";
  }
  const auto fresh = track(direct("cpu"));
  placed.move(0, fresh);
  EXPECT_EQ(fresh->live().size(), 1U);
  EXPECT_EQ(placed[net.a].item<float>({3, 7}), 3.0F) << "contents move too";
  EXPECT_ERROR(placed.move(0, direct("sim:0")), ArgumentError, ErrorCode::invalid_argument);
}

TEST(Placement, IsAlignedAsTheValuesAre) {
  Network net;
  net.graph.values[net.b].alignment = 4096;
  const Placement placed = place(plan(net.graph));
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(placed[net.b].data_ptr()) % 4096, 0U);
}

TEST(Placement, OutlivesItsAllocatorAndIsOnAnyDevice) {
  Network net;
  net.graph.devices = {"sim:0"};
  Placement placed = place(plan(net.graph));
  EXPECT_EQ(placed[net.a].device(), Device("sim:0"));
  EXPECT_TRUE(shadow_run(placed).ok());
}

TEST(ShadowRun, CountsWhatItDoes) {
  const Network net;
  const ShadowReport report = shadow_run(place(plan(net.graph)));
  EXPECT_TRUE(report.ok());
  EXPECT_EQ(report.nodes, 3U);
  EXPECT_EQ(report.bytes_written, 128U + 128 + 100);
  EXPECT_EQ(report.bytes_read, 128U + 128 + 100);
}

TEST(ShadowRun, RefusesOrdersThatTheGraphDoesNotAllow) {
  const Network net;
  const Placement placed = place(plan(net.graph));
  for (const std::vector<NodeId>& order : {std::vector<NodeId>{0, 1}, {0, 1, 1}, {0, 1, 9}, {1, 0, 2}})
    EXPECT_ERROR(shadow_run(placed, order), ArgumentError, ErrorCode::invalid_argument);
}

// An order that the graph allows, but not a plan for nodes in order: the shadow run must notice.
TEST(ShadowRun, FindsWhatIsOverwrittenEarly) {
  Graph graph;
  const ValueId a = graph.add_value({.name = "a", .bytes = 64});
  const ValueId b = graph.add_value({.name = "b", .bytes = 8, .output = true});
  const ValueId c = graph.add_value({.name = "c", .bytes = 64, .output = true});
  graph.add_node({.outputs = {a}});
  graph.add_node({.name = "reader", .inputs = {a}, .outputs = {b}});
  graph.add_node({.name = "writer", .outputs = {c}});
  const Placement placed = place(plan(graph));
  ASSERT_EQ(placed.plan().location(c).offset, placed.plan().location(a).offset);
  EXPECT_TRUE(shadow_run(placed).ok());
  const ShadowReport wrong = shadow_run(placed, {0, 2, 1});
  ASSERT_EQ(wrong.wrong.size(), 1U);
  EXPECT_NE(wrong.wrong[0].find("'reader' reads value 'a'"), std::string::npos) << wrong.wrong[0];
}

}  // namespace
}  // namespace berth::testing
