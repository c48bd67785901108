// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "base/random.h"
#include "berth/plan/read_graph.h"
#include "berth/plan/verify.h"
#include "support/scale.h"

// Mutated files of graphs and plans. Whatever the input, the result is an Error or something that passes
// validation again.
namespace berth::testing {

using namespace internal;
namespace {

// A token of a text as the readers see it: digits, letters, or one other character.
std::pair<std::size_t, std::size_t> piece_at(const std::string& text, std::size_t at) {
  const auto kind = [](char c) { return c >= '0' && c <= '9' ? 1 : c >= 'a' && c <= 'z' ? 2 : 0; };
  std::size_t begin = at;
  std::size_t end = at + 1;
  if (kind(text[at]) == 0) return {begin, end};
  while (begin > 0 && kind(text[begin - 1]) == kind(text[at])) --begin;
  while (end < text.size() && kind(text[end]) == kind(text[at])) ++end;
  return {begin, end};
}

std::string random_piece(Random& random, const std::string& text) {
  constexpr const char* kExtremes[] = {"0",
                                       "1",
                                       "2",
                                       "3",
                                       "7",
                                       "64",
                                       "-1",
                                       "4294967295",
                                       "4294967296",
                                       "9223372036854775807",
                                       "9223372036854775808",
                                       "18446744073709551615",
                                       "18446744073709551616",
                                       "1.5",
                                       "null",
                                       "true",
                                       "[]",
                                       "{}",
                                       "\"\"",
                                       "\"a\"",
                                       "",
                                       ",",
                                       "|",
                                       "\n",
                                       "\r\n",
                                       "\"a\":0,",
                                       "\xff",
                                       "[[[[[[[["};
  if (random.one_in(2)) return kExtremes[random.below(std::size(kExtremes))];
  const auto [begin, end] = piece_at(text, random.below(text.size()));
  return text.substr(begin, end - begin);
}

// Replaces a number by another, which keeps the syntax valid.
void change_number(Random& random, std::string& text) {
  constexpr const char* kNumbers[] = {
      "0", "1", "2", "3", "4", "8", "32", "63", "64", "65", "128", "192", "4294967295", "9223372036854775807", "18446744073709551615"};
  const std::size_t at = text.find_first_of("0123456789", random.below(text.size()));
  if (at == std::string::npos) return;
  const auto [begin, end] = piece_at(text, at);
  text.replace(begin, end - begin, kNumbers[random.below(std::size(kNumbers))]);
}

std::string mutate_text(Random& random, std::string text) {
  const bool keep_form = random.one_in(2);
  for (std::uint64_t left = 1 + random.below(3); left > 0 && !text.empty(); --left) {
    if (keep_form) {
      change_number(random, text);
      continue;
    }
    const auto at = static_cast<std::size_t>(random.below(text.size()));
    const auto [begin, end] = piece_at(text, at);
    switch (random.below(6)) {
      case 0: text[at] = static_cast<char>(random.below(256)); break;
      case 1: text.erase(at, 1 + random.below(40)); break;
      case 2: text.insert(at, text.substr(begin, 1 + random.below(60))); break;
      default: text.replace(begin, end - begin, random_piece(random, text)); break;
    }
  }
  return text;
}

template <class Read>
void survives(Read read, const std::vector<std::string>& seeds) {
  Random random(seed());
  const std::uint64_t runs = scaled(200'000, 1000);
  std::uint64_t accepted = 0;
  for (std::uint64_t i = 0; i < runs; ++i) {
    const std::string input = mutate_text(random, seeds[random.below(seeds.size())]);
    try {
      read(input);
      ++accepted;
    } catch (const Error& error) {
      ASSERT_FALSE(error.why().empty() || error.help().empty()) << error.what();
      ASSERT_TRUE(nlohmann::json::accept(to_json(error))) << "an error about any input is valid JSON";
    }
  }
  EXPECT_GT(accepted, 0U);
  did(std::to_string(runs) + " inputs, " + std::to_string(accepted) + " accepted");
}

// What was read is valid, and can be written and read again.
void judge(const Graph& graph) {
  ASSERT_NO_THROW(graph.validate());
  JsonWriter json;
  graph.write_json(json);
  const Graph again = read_graph_json(json.take());
  ASSERT_EQ(again.values.size(), graph.values.size());
  ASSERT_EQ(again.nodes.size(), graph.nodes.size());
}

const std::string kLives = "id,lower,upper,size,alignment,offset\na,0,3,64,8,0\nb,1,2,32,,64\nc,2,9,7,1,\n";
const std::string kText = "# node op | producers | bytes ; outputs: 2\n0 a |  | 64\n1 b | 0 | 32 0 8\n2 c | 0 1 | 7\n";
const std::string kGraph = R"({"berth":"graph","version":1,"name":"g","devices":["cpu:0","sim:0"],"values":[
  {"name":"x","dtype":"f32","shape":[4,4],"external":true},{"name":"a","bytes":64,"device":"sim:0","alignment":8,"fixed_offset":0},
  {"bytes":32,"output":true,"preferred_offset":8},{"name":"d","dynamic":true}],"nodes":[
  {"name":"n","op":"Relu","inputs":["x",null],"outputs":["a"],"inplace":[{"output":0,"input":0,"identity":true}]},
  {"inputs":[1,"x"],"outputs":[2,"d"],"ignored_inputs":[1],"views":[{"output":0,"input":0,"offset_bytes":16,"of_input":true}]}]})";
const std::string kPlan = R"({"berth":"plan","version":1,"graph":{"berth":"graph","values":[{"name":"x","bytes":64,"external":true},
  {"name":"a","bytes":64},{"name":"b","bytes":64},{"name":"c","bytes":64,"output":true}],"nodes":[{"inputs":["x"],"outputs":["a"]},
  {"inputs":["a"],"outputs":["b"]},{"inputs":["b"],"outputs":["c"]}]},"plan":{"strategy":"by hand","outcome":"optimal","peak_bytes":128,
  "lower_bound_bytes":128,"nodes":[0,3],"parallel":1,"alignment":1,"capacity_bytes":null,
  "arenas":[{"bytes":128,"lower_bound_bytes":128,"naive_bytes":192}],"slots":[],"places":[{"sharing":"none","reason":"external"},
  {"buffer":0,"extent_bytes":64},{"buffer":1,"offset":64,"extent_bytes":64},{"buffer":2,"extent_bytes":64}],"edges":[]}})";

TEST(ReadFuzz, Lives) {
  survives([](const std::string& s) { judge(read_lives_csv(s, "lives", {.fixed_offsets = s.size() % 2 == 0})); }, {kLives});
}

TEST(ReadFuzz, GraphText) {
  survives([](const std::string& s) { judge(read_graph_text(s)); }, {kText});
}

TEST(ReadFuzz, GraphJson) {
  survives([](const std::string& s) { judge(read_graph_json(s)); }, {kGraph});
}

TEST(ReadFuzz, PlanJson) {
  survives(
      [](const std::string& s) {
        const Plan plan = read_plan_json(s);
        judge(plan.graph());
        ASSERT_TRUE(verify_plan(plan.graph(), plan.tables()).empty());
        ASSERT_TRUE(read_plan_json(to_json(PlanFile{plan})).tables() == plan.tables());
      },
      {kPlan});
}

TEST(ReadFuzz, AnyForm) {
  survives([](const std::string& s) { judge(read_graph(s)); }, {kLives, kText, kGraph, kPlan});
}

}  // namespace
}  // namespace berth::testing
