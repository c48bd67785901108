// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "support/errors.h"
#include "support/everything.h"

namespace berth::testing {
namespace {

// Live bytes: 1000, 1500, 500, 4500, 4000, 4000; the last block is never freed.
constexpr const char* kSmall =
    "a,10,1000,0\n"
    "a,11,500,3\n"
    "f,10,0,0\n"
    "a,12,4000,3\n"
    "f,11,0,0\n"
    "a,13,0,9\n";

ReplayScript small_script(std::size_t scale = 1) { return plan_replay(read_trace(kSmall).events, scale); }

TEST(PlanReplay, NumbersBlocksAndStreamsDenselyAndFindsThePeak) {
  const ReplayScript script = small_script();
  EXPECT_EQ(script.peak_live_bytes, 4500U);
  EXPECT_EQ(script.blocks, 2U);
  EXPECT_EQ(script.streams, 2U);
  const std::vector<ReplayStep> expected = {{1000, 0, 0, true}, {500, 1, 1, true},  {1000, 0, 0, false},
                                            {4000, 0, 1, true}, {500, 1, 0, false}, {0, 1, 2, true}};
  EXPECT_EQ(script.steps, expected);
}

TEST(PlanReplay, ScalesSizesAndKeepsAByte) {
  const ReplayScript script = small_script(600);
  EXPECT_EQ(script.peak_live_bytes, 1U + 6U);
  EXPECT_EQ(script.steps.back().bytes, 0U) << "nothing stays nothing";
  EXPECT_ERROR(small_script(0), ArgumentError, ErrorCode::invalid_argument);
}

TEST(PlanReplay, RefusesEventsThatDoNotPair) {
  using enum TraceEvent::Operation;
  EXPECT_ERROR(plan_replay({{free, 1, 0, 0, 0}}), FormatError, ErrorCode::format_error);
  EXPECT_ERROR(plan_replay({{allocate, 1, 8, 0, 0}, {allocate, 1, 8, 0, 0}}), FormatError, ErrorCode::format_error);
  EXPECT_ERROR(plan_replay({{allocate, 1, kMaxBytes, 0, 0}, {allocate, 2, kMaxBytes, 0, 0}}), FormatError, ErrorCode::format_error);
  EXPECT_EQ(plan_replay({{allocate, 1, 8, 0, 0, 1}, {allocate, 1, 8, 0, 0, 2}}).blocks, 2U) << "blocks of two allocators";
}

TEST(Replay, MeasuresAStrategyOnTheHost) {
  const ReplayResult result = replay(small_script(), {.device = "cpu", .strategy = "direct", .touch = true});
  EXPECT_EQ(result.events, 6U);
  EXPECT_EQ(result.strategy, "direct");
  EXPECT_EQ(result.peak_live_bytes, 4500U);
  EXPECT_EQ(result.peak_committed_bytes, 4500U);
  EXPECT_EQ(result.ratio, 1.0);
  EXPECT_EQ(result.commits, 3U);
  EXPECT_EQ(result.decommits, 2U);
  EXPECT_TRUE(result.p50_ns && result.p99_ns && result.p999_ns && result.peak_resident_bytes);
  EXPECT_LE(result.p50_ns, result.p999_ns);
  EXPECT_GT(result.wall_ms, 0);
  EXPECT_NEAR(result.ns_per_event * 6, result.wall_ms * 1e6, 1);
}

TEST(Replay, MeasuresASimulatedDeviceAndLeavesNothingBehind) {
  const Device sim = make_sim({.capacity_bytes = 64_KiB, .page_bytes = 4_KiB});
  const ReplayResult result = replay(small_script(), {.device = sim, .strategy = "direct"});
  EXPECT_EQ(result.device, sim);
  EXPECT_EQ(result.peak_live_bytes, 4500U);
  EXPECT_FALSE(result.peak_resident_bytes);
  EXPECT_EQ(sim_control(sim).committed_bytes(), 0U);
  EXPECT_EQ(sim_control(sim).count(SimOperation::make_stream), 4U) << "two streams, in each of two runs";
}

TEST(Replay, TheDefaultIsTheDevicesDefaultAllocator) {
  const Device sim = make_sim({.capacity_bytes = 64_KiB, .page_bytes = 4_KiB});
  set_default_allocator(sim, limit(direct(sim), 4500));
  EXPECT_EQ(replay(small_script(), {.device = sim}).strategy, "limit(direct)");
  EXPECT_EQ(default_allocator(sim)->stats().live_blocks, 0U);
}

TEST(Replay, OutOfMemoryFreesWhatWasAllocated) {
  const Device sim = make_sim({.capacity_bytes = 8_KiB, .page_bytes = 4_KiB});
  EXPECT_ERROR(replay(plan_replay(read_trace("a,1,4096,0\na,2,4096,0\na,3,1,0\n").events), {.device = sim, .strategy = "direct"}),
               OutOfMemory, ErrorCode::out_of_memory);
  EXPECT_EQ(sim_control(sim).committed_bytes(), 0U);
  const ReplayScript huge = plan_replay(read_trace("a,1,64,0\na,2,9223372036854770000,0\n").events);
  EXPECT_ERROR(replay(huge, {.strategy = "malloc"}), OutOfMemory, ErrorCode::out_of_memory);
}

// Blocks of 1 to 4 MiB, the oldest of which is freed when a new one is allocated, so that pages are moved; and
// small ones among them.
ReplayScript moving_script() {
  std::string trace;
  for (int i = 0; i < 400; ++i) {
    trace += "a," + std::to_string(2 * i) + ',' + std::to_string(1'000'000 + (i * 7919 % 32) * 100'000) + ",0\n";
    trace += "a," + std::to_string(2 * i + 1) + ',' + std::to_string(4000 + i * 97 % 30'000) + ",0\n";
    if (i >= 40) trace += "f," + std::to_string(2 * (i - 40)) + ",0,0\nf," + std::to_string(2 * (i - 40) + 1) + ",0,0\n";
  }
  return plan_replay(read_trace(trace).events);
}

TEST(Replay, WhatThePoolCallsCommittedIsWhatTheKernelHasGiven) {
  const ReplayResult result = replay(moving_script(), {.device = "cpu", .strategy = "pool", .touch = true, .percentiles = false});
  EXPECT_GT(*result.decommits, 0U) << "pages were to be moved";
  ASSERT_TRUE(result.end_committed_bytes && result.end_resident_bytes);
  EXPECT_GT(*result.end_committed_bytes, 64_MiB);
  const auto committed = static_cast<double>(*result.end_committed_bytes);
  EXPECT_NEAR(static_cast<double>(*result.end_resident_bytes), committed, 0.02 * committed);
}

TEST(Replay, KnowsNoResidentBytesWhereThereIsNoRangeOrNoTouch) {
  EXPECT_FALSE(replay(small_script(), {.strategy = "direct", .touch = true}).end_resident_bytes);
  EXPECT_FALSE(replay(small_script(), {.strategy = "malloc", .touch = true}).end_resident_bytes);
  EXPECT_FALSE(replay(small_script(), {.strategy = "pool"}).end_resident_bytes);
}

TEST(Replay, MallocKnowsNoCommittedBytes) {
  const ReplayResult result = replay(small_script(), {.strategy = "malloc", .touch = true});
  EXPECT_FALSE(result.peak_committed_bytes || result.ratio || result.commits || result.decommits);
  JsonWriter json;
  json.begin_object();
  result.write_json(json);
  json.end_object();
  const nlohmann::json read = nlohmann::json::parse(json.take());
  EXPECT_TRUE(read["ratio"].is_null());
  EXPECT_EQ(read["strategy"], "malloc");
  EXPECT_EQ(read["events"], 6);
}

TEST(Replay, ThreadsShareAnAllocator) {
  const ReplayResult result = replay(small_script(), {.strategy = "direct", .threads = 3});
  EXPECT_EQ(result.events, 6U) << "of one thread";
  EXPECT_EQ(result.peak_live_bytes, 3 * 4500U);
  EXPECT_EQ(result.commits, 9U);
  EXPECT_LE(result.peak_committed_bytes, 3 * 4500U);
}

TEST(Replay, RefusesWhatMakesNoSense) {
  const ReplayScript script = small_script();
  EXPECT_ERROR(replay(script, {.threads = 0}), ArgumentError, ErrorCode::invalid_argument);
  EXPECT_ERROR(replay(script, {.strategy = "magic"}), ArgumentError, ErrorCode::invalid_argument);
  EXPECT_ERROR(replay(script, {.device = "sim:0", .strategy = "malloc"}), ArgumentError, ErrorCode::wrong_device);
  EXPECT_ERROR(replay(script, {.device = "sim:0", .touch = true}), AccessError, ErrorCode::wrong_device);
}

TEST(Replay, AnEmptyTraceTakesNothing) {
  const ReplayResult result = replay({}, {.strategy = "direct"});
  EXPECT_EQ(result.events, 0U);
  EXPECT_EQ(result.ns_per_event, 0);
  EXPECT_FALSE(result.ratio);
}

}  // namespace
}  // namespace berth::testing
