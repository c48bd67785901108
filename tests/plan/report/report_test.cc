// SPDX-License-Identifier: Apache-2.0
#include "berth/plan/report.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "base/text.h"
#include "html/report_data.h"
#include "plan/report/panels.h"
#include "plan/report/picture.h"
#include "plan/report/tables.h"
#include "support/errors.h"
#include "support/scale.h"

namespace berth::testing {

namespace text = internal::text;
namespace html = internal::html;
using namespace internal::plan;
namespace {

using html::AddressMap;
using internal::plan::draw_picture;
using internal::plan::plan_rects;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr std::uint64_t kHuge = 1'000'000'000'000'000'000;
const std::string kHostileBytes("</script><img src=x onerror=alert(1)>\x01\xff", 39);

MATCHER_P3(Rect, begin, end, bytes, "") {
  return arg.begin == std::uint64_t(begin) && arg.end == std::uint64_t(end) && arg.bytes == std::uint64_t(bytes);
}

MATCHER_P2(Named, name, note, "") { return arg.name == name && arg.note == note; }

// Each node reads what the one before wrote.
Graph chain(std::size_t nodes, std::size_t bytes) {
  Graph graph;
  ValueId last = graph.add_value({.name = "x", .bytes = bytes, .external = true});
  for (std::size_t i = 0; i < nodes; ++i) {
    const ValueId next = graph.add_value({.name = text::join("v", i), .bytes = bytes, .output = i + 1 == nodes});
    graph.add_node({.op = "Op", .inputs = {last}, .outputs = {next}});
    last = next;
  }
  return graph;
}

std::size_t count(std::string_view text, std::string_view part) {
  std::size_t found = 0;
  for (std::size_t at = text.find(part); at != std::string_view::npos; at = text.find(part, at + part.size())) ++found;
  return found;
}

std::vector<std::string> lines(const std::string& text) {
  std::vector<std::string> all;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = text.find('\n', at);
    all.push_back(text.substr(at, end - at));
    at = end + 1;
  }
  return all;
}

// Every character of a picture is one column wide.
std::size_t width(std::string_view line) {
  std::size_t columns = 0;
  for (; !line.empty(); ++columns) line.remove_prefix(std::max<std::size_t>(text::utf8_length(line), 1));
  return columns;
}

// ---- Buffers as rectangles.

TEST(PlanRects, AreOneForEachBuffer) {
  const auto rects = plan_rects(berth::plan(chain(3, 100)), 0);
  ASSERT_EQ(rects.size(), 3U);
  EXPECT_THAT(rects[0], AllOf(Rect(0, 2, 100), Named("v0", "")));
  EXPECT_THAT(rects[1], AllOf(Rect(1, 3, 100), Named("v1", "")));
  EXPECT_THAT(rects[2], AllOf(Rect(2, 3, 100), Named("v2", "an output")));
  EXPECT_EQ(rects[0].offset + rects[1].offset, 100U);
  EXPECT_EQ(rects[1].offset + rects[2].offset, 100U);
}

TEST(PlanRects, AreTheHullOfWhatSharesBytes) {
  Graph graph = chain(4, 100);
  for (GraphNode& node : graph.nodes) node.inplace = {{.output = 0, .input = 0}};
  EXPECT_THAT(plan_rects(berth::plan(graph), 0), ElementsAre(AllOf(Rect(0, 4, 100), Named("v0", "same bytes as v1, v2, v3; an output"))));
}

TEST(PlanRects, HoldTheRangesOfAWhole) {
  Graph graph = chain(2, 100);
  graph.values[2].output = false;
  const ValueId whole = graph.add_value({.name = "whole", .bytes = 200, .output = true});
  graph.add_node(
      {.op = "Concat",
       .inputs = {1, 2},
       .outputs = {whole},
       .views = {{.output = 0, .input = 0, .of_input = false}, {.output = 0, .input = 1, .offset_bytes = 100, .of_input = false}}});
  EXPECT_THAT(plan_rects(berth::plan(graph), 0), ElementsAre(AllOf(Rect(0, 3, 200), Named("v0", "same bytes as v1, whole; an output"))));
}

TEST(PlanRects, OfManySharersNameTheFirst) {
  const std::size_t nodes = scaled(20'000, 2000);
  Graph graph = chain(nodes, 8);
  for (GraphNode& node : graph.nodes) node.inplace = {{.output = 0, .input = 0}};
  EXPECT_THAT(
      plan_rects(berth::plan(graph), 0),
      ElementsAre(AllOf(Rect(0, nodes, 8), Named("v0", text::join("same bytes as v1, v2, v3 and ", nodes - 4, " more; an output")))));
}

TEST(PlanRects, LeaveOutOtherDevicesAndValuesWithoutBytes) {
  Graph graph = chain(3, 100);
  graph.values[2].device = graph.add_device("cuda:0");
  graph.values[3].bytes = 0;
  const Plan made = berth::plan(graph);
  EXPECT_THAT(plan_rects(made, 0), ElementsAre(Rect(0, 2, 100)));
  EXPECT_THAT(plan_rects(made, 1), ElementsAre(Rect(1, 3, 100)));
}

TEST(PlanRects, NameWhatHasNoName) {
  Graph graph = chain(1, 8);
  graph.values[1].name.clear();
  EXPECT_EQ(internal::plan::value_name(graph, 1), "value 1");
  EXPECT_EQ(internal::plan::step_name(graph, 0), "Op");
  graph.nodes[0].name = "first";
  EXPECT_EQ(internal::plan::step_name(graph, 0), "Op first");
  graph.nodes[0].name = graph.nodes[0].op = "";
  EXPECT_EQ(internal::plan::step_name(graph, 0), "node 0");
}

// ---- The picture.

TEST(Picture, ShowsWhatIsTaken) {
  const AddressMap map{.end = 20, .bytes = 4096, .boxes = {{0, 10, 0, 2048}, {5, 15, 2048, 2048}, {10, 20, 0, 1024}}};
  EXPECT_EQ(draw_picture(map, 27, 4),
            " live  ▄▄▄▄▄█████▆▆▆▆▆▂▂▂▂▂\n"
            "4 KiB ┤     ▒▒▒▒▒▒▒▒▒▒\n"
            "      │     ▒▒▒▒▒▒▒▒▒▒\n"
            "      │██████████\n"
            "  0 B ┤██████████▓▓▓▓▓▓▓▓▓▓\n"
            "      └────────────────────\n"
            "       step 0            20\n");
}

TEST(Picture, IsNoWiderThanAsked) {
  const AddressMap maps[] = {
      {},
      {.end = 1, .bytes = 1, .boxes = {{0, 1, 0, 1}}},
      {.begin = 4'000'000'000, .end = 4'000'000'100, .bytes = 4 * kHuge, .boxes = {{4'000'000'001, 4'000'000'050, 0, 4 * kHuge}}}};
  for (const AddressMap& map : maps)
    for (std::size_t columns = 0; columns < 100; ++columns)
      for (const std::string& line : lines(draw_picture(map, columns, 3))) ASSERT_LE(width(line), columns) << line;
}

TEST(Picture, HasItsRowsAndTheirLabels) {
  const AddressMap map{.end = 8, .bytes = 3 << 20, .boxes = {{0, 8, 0, 3 << 20}}};
  const auto drawn = lines(draw_picture(map, 40, 5));
  ASSERT_EQ(drawn.size(), 1U + 5 + 2);
  EXPECT_THAT(drawn[1], HasSubstr("3 MiB ┤█"));
  EXPECT_THAT(drawn[5], HasSubstr("0 B ┤█"));
  EXPECT_EQ(draw_picture(map, 0, 5), "");
  EXPECT_EQ(draw_picture(map, 40, 0), "");
  EXPECT_EQ(lines(draw_picture(map, 40, 1)).size(), 4U);
}

TEST(Picture, HoldsHugeSizes) {
  const AddressMap map{.end = 2, .bytes = 2 * kHuge, .boxes = {{0, 1, 0, 2 * kHuge}, {1, 2, kHuge, kHuge}, {1, 2, 0, 1}}};
  EXPECT_EQ(draw_picture(map, 2, 2), "█▄\n█▒\n█·\n");
}

TEST(Picture, TellsNeighboursApart) {
  AddressMap map{.end = 1, .bytes = 16};
  for (std::uint64_t i = 0; i < 16; ++i) map.boxes.push_back({0, 1, i, 1});
  const auto drawn = lines(draw_picture(map, 1, 16));
  for (std::size_t row = 2; row < drawn.size(); ++row) EXPECT_NE(drawn[row], drawn[row - 1]);
}

// ---- The whole, from a plan.

TEST(PlanReport, DrawsEveryBufferOnce) {
  const Plan made = berth::plan(chain(12, 4096));
  EXPECT_EQ(count(plan_svg(made), "<title>"), made.buffers().size());
  EXPECT_EQ(data_of(plan_html(made, "chain"), "map")["names"].size(), made.buffers().size());
  EXPECT_THAT(plan_picture(made), AllOf(HasSubstr("live"), HasSubstr("8 KiB ┤"), HasSubstr("step 0")));
  EXPECT_EQ(lines(plan_picture(made, 0, 60, 9)).size(), 12U);
}

TEST(PlanReport, HasTheFiguresAndTables) {
  const Plan made = berth::plan(chain(12, 4096));
  const std::string page = plan_html(made, "chain");
  for (const char* part : {"<h1>chain</h1>", "peak", "lower bound", "without reuse", "buffers", "strategy", "outcome", "optimal", "8 KiB",
                           "48 KiB", "Strategies", "At the peak of cpu:0", "Values without a location", "external"})
    EXPECT_THAT(page, HasSubstr(part));
}

TEST(PlanReport, IsTheSameForTheSamePlan) {
  const Plan made = berth::plan(chain(50, 100));
  EXPECT_EQ(plan_html(made, "a"), plan_html(made, "a"));
  EXPECT_EQ(plan_svg(made), plan_svg(made));
  EXPECT_EQ(plan_picture(made), plan_picture(made));
}

TEST(PlanReport, EscapesEveryName) {
  Graph graph = chain(3, 100);
  graph.name = graph.devices[0] = graph.values[2].name = graph.nodes[1].name = graph.nodes[1].op = kHostileBytes;
  const Plan made = berth::plan(graph);
  for (const std::string& drawn : {plan_html(made, kHostileBytes), plan_svg(made), plan_picture(made)}) {
    EXPECT_THAT(drawn, Not(HasSubstr("<img")));
    EXPECT_EQ(drawn.find_first_of("\x01\xff"), std::string::npos);
  }
  EXPECT_EQ(count(plan_html(made, kHostileBytes), "</script>"), 3U);  // the data of two figures, and the code
}

TEST(PlanReport, NeedsNoNetwork) {
  const Plan made = berth::plan(chain(3, 100));
  EXPECT_EQ(count(plan_html(made, "a"), "http:"), 0U);
  EXPECT_EQ(count(plan_svg(made), "http"), 1U);
}

TEST(PlanReport, OfNothingSaysSo) {
  const Plan made = berth::plan(Graph());
  EXPECT_EQ(plan_picture(made), "");
  EXPECT_THAT(plan_svg(made), HasSubstr("nothing to draw"));
  EXPECT_THAT(plan_html(made, "empty"), HasSubstr("No value has bytes in an arena."));
}

TEST(PlanReport, SaysThatThereIsNoPlan) {
  const Plan made = berth::plan(chain(3, 4096), {.capacity_bytes = 4096});
  ASSERT_FALSE(made.has_locations());
  EXPECT_EQ(plan_picture(made), "");
  EXPECT_THAT(plan_svg(made), HasSubstr("nothing to draw"));
  EXPECT_THAT(plan_html(made, "tight"), HasSubstr("There is no plan to draw: its outcome is infeasible."));
}

TEST(PlanReport, HasAPanelForEachDeviceWithBytes) {
  Graph graph = chain(4, 100);
  graph.add_device("sim:0");
  graph.values[2].device = graph.add_device("sim:1");
  const Plan made = berth::plan(graph);
  EXPECT_EQ(count(plan_svg(made), "class=\"ink title\""), 2U);
  EXPECT_EQ(count(plan_html(made, "two"), "data-kind=\"map\""), 2U);
  EXPECT_EQ(plan_picture(made, 1), "");
  EXPECT_THAT(plan_picture(made, 2), HasSubstr("100 B"));
  EXPECT_ERROR(plan_picture(made, 3), ArgumentError, ErrorCode::out_of_bounds);
}

TEST(PlanReport, HoldsHugeSizesAndManyBuffers) {
  EXPECT_THAT(plan_html(berth::plan(chain(3, kHuge)), "huge"), HasSubstr("888 PiB"));
  EXPECT_THAT(plan_picture(berth::plan(chain(1, kHuge))), HasSubstr("888 PiB ┤█"));
  const std::size_t nodes = scaled(100'000, 6000);
  const Plan made = berth::plan(chain(nodes, 64), {.strategy = std::string(plan_strategies().front().name)});
  EXPECT_THAT(plan_svg(made), HasSubstr("buffers are too small to be seen"));
  EXPECT_EQ(data_of(plan_html(made, "many"), "map")["names"].size(), nodes);
}

TEST(PlanReport, DrawsWhatEdgesBuyInAParallelPlan) {
  Graph graph;  // two chains of three nodes
  for (int c = 0; c < 2; ++c) {
    ValueId last = kNoValue;
    for (int i = 0; i < 3; ++i) {
      const ValueId next = graph.add_value({.bytes = 4096, .output = i == 2});
      GraphNode node{.outputs = {next}};
      if (last != kNoValue) node.inputs = {last};
      graph.add_node(std::move(node));
      last = next;
    }
  }
  const Plan made = plan(graph, {.parallel = 2, .most_edges = 4});
  ASSERT_EQ(made.trades().size(), 2U);
  const auto table = trades_table(made);
  ASSERT_EQ(table.rows.size(), 2U);
  EXPECT_EQ(table.rows[0][0].text, "0");
  EXPECT_EQ(table.rows[0][2].bar.front().share, 1.0);
  EXPECT_EQ(table.rows[1][2].bar.front().share, 0.75);
  EXPECT_LT(table.rows[0][4].bar.front().share, 1.0);
  EXPECT_EQ(table.rows[1][4].bar.front().share, 1.0);
  EXPECT_THAT(plan_html(made, "two"), HasSubstr("What edges buy"));
  EXPECT_THAT(plan_html(plan(graph), "two"), Not(HasSubstr("What edges buy")));
}

}  // namespace
}  // namespace berth::testing
