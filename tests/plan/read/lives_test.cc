// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <tuple>

#include "base/random.h"
#include "berth/plan/read_graph.h"
#include "support/errors.h"
#include "support/scale.h"

namespace berth::testing {

using namespace internal;
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

std::vector<std::string> node_names(const Graph& graph) {
  std::vector<std::string> names;
  for (const GraphNode& node : graph.nodes) names.push_back(node.name);
  return names;
}

TEST(ReadLives, MakesANodeOfEachStretchBetweenBirthsAndDeaths) {
  const Graph graph = read_lives_csv("id,lower,upper,size\na,0,5,100\nb,2,6,7\n");
  ASSERT_EQ(graph.values.size(), 2U);
  EXPECT_EQ(graph.values[0].name, "a");
  EXPECT_EQ(graph.values[0].bytes, 100U);
  EXPECT_EQ(graph.values[1].bytes, 7U);
  ASSERT_THAT(node_names(graph), ElementsAre("0", "2", "5"));
  EXPECT_THAT(graph.nodes[0].outputs, ElementsAre(0));
  EXPECT_THAT(graph.nodes[0].inputs, IsEmpty());
  EXPECT_THAT(graph.nodes[1].outputs, ElementsAre(1));
  EXPECT_THAT(graph.nodes[1].inputs, ElementsAre(0));
  EXPECT_THAT(graph.nodes[2].outputs, IsEmpty());
  EXPECT_THAT(graph.nodes[2].inputs, ElementsAre(1));
}

TEST(ReadLives, LeavesOutStretchesInWhichNothingLives) {
  const Graph graph = read_lives_csv("id,lower,upper,size\na,0,1,1\nb,1000,2000,1\nc,1000,3000,1");
  EXPECT_THAT(node_names(graph), ElementsAre("0", "1000", "2000"));
  EXPECT_THAT(graph.nodes[2].inputs, ElementsAre(2));
}

TEST(ReadLives, ABufferOfOneStretchIsWrittenAndNotRead) {
  const Graph graph = read_lives_csv("id,lower,upper,size\na,3,4,1\nb,4,5,1\n");
  ASSERT_THAT(node_names(graph), ElementsAre("3", "4"));
  for (const GraphNode& node : graph.nodes) EXPECT_THAT(node.inputs, IsEmpty());
}

TEST(ReadLives, ReadsColumnsInAnyOrder) {
  const Graph graph = read_lives_csv("size,alignment,upper,id,lower\n4096,64,9,x,1\n8,,5,y,1\n");
  EXPECT_EQ(graph.values[0].name, "x");
  EXPECT_EQ(graph.values[0].bytes, 4096U);
  EXPECT_EQ(graph.values[0].alignment, 64U);
  EXPECT_EQ(graph.values[1].alignment, 0U);
  EXPECT_THAT(node_names(graph), ElementsAre("1", "5"));
}

TEST(ReadLives, KeepsOffsetsOnlyWhereAsked) {
  const std::string csv = "id,lower,upper,size,offset\na,0,1,8,64\nb,0,1,8,\n";
  EXPECT_EQ(read_lives_csv(csv).values[0].fixed_offset, std::nullopt);
  const Graph fixed = read_lives_csv(csv, "lives", {.fixed_offsets = true});
  EXPECT_EQ(fixed.values[0].fixed_offset, 64U);
  EXPECT_EQ(fixed.values[1].fixed_offset, std::nullopt);
  EXPECT_ERROR(read_lives_csv("id,lower,upper,size\na,0,1,8\n", "lives", {.fixed_offsets = true}), FormatError, ErrorCode::format_error);
}

TEST(ReadLives, TakesWindowsLineEndsAMarkAndEmptyLines) {
  const Graph graph = read_lives_csv("\xef\xbb\xbfid,lower,upper,size\r\n\r\na,0,2,1\r\n\nb,1,2,0");
  EXPECT_EQ(graph.values.size(), 2U);
  EXPECT_EQ(graph.nodes.size(), 2U);
  EXPECT_TRUE(read_lives_csv("id,lower,upper,size").nodes.empty());
}

TEST(ReadLives, TakesTheLargestTimes) {
  const Graph graph = read_lives_csv("id,lower,upper,size\na,0,18446744073709551615,9223372036854775807\n");
  EXPECT_EQ(graph.nodes.size(), 1U);
}

// Each error names the line at fault.
TEST(ReadLives, RefusesABadLineAndSaysWhich) {
  const std::string header = "id,lower,upper,size\n";
  const std::pair<std::string, const char*> bad[] = {
      {"", "0"},
      {"\n\n", "2"},
      {"id,lower,upper\na,0,1\n", "1"},
      {"id,lower,upper,size,colour\na,0,1,8,red\n", "1"},
      {"id,lower,upper,size,size\na,0,1,8,8\n", "1"},
      {"id,lower,upper,size,\na,0,1,8,\n", "1"},
      {"id, lower,upper,size\na,0,1,8\n", "1"},
      {"a,0,1,8\n", "1"},
      {header + "a,0,1\n", "2"},
      {header + "a,0,1,8,9\n", "2"},
      {header + "a,0,1,8\n\nb,0,1,8,\n", "4"},
      {header + ",0,1,8\n", "2"},
      {header + "\xff,0,1,8\n", "2"},
      {header + "a,-1,1,8\n", "2"},
      {header + "a,0,-1,8\n", "2"},
      {header + "a,0,1,-8\n", "2"},
      {header + "a,0,1,8.5\n", "2"},
      {header + "a,0,1, 8\n", "2"},
      {header + "a,,1,8\n", "2"},
      {header + "a,0,18446744073709551616,8\n", "2"},
      {header + "a,0,1,9223372036854775808\n", "2"},
      {header + "\"a,b\",0,1,8\n", "2"},
      {"id,lower,upper,size,alignment\na,0,1,8,x\n", "2"},
      {"\x1f\x8b\x08 packed", "1"},
  };
  for (const auto& [text, line] : bad) {
    EXPECT_ERROR(read_lives_csv(text, "bad.csv"), FormatError, ErrorCode::format_error);
    try {
      read_lives_csv(text, "bad.csv");
    } catch (const Error& error) {
      EXPECT_EQ(error.fact("line"), line) << error.what();
      EXPECT_NE(std::string(error.what()).find("bad.csv"), std::string::npos) << error.what();
    }
  }
}

TEST(ReadLives, RefusesALifeThatEndsBeforeItBegins) {
  EXPECT_ERROR(read_lives_csv("id,lower,upper,size\na,5,4,8\n"), FormatError, ErrorCode::format_error);
  EXPECT_ERROR(read_lives_csv("id,lower,upper,size\na,5,5,8\n"), FormatError, ErrorCode::format_error);
}

TEST(ReadLives, RefusesAnIdThatIsThereTwice) {
  const char* csv = "id,lower,upper,size\na,0,1,8\nb,0,1,8\na,5,6,8\n";
  EXPECT_ERROR(read_lives_csv(csv), ArgumentError, ErrorCode::duplicate_value);
  try {
    read_lives_csv(csv);
  } catch (const Error& error) {
    EXPECT_EQ(error.fact("line"), "4");
    EXPECT_EQ(error.fact("value"), "a");
  }
}

TEST(ReadLives, RefusesAnAlignmentThatIsNoPowerOfTwo) {
  for (const char* alignment : {"0", "3", "48"})
    EXPECT_ERROR(read_lives_csv(std::string("id,lower,upper,size,alignment\na,0,1,8,") + alignment), ArgumentError,
                 ErrorCode::invalid_alignment);
}

// Two values are live at the same time in the graph exactly when their lifetimes in the file overlap.
TEST(ReadLives, KeepsWhoLivesTogether) {
  Random random(seed());
  const std::uint64_t runs = scaled(2000, 20);
  for (std::uint64_t run = 0; run < runs; ++run) {
    const std::uint64_t last = 2 + random.below(30);
    std::vector<std::pair<std::uint64_t, std::uint64_t>> lives(1 + random.below(12));
    std::string csv = "id,lower,upper,size\n";
    for (std::size_t i = 0; i < lives.size(); ++i) {
      const std::uint64_t lower = random.below(last - 1);
      lives[i] = {lower, lower + 1 + random.below(last - lower)};
      csv += std::to_string(i) + ',' + std::to_string(lives[i].first) + ',' + std::to_string(lives[i].second) + ",1\n";
    }
    const Graph graph = read_lives_csv(csv);
    ASSERT_NO_THROW(graph.validate());
    std::vector<NodeRange> in_nodes(lives.size());
    for (NodeId n = 0; n < graph.nodes.size(); ++n) {
      for (const ValueId v : graph.nodes[n].outputs) in_nodes[v] = {n, n + 1};
      for (const ValueId v : graph.nodes[n].inputs) in_nodes[v].end = n + 1;
    }
    for (std::size_t a = 0; a < lives.size(); ++a)
      for (std::size_t b = 0; b < lives.size(); ++b)
        ASSERT_EQ(lives[a].first < lives[b].second && lives[b].first < lives[a].second,
                  in_nodes[a].begin < in_nodes[b].end && in_nodes[b].begin < in_nodes[a].end)
            << csv;
  }
  did(std::to_string(runs) + " sets of lives");
}

TEST(ReadLives, ReadsAQuarterOfAMillionRows) {
  Random random(seed());
  const std::uint64_t rows = scaled(260'000, 1000);
  std::string csv = "id,lower,upper,size\n";
  for (std::uint64_t i = 0; i < rows; ++i) {
    const std::uint64_t lower = random.below(500'000);
    csv += std::to_string(i) + ',' + std::to_string(lower) + ',' + std::to_string(lower + 1 + random.below(1000)) + ",4096\n";
  }
  EXPECT_EQ(read_lives_csv(csv).values.size(), rows);
  did(std::to_string(rows) + " rows");
}

}  // namespace
}  // namespace berth::testing
