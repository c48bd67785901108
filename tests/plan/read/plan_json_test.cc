// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "base/random.h"
#include "berth/plan/read_graph.h"
#include "plan/read/plan_tables_json.h"
#include "support/errors.h"
#include "support/scale.h"

namespace berth::testing {

using namespace internal;
using namespace internal::plan;
namespace {

using read::JsonDocument;
using read::tables_from_json;
using read::tables_to_json;

std::string written(const PlanTables& tables) {
  JsonWriter json;
  tables_to_json(tables, json);
  return json.take();
}

PlanTables read_tables(const std::string& json) {
  const JsonDocument document(json, "tables");
  return tables_from_json(document.top());
}

// ---- The tables alone, as they are in the file.

PlanTables random_tables(Random& random) {
  const auto number = [&] { return static_cast<std::uint32_t>(random.next() >> (32 + random.below(32))); };
  const auto bytes = [&] { return static_cast<std::size_t>(random.next() >> (2 + random.below(62))); };
  PlanTables tables{.strategy = random.one_in(2) ? "best fit" : "\"\n",
                    .outcome = static_cast<PlanOutcome>(random.below(4)),
                    .nodes = {number(), number()},
                    .parallel = static_cast<int>(random.below(1000)),
                    .conservative = random.one_in(2),
                    .alignment = bytes(),
                    .capacity_bytes = random.one_in(2) ? SIZE_MAX : bytes()};
  for (std::uint64_t left = random.below(3); left > 0; --left) tables.colours.push_back(number());
  for (std::uint64_t left = random.below(3); left > 0; --left) tables.arenas.push_back({bytes(), bytes(), bytes()});
  for (PlanArena& arena : tables.arenas)
    if (random.one_in(2)) arena.proof = {BoundProof::By::unordered, {}, {number(), number()}};
  for (std::uint64_t left = random.below(3); left > 0; --left) tables.slots.push_back({number(), bytes(), bytes()});
  for (std::uint64_t left = random.below(3); left > 0; --left) tables.edges.push_back({number(), number()});
  for (std::uint64_t left = random.below(5); left > 0; --left)
    tables.locations.push_back({.reuse = static_cast<Reuse>(random.below(6)),
                                .reason = static_cast<UnplannedReason>(random.below(6)),
                                .slot = random.one_in(2) ? kNoSlot : number(),
                                .with = random.one_in(2) ? kNoValue : number(),
                                .buffer = random.one_in(2) ? kNoBuffer : number(),
                                .offset = bytes(),
                                .extent_bytes = bytes(),
                                .alignment = bytes()});
  return tables;
}

TEST(PlanTablesJson, ReadsBackWhatItWrites) {
  Random random(seed());
  const std::uint64_t runs = scaled(20'000, 200);
  for (std::uint64_t i = 0; i < runs; ++i) {
    const PlanTables tables = random_tables(random);
    const std::string json = written(tables);
    ASSERT_TRUE(nlohmann::json::accept(json)) << json;
    ASSERT_TRUE(read_tables(json) == tables) << json;
  }
  did(std::to_string(runs) + " tables");
}

TEST(PlanTablesJson, LeavesOutOfAPlaceWhatIsUsual) {
  PlanTables tables;
  tables.locations = {{.reuse = Reuse::own, .reason = UnplannedReason::placed, .extent_bytes = 64}, {.reason = UnplannedReason::external}};
  const nlohmann::json json = nlohmann::json::parse(written(tables));
  EXPECT_EQ(json["places"].dump(), R"([{"extent_bytes":64},{"reason":"external","sharing":"none"}])");
  EXPECT_TRUE(json["capacity_bytes"].is_null());
}

TEST(PlanTablesJson, SumsTheArenasForPeople) {
  PlanTables tables;
  tables.arenas = {{100, 90, 500}, {20, 10, 30}};
  const nlohmann::json json = nlohmann::json::parse(written(tables));
  EXPECT_EQ(json["peak_bytes"], 120);
  EXPECT_EQ(json["lower_bound_bytes"], 100);
}

nlohmann::json small_tables() {
  return nlohmann::json::parse(R"({"strategy":"s","outcome":"feasible","peak_bytes":8,"lower_bound_bytes":4,"nodes":[0,1],
      "arenas":[{"bytes":8,"lower_bound_bytes":4,"naive_bytes":9}],"places":[{"extent_bytes":8}]})");
}

TEST(PlanTablesJson, WhatNeedNotBeThereMayBeLeftOut) {
  nlohmann::json json = small_tables();
  json.erase("peak_bytes");
  json.erase("lower_bound_bytes");
  const PlanTables tables = read_tables(json.dump());
  EXPECT_EQ(tables.capacity_bytes, SIZE_MAX);
  EXPECT_EQ(tables.parallel, 1);
  EXPECT_EQ(tables.alignment, 1U);
  EXPECT_TRUE(tables.slots.empty() && tables.edges.empty());
  ASSERT_EQ(tables.locations.size(), 1U);
  EXPECT_TRUE(tables.locations[0].planned());
}

// A member, its replacement, and the position of the fault.
TEST(PlanTablesJson, RefusesWhatBreaksTheFormAndSaysWhere) {
  const std::tuple<const char*, const char*, const char*> bad[] = {
      {"strategy", "7", "strategy"},
      {"outcome", "\"best\"", "outcome"},
      {"outcome", "0", "outcome"},
      {"nodes", "[0]", "nodes"},
      {"nodes", "[0, 1, 2]", "nodes"},
      {"nodes", "[0, 4294967296]", "nodes[1]"},
      {"parallel", "2147483648", "parallel"},
      {"parallel", "-1", "parallel"},
      {"alignment", "0.5", "alignment"},
      {"capacity_bytes", "\"all\"", "capacity_bytes"},
      {"arenas", "[{}]", "arenas[0].bytes"},
      {"arenas", "{}", "arenas"},
      {"slots", R"([{"bytes":1}])", "slots[0].offset"},
      {"slots", R"([{"bytes":1,"offset":0,"size":1}])", "slots[0].size"},
      {"places", "[{}, 7]", "places[1]"},
      {"places", R"([{"sharing":"stolen"}])", "places[0].sharing"},
      {"places", R"([{"reason":"none"}])", "places[0].reason"},
      {"places", R"([{"with":4294967296}])", "places[0].with"},
      {"places", R"([{"offset":-8}])", "places[0].offset"},
      {"edges", "[[0, 1], [2]]", "edges[1]"},
      {"edges", "[0, 1]", "edges[0]"},
      {"time_ms", "1", "time_ms"},
  };
  for (const auto& [member, value, at] : bad) {
    nlohmann::json json = small_tables();
    json[member] = nlohmann::json::parse(value);
    EXPECT_ERROR(read_tables(json.dump()), FormatError, ErrorCode::format_error);
    try {
      read_tables(json.dump());
    } catch (const Error& error) {
      EXPECT_EQ(error.fact("at"), at) << error.what();
    }
  }
  for (const char* needed : {"strategy", "outcome", "nodes", "arenas", "places"}) {
    nlohmann::json json = small_tables();
    json.erase(needed);
    EXPECT_ERROR(read_tables(json.dump()), FormatError, ErrorCode::format_error);
  }
}

TEST(PlanTablesJson, RefusesSumsThatAreWrong) {
  for (const char* sum : {"peak_bytes", "lower_bound_bytes"}) {
    nlohmann::json json = small_tables();
    json[sum] = 7;
    EXPECT_ERROR(read_tables(json.dump()), ArgumentError, ErrorCode::plan_invalid);
  }
  nlohmann::json json = small_tables();  // whose sum wraps past 64 bits to the right value
  json["peak_bytes"] = SIZE_MAX - 1;
  json["lower_bound_bytes"] = 8;
  json["arenas"][0]["bytes"] = SIZE_MAX;
  json["arenas"].push_back(json["arenas"][0]);
  EXPECT_ERROR(read_tables(json.dump()), ArgumentError, ErrorCode::plan_invalid);
}

// ---- Whole plans.

// x (external) -> a -> b -> c: a and c use the same bytes, since b separates them in time.
Graph chain() {
  Graph graph;
  const ValueId x = graph.add_value({.name = "x", .bytes = 64, .external = true});
  const ValueId a = graph.add_value({.name = "a", .bytes = 64});
  const ValueId b = graph.add_value({.name = "b", .bytes = 64});
  const ValueId c = graph.add_value({.name = "c", .bytes = 64, .output = true});
  graph.add_node({.name = "n0", .inputs = {x}, .outputs = {a}});
  graph.add_node({.name = "n1", .inputs = {a}, .outputs = {b}});
  graph.add_node({.name = "n2", .inputs = {b}, .outputs = {c}});
  return graph;
}

PlanTables chain_tables() {
  const auto at = [](std::uint32_t buffer, std::size_t offset) {
    return ValueLocation{
        .reuse = Reuse::own, .reason = UnplannedReason::placed, .buffer = buffer, .offset = offset, .extent_bytes = 64, .alignment = 1};
  };
  PlanTables tables{.strategy = "by hand", .outcome = PlanOutcome::optimal, .nodes = {0, 3}};
  tables.arenas = {{.bytes = 128, .lower_bound_bytes = 128, .naive_bytes = 192}};
  tables.locations = {{.reason = UnplannedReason::external}, at(0, 0), at(1, 64), at(2, 0)};
  return tables;
}

Plan chain_plan() { return Plan(std::make_shared<const Graph>(chain()), chain_tables()); }

TEST(PlanJson, ReadsBackWhatItWrites) {
  const std::string json = to_json(PlanFile{chain_plan()});
  ASSERT_TRUE(nlohmann::json::accept(json)) << json;
  const Plan read = read_plan_json(json);
  EXPECT_TRUE(read.tables() == chain_tables()) << json;
  EXPECT_EQ(read.graph().values.size(), 4U);
  EXPECT_EQ(to_json(PlanFile{read}), json);
  EXPECT_EQ(read_graph(json).nodes.size(), 3U);
}

// A file that was tampered with is read as it is, and verified.
TEST(PlanJson, RefusesAPlanThatIsWrong) {
  const auto refused = [](const char* pointer, const nlohmann::json& value) {
    SCOPED_TRACE(pointer);
    nlohmann::json json = nlohmann::json::parse(to_json(PlanFile{chain_plan()}));
    json[nlohmann::json::json_pointer(pointer)] = value;
    EXPECT_ERROR(read_plan_json(json.dump()), ArgumentError, ErrorCode::plan_invalid);
  };
  refused("/plan/places/3", nlohmann::json::parse(R"({"buffer":2,"offset":64,"extent_bytes":64})"));  // over b
  // Past the end.
  refused("/plan/places/2/offset", 65);
  refused("/plan/places/2/extent_bytes", 32);
  refused("/plan/places", nlohmann::json::array());
  refused("/plan/nodes", {0, 9});
  refused("/plan/peak_bytes", 64);
  refused("/graph/values/2/bytes", 128);
}

TEST(PlanJson, RefusesAFileThatIsNone) {
  const auto refused = [](const std::string& json, const char* at) {
    EXPECT_ERROR(read_plan_json(json), FormatError, ErrorCode::format_error);
    try {
      read_plan_json(json);
    } catch (const Error& error) {
      EXPECT_EQ(error.fact("at"), at) << error.what();
    }
  };
  refused(R"({"berth":"graph","values":[],"nodes":[]})", "berth");
  refused(R"({"berth":"plan","version":2})", "version");
  refused(R"({"berth":"plan","graph":{},"plan":{}})", "version");
  refused(R"({"berth":"plan","version":1,"plan":{}})", "graph");
  refused(R"({"berth":"plan","version":1,"graph":{}})", "plan");
  refused(R"({"berth":"plan","version":1,"graph":{},"plan":{}})", "graph.berth");
  refused(R"({"berth":"plan","version":1,"graph":{"berth":"graph","values":[],"nodes":[]},"plan":{}})", "plan.strategy");
}

}  // namespace
}  // namespace berth::testing
