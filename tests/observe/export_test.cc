// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <map>
#include <regex>
#include <sstream>
#include <string>
#include <vector>

#include "base/random.h"
#include "berth/storage/create.h"
#include "support/everything.h"
#include "support/scale.h"

// Exports are read back by readers written here from the specifications of the formats.
namespace berth::testing {

using namespace internal;
namespace {

using Json = nlohmann::json;

// RFC 4180, with newlines for line ends.
std::vector<std::vector<std::string>> read_csv(const std::string& text) {
  std::vector<std::vector<std::string>> rows(1, {""});
  bool quoted = false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    std::string& field = rows.back().back();
    if (quoted) {
      if (text[i] != '"')
        field += text[i];
      else if (i + 1 < text.size() && text[i + 1] == '"')
        field += text[i++];
      else
        quoted = false;
    } else if (text[i] == '"') {
      quoted = true;
    } else if (text[i] == ',') {
      rows.back().emplace_back();
    } else if (text[i] == '\n') {
      rows.push_back({""});
    } else {
      field += text[i];
    }
  }
  EXPECT_FALSE(quoted);
  EXPECT_EQ(rows.back(), std::vector<std::string>{""}) << "the last line has an end";
  rows.pop_back();
  return rows;
}

// Everything that both viewers need in an event.
void expect_event(const Json& event) {
  ASSERT_TRUE(event.contains("ph") && event.contains("name") && event.contains("pid")) << event;
  const std::string phase = event["ph"];
  if (phase == "M") return;
  ASSERT_TRUE(event["ts"].is_number() && event["ts"] >= 0) << event;
  if (phase == "X") {
    ASSERT_TRUE(event["dur"].is_number() && event["dur"] >= 0 && event.contains("tid")) << event;
  }
  if (phase == "C") {
    for (const auto& value : event["args"]) ASSERT_TRUE(value.is_number()) << event;
  }
}

TEST(ChromeTrace, OfAProfileHasACounterForEachTagAndASliceForEachCopy) {
  Profiler profiler;
  const Storage x = full({64, 64}, 1, DType::f32, "cpu", {.tag = "weights"});
  profiler.mark("made \"x\"");
  const Storage h = x.to(DType::f16);
  profiler.sample();
  const Json read = Json::parse(to_chrome_trace(profiler.profile()));
  std::map<std::string, int> phases;
  for (const Json& event : read["traceEvents"]) {
    expect_event(event);
    ++phases[event["ph"]];
  }
  EXPECT_EQ(phases["i"], 1);
  EXPECT_EQ(phases["X"], 2) << "a fill and a conversion";
  EXPECT_EQ(phases["C"], 2);
  const Json& last = *std::find_if(read["traceEvents"].rbegin(), read["traceEvents"].rend(), [](const Json& e) { return e["ph"] == "C"; });
  EXPECT_EQ(last["args"]["weights"], 16384);
  EXPECT_EQ(last["args"]["(no tag)"], 8192);
}

TEST(ChromeTrace, OfATraceEndsWithWhatLivesAndShowsThePeak) {
  Trace trace;
  Random random(seed());
  std::uint64_t live_bytes = 0;
  std::uint64_t peak = 0;
  std::map<std::uint64_t, std::size_t> live;
  const std::uint64_t events = scaled(100'000, 2000);
  for (std::uint64_t i = 1; i <= events; ++i) {
    const bool allocates = live.empty() || random.below(100) < 55;
    const std::uint64_t serial = allocates ? i : live.begin()->first;
    const std::size_t bytes = allocates ? 1 + random.below(10'000) : 0;
    trace.events.push_back({allocates ? TraceEvent::Operation::allocate : TraceEvent::Operation::free, serial, bytes, 0, 1000 * i, 7});
    live_bytes = allocates ? live_bytes + bytes : live_bytes - live.at(serial);
    allocates ? (void)live.emplace(serial, bytes) : (void)live.erase(serial);
    peak = std::max(peak, live_bytes);
  }
  for (const std::size_t most : {std::size_t{1000}, std::size_t{10'000'000}}) {
    const Json read = Json::parse(to_chrome_trace(trace, most));
    std::uint64_t highest = 0;
    double before = -1;
    for (const Json& event : read["traceEvents"]) {
      expect_event(event);
      if (event["ph"] != "C") continue;
      EXPECT_EQ(event["name"], "allocator 7");
      highest = std::max(highest, event["args"]["in use"].get<std::uint64_t>());
      EXPECT_GE(event["ts"].get<double>(), before);
      before = event["ts"];
    }
    EXPECT_EQ(highest, peak);
    EXPECT_EQ(read["traceEvents"].back()["args"]["in use"], live_bytes);
    EXPECT_LE(read["traceEvents"].size(), 2 * std::min<std::size_t>(most, events) + 10);
  }
}

TEST(Csv, OfAProfileComesBack) {
  const auto memory = pool("cpu");
  const Profiler profiler;
  const Block block = memory->allocate({.bytes = 300, .tag = "a,\"b\"\nc"});
  const auto rows = read_csv(to_csv(profiler.profile()));
  ASSERT_EQ(rows.size(), 2U);
  EXPECT_EQ(rows[0].size(), 10U);
  EXPECT_EQ(rows[1], (std::vector<std::string>{"cpu:0", "a,\"b\"\nc", "", "300", "300", "1", "1", "0", "300", "0"}));
  memory->deallocate(block);
}

TEST(Csv, OfASnapshotHasALineForEachBlock) {
  const auto memory = pool("cpu");
  const Block block = memory->allocate({.bytes = 300'000, .tag = "x,y"});
  const ProcessSnapshot snapshot{.program = "", .process = 1, .taken_ns = 0, .reason = "", .pools = {memory->snapshot()}};
  const auto rows = read_csv(to_csv(snapshot));
  ASSERT_EQ(rows.size(), 2U);
  EXPECT_EQ(rows[1][0], "pool");
  EXPECT_EQ(std::stoull(rows[1][2], nullptr, 16), reinterpret_cast<std::uintptr_t>(block.data));
  EXPECT_EQ(rows[1][4], "300000");
  EXPECT_EQ(rows[1][5], "x,y");
  EXPECT_EQ(rows[1][9], "live");
  memory->deallocate(block);
}

// Each line is a known comment, or name{labels} value; types come before values; no series occurs twice.
TEST(Prometheus, TextIsWellFormedAndSaysWhatStatsSay) {
  const auto memory = pool("cpu");
  const Block block = memory->allocate({.bytes = 300, .tag = "kv\\ \"x\"\n"});
  const Block half = memory->allocate({.bytes = 7, .tag = "half \xc3"});  // of a character
  const std::string text = to_prometheus({memory});
  const std::regex sample(R"(^([a-z_]+)\{((?:[a-z]+="(?:[^"\\\n]|\\["\\n])*",?)+)\} (\d+)$)");
  std::map<std::string, std::string> types;
  std::map<std::string, std::string> values;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    std::istringstream words(line);
    std::string hash;
    std::string keyword;
    std::string name;
    std::string type;
    if (line.starts_with("# TYPE")) {
      words >> hash >> keyword >> name >> type;
      EXPECT_TRUE(types.emplace(name, type).second) << line;
      EXPECT_EQ(type == "counter", name.ends_with("_total")) << line;
      continue;
    }
    if (line.starts_with("# HELP")) continue;
    std::smatch found;
    ASSERT_TRUE(std::regex_match(line, found, sample)) << line;
    EXPECT_TRUE(types.contains(found[1])) << line;
    EXPECT_TRUE(values.emplace(std::string(found[1]) + "{" + std::string(found[2]), found[3]).second) << line;
  }
  const std::string labels = "{device=\"cpu:0\",allocator=\"pool\",id=\"" + std::to_string(memory->id()) + "\"";
  EXPECT_EQ(values["berth_in_use_bytes" + labels], "307");
  EXPECT_EQ(values["berth_allocations_total" + labels], "2");
  EXPECT_EQ(values["berth_held_bytes" + labels + ",tag=\"half \xef\xbf\xbd\""], "7");
  EXPECT_EQ(values["berth_committed_bytes" + labels], std::to_string(memory->stats().committed_bytes));
  EXPECT_EQ(values["berth_held_bytes" + labels + R"(,tag="kv\\ \"x\"\n")"], "300");
  EXPECT_NE(to_prometheus().find(labels), std::string::npos) << "all of the process's";
  memory->deallocate(block);
  memory->deallocate(half);
}

}  // namespace
}  // namespace berth::testing
