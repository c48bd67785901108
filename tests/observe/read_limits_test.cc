// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <chrono>
#include <cstring>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "base/limited.h"
#include "berth/base/units.h"
#include "record/trace_layout.h"
#include "support/errors.h"
#include "support/everything.h"
#include "support/heap_faults.h"

// What is built of a trace or a snapshot, and what reports are made of it, stays within 40 times its bytes, or 256 MiB
// where that is more. The small rooms below stand for large files.
namespace berth::testing {

using namespace internal;
namespace {

using namespace internal::record::trace_layout;

std::string repeated(std::string_view piece, std::size_t count) {
  std::string out;
  for (std::size_t i = 0; i < count; ++i) out += piece;
  return out;
}

std::string listed(std::size_t count, const std::function<std::string(std::size_t)>& item) {
  std::string out;
  for (std::size_t i = 0; i < count; ++i) out += (i == 0 ? "" : ",") + item(i);
  return out;
}

template <class T>
void add(std::string& bytes, const T& value) {
  bytes.append(reinterpret_cast<const char*>(&value), sizeof value);
}

constexpr Word record_of(Operation operation, std::uint64_t value) {
  return static_cast<Word>(value << kOperationBits) | static_cast<Word>(operation);
}

// Chunks of events, each a word that `event` returns. The first serial of a chunk follows the last of the one before; its
// time is earlier than that of the one before, if `backwards`.
std::string binary_trace(std::size_t chunks, bool backwards, const std::function<Word(std::size_t)>& event) {
  constexpr std::uint32_t kEvents = 16'000;
  std::string bytes;
  add(bytes, FileHeader{{'b', 'e', 'r', 't', 'h', 't', 'r', 'c'}, kVersion, 0, 0, 0});
  for (std::size_t chunk = 0; chunk < chunks; ++chunk) {
    const std::uint64_t time = backwards ? chunks - chunk : chunk;
    add(bytes, ChunkHead{kChunkMagic, kEventsChunk, (kEvents + 1) * sizeof(Word), kEvents, 1, time, chunks, chunks});
    add(bytes, record_of(Operation::serial, chunk * kEvents));
    for (std::size_t i = 0; i < kEvents; ++i) add(bytes, event(i));
  }
  return bytes;
}

Word allocation(std::size_t) { return record_of(Operation::allocate, 1); }

std::string snapshot_of(const std::string& pools, const std::string& more = "") {
  return R"({"format":"berth snapshot","version":1,"program":"p","process":1,"taken_ns":1,"reason":"asked",)" + more + R"("pools":[)" +
         pools + "]}";
}

std::string pool_of(const std::string& blocks, const std::string& free = "", const std::string& tags = R"("")",
                    const std::string& sites = R"("")") {
  std::string stats;
  for (const char* const name : {"in_use_bytes", "cached_bytes", "committed_bytes", "peak_in_use_bytes", "peak_committed_bytes",
                                 "table_bytes", "live_blocks", "allocations", "frees", "failures", "commits", "decommits"})
    stats += (stats.empty() ? "\"" : ",\"") + std::string(name) + "\":0";
  return R"({"device":"cpu:0","allocator":"pool","settings":"","allocator_id":1,"base":"0x0","range_bytes":0,"page_bytes":0,"limit_bytes":0,)"
         R"("has_blocks":true,"stats":{)" +
         stats + R"(},"tags":[)" + tags + R"(],"sites":[)" + sites + R"(],"memory":{"columns":["offset","bytes"],"rows":[]},)" +
         R"("blocks":{"columns":["offset","bytes","requested","stream","age_ns","tag","site","state"],"rows":[)" + blocks +
         R"(]},"free":{"columns":["offset","bytes","stream","kind"],"rows":[)" + free + "]}}";
}

std::string block(std::size_t at, std::size_t stream = 0, std::size_t site = 0, bool waits = false) {
  const std::string number = std::to_string(at);
  return "[" + number + ",1,1," + std::to_string(stream) + ",0,0," + std::to_string(site) + (waits ? ",1]" : ",0]");
}

struct Hostile {
  std::string name;
  std::string bytes;
};

constexpr std::size_t kCount = 50'000;

std::vector<Hostile> hostile_traces() {
  return {
      {"pairs of short lines", repeated("a,0,0,0\nf,0,0,0\n", kCount)},
      {"a block for each line",
       listed(kCount, [](std::size_t i) { return (i == 0 ? "a," : "0\na,") + std::to_string(i) + ",0"; }) + ",0\n"},
      {"tags of each line", "op,id,bytes,stream,tag\n" + repeated("a,0,0,0,x\nf,0,0,0,\n", kCount)},
      {"a tag for each line",
       "op,id,bytes,stream,tag\n" +
           listed(60'000, [](std::size_t i) { return (i == 0 ? "a," : "\na,") + std::to_string(i) + ",0,0,t" + std::to_string(i); })},
      {"blank lines", std::string(10 * kCount, '\n')},
      {"short events", binary_trace(20, false, allocation)},
      {"short events out of order", binary_trace(20, true, allocation)},
      {"pairs of short events",
       binary_trace(20, true, [](std::size_t i) { return i % 2 == 0 ? allocation(i) : record_of(Operation::free, 0); })},
      {"frees without blocks", binary_trace(20, true, [](std::size_t i) { return record_of(Operation::free, 2 * i); })},
  };
}

std::vector<Hostile> hostile_snapshots() {
  return {
      {"blocks", snapshot_of(pool_of(listed(kCount, [](std::size_t i) { return block(i); })))},
      {"free runs", snapshot_of(pool_of("", listed(kCount, [](std::size_t i) { return "[" + std::to_string(i) + ",1,0,0]"; })))},
      {"a stream for each block", snapshot_of(pool_of(listed(kCount, [](std::size_t i) { return block(i, kCount - i, 0, true); })))},
      {"empty words", snapshot_of(pool_of("", "", "\"\"" + repeated(",\"\"", 4 * kCount), "\"\"" + repeated(",\"\"", 4 * kCount)))},
      {"pools", snapshot_of(listed(1'000, [](std::size_t) { return pool_of(""); }))},
      {"what is not asked for", snapshot_of("", "\"x\":[0" + repeated(",[]", 4 * kCount) + "],")},
  };
}

// The peak of the heap during work, which is given the limits of this room, and whether it was refused for it.
std::pair<std::size_t, bool> peak_within(std::size_t room, const std::function<void(const ReadLimits&)>& work) {
  bool refused = false;
  const PeakOfNews heap;
  try {
    work({.memory_bytes = room});
  } catch (const FormatError& error) {
    refused = error.code() == ErrorCode::limit_exceeded;
    EXPECT_TRUE(refused) << error.what();
  }
  return {static_cast<std::size_t>(heap.peak_bytes()), refused};
}

// The bytes themselves are part of the room.
void expect_within(const Hostile& file, const std::function<void(const ReadLimits&)>& work) {
  for (const std::size_t times : {40U, 20U, 5U}) {
    const std::size_t room = times * file.bytes.size();
    const auto [peak, refused] = peak_within(room, work);
    EXPECT_LE(peak + file.bytes.size(), room) << file.name << " within " << times << " times" << (refused ? " (refused)" : "");
    if (times == 40) {
      EXPECT_FALSE(refused) << file.name;
    }
  }
}

TEST(ReadLimitsOfRecords, TracesStayWithinTheRoom) {
  for (const Hostile& file : hostile_traces())
    expect_within(file, [&](const ReadLimits& limits) { (void)read_trace(file.bytes, "hostile", limits); });
}

TEST(ReadLimitsOfRecords, ScriptsOfTracesStayWithinTheRoom) {
  for (const Hostile& file : hostile_traces()) {
    const Trace trace = read_trace(file.bytes);
    expect_within(file, [&](const ReadLimits& limits) {
      (void)limited(file.bytes.size(), "hostile", limits, [&] { return plan_replay(trace.events); });
    });
  }
}

TEST(ReadLimitsOfRecords, SnapshotsStayWithinTheRoom) {
  for (const Hostile& file : hostile_snapshots())
    expect_within(file, [&](const ReadLimits& limits) { (void)read_snapshot(file.bytes, "hostile", limits); });
}

// One long name, and many rows that show it.
TEST(ReadLimitsOfRecords, ReportsOfSnapshotsStayWithinTheRoom) {
  const std::string name = "\"" + std::string(100'000, 'x') + "\"";
  const std::string sites = listed(1'000, [](std::size_t i) { return i == 0 ? "\"\"" : "\"" + std::to_string(i) + "\""; });
  const std::string blocks =
      listed(1'000, [](std::size_t i) { return "[" + std::to_string(i) + ",1,1,0,0,1," + std::to_string(i) + ",0]"; });
  const std::string with_name = pool_of(blocks, "", "\"\"," + name, sites);
  const std::string bytes = snapshot_of(with_name + "," + listed(1'000, [](std::size_t) { return pool_of("[0,1,1,0,0,0,0,0]"); }));
  const ProcessSnapshot read = read_snapshot(bytes);
  ProcessSnapshot other = read;
  other.pools.clear();
  const auto expect_refused = [&](const char* what, const std::function<void()>& work) {
    const std::size_t room = 40 * bytes.size();
    const auto [peak, refused] = peak_within(room, [&](const ReadLimits& limits) { limited(bytes.size(), "hostile", limits, work); });
    EXPECT_LE(peak, room) << what;
    EXPECT_TRUE(refused) << what;
  };
  expect_refused("groups", [&] { (void)group_blocks(read); });
  expect_refused("changes", [&] { (void)diff_snapshots(other, read); });
  expect_refused("changes back", [&] { (void)diff_snapshots(read, other); });
  expect_refused("rows", [&] { (void)to_csv(read); });
  expect_refused("report", [&] { (void)snapshot_html(read, "hostile"); });
}

// One by one in order they would take minutes.
TEST(ReadLimitsOfRecords, ASnapshotOfManyStreamsIsReadInGoodTime) {
  constexpr std::size_t kStreams = 10 * kCount;
  const std::string bytes = snapshot_of(pool_of(listed(kStreams, [](std::size_t i) { return block(i, kStreams - i, 0, true); })));
  const auto start = std::chrono::steady_clock::now();
  const ProcessSnapshot read = read_snapshot(bytes);
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(30));
  ASSERT_EQ(read.pools[0].streams.size(), kStreams);
  EXPECT_EQ(read.pools[0].streams.front(), (StreamWait{1, 1}));
}

TEST(ReadLimitsOfRecords, TheErrorsOfTracesAndSnapshotsNameTheLimitAndTheOption) {
  const std::vector<std::function<void()>> works = {
      [] { (void)read_trace(repeated("a,0,0,0\nf,0,0,0\n", kCount), "t.csv", {.memory_bytes = 1_MiB}); },
      [] { (void)read_snapshot(snapshot_of(pool_of("")) + std::string(1_MiB, ' '), "s.json", {.memory_bytes = 1_MiB}); }};
  for (const std::function<void()>& work : works) {
    try {
      work();
      FAIL();
    } catch (const FormatError& error) {
      EXPECT_EQ(error.code(), ErrorCode::limit_exceeded);
      EXPECT_EQ(error.fact("limit"), "1048576");
      EXPECT_NE(error.help().find("--max-memory"), std::string::npos) << error.what();
    }
  }
}

}  // namespace
}  // namespace berth::testing
