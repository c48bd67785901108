// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <tuple>

#include "berth/plan/read_graph.h"
#include "support/errors.h"
#include "support/scale.h"

namespace berth::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

TEST(ReadGraphText, ReadsNodesInTheOrderOfTheFile) {
  const Graph graph = read_graph_text("# a comment\n0 Conv |  | 64\n1 Add | 0 0 | 32\n\n2 Sum of all | 1 0 | 16\n");
  ASSERT_EQ(graph.nodes.size(), 3U);
  EXPECT_EQ(graph.nodes[0].op, "Conv");
  EXPECT_EQ(graph.nodes[0].name, "0");
  EXPECT_EQ(graph.nodes[2].op, "Sum of all");
  EXPECT_THAT(graph.nodes[0].inputs, IsEmpty());
  EXPECT_THAT(graph.nodes[1].inputs, ElementsAre(0, 0));
  EXPECT_THAT(graph.nodes[2].inputs, ElementsAre(1, 0));
  ASSERT_EQ(graph.values.size(), 3U);
  EXPECT_EQ(graph.values[1].name, "1");
  EXPECT_EQ(graph.values[1].bytes, 32U);
  EXPECT_TRUE(std::ranges::none_of(graph.values, &GraphValue::output));
}

TEST(ReadGraphText, MarksTheOutputsThatACommentNames) {
  const Graph graph = read_graph_text("# node op | producers | bytes ; outputs: 2 0\r\n0 a||8\r\n1 b|0|8\r\n2 c|1|8\r\n");
  EXPECT_TRUE(graph.values[0].output);
  EXPECT_FALSE(graph.values[1].output);
  EXPECT_TRUE(graph.values[2].output);
  EXPECT_EQ(graph.nodes[0].op, "a");
}

TEST(ReadGraphText, FurtherSizesAreOutputsUnlessTheyAreZero) {
  const Graph graph = read_graph_text("7 Dropout | | 100 0 25\n8 Store | 7 |\n9 Empty | 7 | 0\n");
  ASSERT_EQ(graph.values.size(), 3U);
  EXPECT_EQ(graph.values[0].name, "7");
  EXPECT_EQ(graph.values[1].name, "7:2");
  EXPECT_EQ(graph.values[1].bytes, 25U);
  EXPECT_EQ(graph.values[2].bytes, 0U) << "a first output of no bytes is a value all the same";
  EXPECT_THAT(graph.nodes[0].outputs, ElementsAre(0, 1));
  EXPECT_THAT(graph.nodes[1].outputs, IsEmpty());
}

TEST(ReadGraphText, IndicesNeedNotCount) {
  const Graph graph = read_graph_text("18446744073709551615 a | | 8\n5 b | 18446744073709551615 | 8\n");
  EXPECT_THAT(graph.nodes[1].inputs, ElementsAre(0));
}

// Each error names the line at fault.
TEST(ReadGraphText, RefusesABadLineAndSaysWhich) {
  const std::pair<const char*, const char*> bad[] = {
      {"0 a | | 8\nx b | | 8\n", "2"},
      {"0 a | 8\n", "1"},
      {"0 a | | 8 | 9\n", "1"},
      {"0 | | 8\n", "1"},
      {"| | 8\n", "1"},
      {"-1 a | | 8\n", "1"},
      {"\n0 a | | -8\n", "2"},
      {"0 a | | 8,9\n", "1"},
      {"0 a | | 9223372036854775808\n", "1"},
      {"0 a | | 99999999999999999999999\n", "1"},
      {"0 a | | 8\n1 b | zero | 8\n", "2"},
      {"# outputs: 0, 1\n0 a | | 8\n", "1"},
      {"id,lower,upper,size\n", "1"},
  };
  for (const auto& [text, line] : bad) {
    EXPECT_ERROR(read_graph_text(text, "bad.txt"), FormatError, ErrorCode::format_error);
    try {
      read_graph_text(text, "bad.txt");
    } catch (const Error& error) {
      EXPECT_EQ(error.fact("line"), line) << error.what();
      EXPECT_NE(std::string(error.what()).find("bad.txt"), std::string::npos) << error.what();
    }
  }
}

TEST(ReadGraphText, RefusesNodesThatAreNotThere) {
  EXPECT_ERROR(read_graph_text("0 a | 7 | 8\n"), ArgumentError, ErrorCode::undefined_value);
  EXPECT_ERROR(read_graph_text("# outputs: 3\n0 a | | 8\n"), ArgumentError, ErrorCode::undefined_value);
  EXPECT_ERROR(read_graph_text("0 a | |\n1 b | 0 | 8\n"), ArgumentError, ErrorCode::undefined_value);
  EXPECT_ERROR(read_graph_text("0 a | 1 | 8\n1 b | | 8\n"), ArgumentError, ErrorCode::undefined_value);
  try {
    read_graph_text("0 a | | 8\n1 b | 0 9 | 8\n");
  } catch (const Error& error) {
    EXPECT_EQ(error.fact("line"), "2");
    EXPECT_EQ(error.fact("value"), "9");
  }
}

