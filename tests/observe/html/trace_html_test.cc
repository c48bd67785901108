// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "base/random.h"
#include "base/text.h"
#include "berth/observe/html.h"
#include "html/report_data.h"
#include "observe/html/kinds.h"
#include "observe/html/trace_run.h"
#include "support/scale.h"

namespace berth::testing {

using namespace internal;
using namespace internal::observe;
namespace {

using observe::group_kinds;
using observe::Kind;
using observe::Kinds;
using observe::run_trace;
using observe::TracedBlock;
using observe::TraceRun;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

Trace small_trace() {
  return read_trace("op,id,bytes,stream,tag\na,7,1000,0,kv\na,8,0,0\na,9,3000,0," + kHostile + "\nf,7,0,0\na,7,50,0\nf,8,0,0\nf,9,0,0\n");
}

Trace random_trace(std::uint64_t events) {
  Random random(seed());
  Trace trace;
  std::vector<std::uint64_t> live;
  std::uint64_t serial = 0;
  while (trace.events.size() < events) {
    if (live.empty() || (random.below(2) == 0 && live.size() < 1000)) {
      live.push_back(++serial);
      trace.events.push_back({TraceEvent::Operation::allocate, serial, 1 + random.below(100'000), 0, 0});
    } else {
      std::swap(live[random.below(live.size())], live.back());
      trace.events.push_back({TraceEvent::Operation::free, live.back(), 0, 0, 0});
      live.pop_back();
    }
  }
  return trace;
}

TEST(TraceRun, WritesDownWhereEachBlockWas) {
  const TraceRun run = run_trace(small_trace(), {});
  ASSERT_EQ(run.blocks.size(), 3U) << "a block without bytes is nowhere";
  EXPECT_EQ(run.events, 7U);
  EXPECT_EQ(run.strategy, "pool");
  EXPECT_EQ(run.peak_bytes, 4000U);
  EXPECT_EQ(run.peak_event, 2U);
  const TracedBlock& last = run.blocks[2];
  EXPECT_EQ(std::tuple(last.begin, last.end, last.bytes, last.serial, last.tag), std::tuple(4U, 7U, 50U, 7U, 0U)) << "it lives to the end";
  EXPECT_EQ(std::tuple(run.blocks[0].begin, run.blocks[0].end), std::tuple(0U, 3U));
  EXPECT_NE(run.blocks[0].address, 0U);
  EXPECT_EQ(observe::live_at(run, 2).size(), 2U);
  EXPECT_EQ(observe::live_at(run, 6).size(), 1U);
  EXPECT_EQ(run.committed.size(), 7U) << "a short trace is asked about at every event";
  EXPECT_GE(run.peak_committed_bytes, 4000U);
}

// Blocks that are live at the same time do not overlap, whatever the strategy.
TEST(TraceRun, HasBlocksThatDoNotOverlap) {
  const Trace trace = random_trace(scaled(20'000, 2000));
  for (const char* strategy : {"", "direct", "malloc"}) {
    const TraceRun run = run_trace(trace, {.strategy = strategy});
    std::vector<const TracedBlock*> live = observe::live_at(run, run.peak_event);
    std::ranges::sort(live, {}, &TracedBlock::address);
    std::uint64_t bytes = 0;
    for (std::size_t i = 0; i < live.size(); ++i) {
      bytes += live[i]->bytes;
      ASSERT_TRUE(i == 0 || live[i - 1]->address + live[i - 1]->bytes <= live[i]->address) << strategy;
    }
    EXPECT_EQ(bytes, run.peak_bytes) << strategy;
  }
}

TEST(TraceRun, RefusesWhatAReplayRefuses) {
  EXPECT_THROW(run_trace(small_trace(), {.strategy = "no such strategy"}), ArgumentError);
  EXPECT_THROW(run_trace(small_trace(), {.scale = 0}), ArgumentError);
}

TEST(TraceReport, TellsOfTagsWhereTheTraceHasThem) {
  const std::string page = trace_html(small_trace(), "small");
  const nlohmann::json map = data_of(page, "map");
  EXPECT_EQ(map["tags"], nlohmann::json({"no tag", "kv", kHostile}));
  EXPECT_THAT(numbers(map, "tag"), ElementsAre(1, 2, 0));
  EXPECT_THAT(summed_signed(numbers(map, "ids")), ElementsAre(7, 9, 7));
  EXPECT_THAT(page, HasSubstr("<h2>Live bytes by tag</h2>"));
  EXPECT_THAT(page, HasSubstr("<h2>Fragmentation</h2>"));
  EXPECT_THAT(page, HasSubstr("<h2>Largest holders at the peak, event 2</h2>"));
}

TEST(TraceReport, TellsOfSizesWhereItHasNone) {
  const std::string page = trace_html(random_trace(100), "random");
  EXPECT_THAT(page, HasSubstr("<h2>Live bytes by size</h2>"));
  EXPECT_THAT(page, HasSubstr("64 KiB to 1 MiB"));
}

TEST(TraceReport, EscapesTagsAndTitles) {
  const std::string page = trace_html(small_trace(), kHostile);
  EXPECT_THAT(page, Not(HasSubstr("<img")));
  EXPECT_THAT(page, HasSubstr("&lt;/script&gt;&lt;img"));
}

TEST(TraceReport, HasThePeakOfTheTraceInItsTimeline) {
  const Trace trace = random_trace(scaled(300'000, 60'000));  // more events than the timeline has moments
  const TraceRun run = run_trace(trace, {});
  const nlohmann::json line = data_of(trace_html(trace, "random"), "timeline");
  const std::vector<std::uint64_t> steps = summed(numbers(line, "steps"));
  ASSERT_LT(steps.size(), trace.events.size());
  std::vector<std::uint64_t> total(steps.size());
  for (const auto& column : line["columns"]) {
    const std::vector<std::uint64_t> bytes = summed_signed(unpacked(column.get<std::string>()));
    for (std::size_t i = 0; i < total.size(); ++i) total[i] += bytes[i];
  }
  const auto most = std::ranges::max_element(total);
  EXPECT_EQ(*most, run.peak_bytes);
  EXPECT_EQ(steps[static_cast<std::size_t>(most - total.begin())], run.peak_event);
}

TEST(TraceReport, OfHalfAMillionEventsIsSmall) {
  const std::uint64_t events = scaled(500'000, 20'000);
  const std::string page = trace_html(random_trace(events), "large");
  EXPECT_LT(page.size(), 800'000 + events * 8) << "below 5 MB at half a million";
  did(text::join(events, " events in ", page.size(), " bytes"));
}

TEST(TraceReport, LeavesOutTheSmallestOfTooManyBlocks) {
  Trace trace;
  const std::uint64_t blocks = 250'100;
  for (std::uint64_t i = 0; i < blocks; ++i) {
    trace.events.push_back({TraceEvent::Operation::allocate, i, i == 77 ? 1'000'000U : 64U, 0, 0});
    trace.events.push_back({TraceEvent::Operation::free, i, 0, 0, 0});
  }
  const std::string page = trace_html(trace, "many");
  EXPECT_THAT(page, HasSubstr("the 250,000 largest of 250,100 blocks"));
  EXPECT_THAT(summed_signed(numbers(data_of(page, "map"), "ids")), ::testing::Contains(77));
}

TEST(TraceReport, OfNothingIsAPage) {
  const std::string page = trace_html(Trace{}, "empty");
  EXPECT_THAT(page, HasSubstr("0 events"));
  EXPECT_EQ(summed(numbers(data_of(page, "timeline"), "steps")).size(), 1U);
}

TEST(TraceReport, SaysWhatTheTraceLacks) {
  Trace trace = small_trace();
  trace.dropped = 3;
  trace.complete = false;
  const std::string page = trace_html(trace, "torn");
  EXPECT_THAT(page, HasSubstr("3 events were dropped when the trace was written."));
  EXPECT_THAT(page, HasSubstr("The trace is incomplete"));
}

TEST(Kinds, ShareTheLastToneWhenThereAreMany) {
  std::vector<Kind> all;
  for (std::uint64_t i = 0; i < 20; ++i) all.push_back({.name = text::join("t", i), .most = i, .area = static_cast<double>(100 - i)});
  const Kinds kinds = group_kinds("tag", all);
  ASSERT_EQ(kinds.groups.size(), 8U);
  EXPECT_EQ(kinds.groups[0].name, "t13") << "of those with the most, the one with the largest area stands lowest";
  EXPECT_EQ(kinds.groups[6].name, "t19");
  EXPECT_EQ(kinds.groups[7].name, "12 more") << "t0 never held anything";
  EXPECT_EQ(kinds.all[12].group, 7U);
  EXPECT_EQ(kinds.all[12].tone, kinds.groups[7].tone);
}

TEST(Kinds, OfSizesCoverAllOfThem) {
  EXPECT_EQ(observe::size_kinds().size(), 7U);
  EXPECT_EQ(observe::size_kind(0), 0U);
  EXPECT_EQ(observe::size_kind(4095), 0U);
  EXPECT_EQ(observe::size_kind(4096), 1U);
  EXPECT_EQ(observe::size_kind(UINT64_MAX), 6U);
}

}  // namespace
}  // namespace berth::testing