TEST(ReadGraphText, RefusesAnIndexThatIsThereTwice) {
  EXPECT_ERROR(read_graph_text("0 a | | 8\n1 b | | 8\n0 c | | 8\n"), ArgumentError, ErrorCode::duplicate_value);
  EXPECT_ERROR(read_graph_text("7 a | | 8\n007 b | | 8\n"), ArgumentError, ErrorCode::duplicate_value);
}

TEST(ReadGraphText, RefusesACycle) {
  EXPECT_ERROR(read_graph_text("0 a | 1 | 8\n1 b | 0 | 8\n"), ArgumentError, ErrorCode::graph_cycle);
  EXPECT_ERROR(read_graph_text("0 a | 0 | 8\n"), ArgumentError, ErrorCode::graph_cycle);
}

// ---- Real graphs and lifetimes, where they are installed.

const std::filesystem::path kData = "../shared/data/plan";

std::string file_bytes(const std::filesystem::path& path) {
  std::stringstream bytes;
  bytes << std::ifstream(path, std::ios::binary).rdbuf();
  return bytes.str();
}

struct Life {
  std::uint64_t lower = 0;
  std::uint64_t upper = 0;
  std::uint64_t bytes = 0;
  friend auto operator<=>(const Life&, const Life&) = default;
};

std::vector<Life> lives_of(const Graph& graph) {
  std::vector<Life> lives(graph.values.size());
  for (NodeId n = 0; n < graph.nodes.size(); ++n) {
    for (const ValueId v : graph.nodes[n].outputs) lives[v] = {n, n + 1, *graph.values[v].bytes};
    for (const ValueId v : graph.nodes[n].inputs) lives[v].upper = n + 1;
  }
  for (ValueId v = 0; v < graph.values.size(); ++v)
    if (graph.values[v].output) lives[v].upper = graph.nodes.size();
  std::ranges::sort(lives);
  return lives;
}

std::uint64_t most_live_bytes(const Graph& graph) {
  std::vector<std::int64_t> change(graph.nodes.size() + 1);
  for (const Life& life : lives_of(graph)) {
    change[life.lower] += static_cast<std::int64_t>(life.bytes);
    change[life.upper] -= static_cast<std::int64_t>(life.bytes);
  }
  std::int64_t live = 0;
  std::int64_t most = 0;
  for (const std::int64_t by : change) most = std::max(most, live += by);
  return static_cast<std::uint64_t>(most);
}

// id,lower,upper,size, parsed in the simplest way.
std::vector<Life> lives_in(const std::string& csv) {
  std::istringstream lines(csv);
  std::string line;
  std::getline(lines, line);
  std::vector<Life> lives;
  while (std::getline(lines, line)) {
    std::istringstream fields(line.substr(line.find(',') + 1));
    char comma = ',';
    Life life;
    fields >> life.lower >> comma >> life.upper >> comma >> life.bytes;
    lives.push_back(life);
  }
  std::ranges::sort(lives);
  return lives;
}

// What the README states about an instance: | name | n | lower bound | …
struct Instance {
  std::string name;
  std::size_t values = 0;
  std::uint64_t lower_bound = 0;
  std::filesystem::path csv;
};

std::vector<Instance> real_instances() {
  std::istringstream readme(file_bytes(kData / "README.md"));
  std::vector<Instance> found;
  for (std::string line; std::getline(readme, line);) {
    std::erase(line, ',');
    std::istringstream words(line);
    char bar = 0;
    Instance one;
    if (!(words >> bar >> one.name >> bar >> one.values >> bar >> one.lower_bound)) continue;
    for (const char* folder : {"graphs", "traces", "hard"}) {
      one.csv = kData / folder / (one.name + ".csv");
      if (std::filesystem::exists(one.csv)) break;
    }
    found.push_back(one);
  }
  return found;
}

TEST(RealGraphs, LivesHaveTheBoundsThatAreKnown) {
  if (!std::filesystem::exists(kData)) GTEST_SKIP() << "there is no " << kData;
  const std::vector<Instance> instances = real_instances();
  EXPECT_GE(instances.size(), 20U);
  for (const Instance& one : instances) {
    const Graph graph = read_graph(file_bytes(one.csv), one.name);
    EXPECT_EQ(graph.values.size(), one.values) << one.name;
    EXPECT_EQ(most_live_bytes(graph), one.lower_bound) << one.name;
  }
  did(std::to_string(instances.size()) + " files of lives");
}

TEST(RealGraphs, TextGivesTheLivesOfItsCsv) {
  if (!std::filesystem::exists(kData)) GTEST_SKIP() << "there is no " << kData;
  std::size_t graphs = 0;
  for (const Instance& one : real_instances()) {
    const std::filesystem::path text = kData / "graphs" / (one.name + ".graph.txt");
    if (!std::filesystem::exists(text)) continue;
    ++graphs;
    const Graph graph = read_graph(file_bytes(text), one.name);
    EXPECT_EQ(lives_of(graph), lives_in(file_bytes(one.csv))) << one.name;
    EXPECT_EQ(most_live_bytes(graph), one.lower_bound) << one.name;
  }
  EXPECT_GE(graphs, 10U);
  did(std::to_string(graphs) + " graphs");
}

}  // namespace
}  // namespace berth::testing
