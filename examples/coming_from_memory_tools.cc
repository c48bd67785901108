// SPDX-License-Identifier: Apache-2.0
#include <string>

#include "berth/base/units.h"
#include "berth/berth.h"
#include "berth/extend.h"
#include "berth/observe.h"
#include "berth/storage/create.h"
#include "berth/storage/inspect.h"
#include "expect.h"

// For users of other memory tools: the corresponding calls of berth. The table is in docs/coming-from.md.
using namespace berth;

int main() {
  // memory_stats(), max_memory_allocated(), the statistics adaptor: always counted.
  const Stats before = default_allocator("cpu")->stats();

  // _record_memory_history(): a profiler with sites, which records while it lives.
  Profiler profiler({.sites = true});
  Tracker tracker;
  Storage kept;
  {
    const TagScope scope("kv");  // a profiler scope, or a name in an allocation log
    kept = empty({64, 64}, DType::f32, "cpu");
  }
  const Storage half = kept.to(DType::f16);
  expect(default_allocator("cpu")->stats().live_blocks == before.live_blocks + 2, "stats() counts two more blocks");

  const Profile profile = profiler.profile();
  expect(profile.sites.size() == 2 && profile.copies.size() == 1, "the profile has both sites, and the conversion");
  expect(profile.tags[0].tag == Tag("kv") && profile.tags[0].counts.peak_bytes == 64 * 64 * 4, "and what kv held at its peak");

  // memory_snapshot() and _dump_snapshot(path).
  const Snapshot snapshot = default_allocator("cpu")->snapshot();
  expect(snapshot.audit().empty() && snapshot.figures.live_blocks >= 2, "a snapshot lists what lives");
  const ProcessSnapshot all = read_snapshot(to_json(take_snapshot()));
  expect(group_blocks(all)[0].tag == "kv", "and says the same when it is read back");

  // Leak tracking: what was created since and is still live.
  const Leaks leaks = tracker.leaks();
  expect(leaks.size() == 2 && leaks[0].tag == Tag("kv") && leaks[0].shape == Shape({64, 64}), "a tracker finds both storages");

  // memory_summary(), and what a monitoring system scrapes.
  expect(to_prometheus().find("berth_in_use_bytes{") != std::string::npos, "to_prometheus: the figures of every allocator");

  // A Chrome trace, a table of allocations.
  expect(to_chrome_trace(profile).find("traceEvents") != std::string::npos, "to_chrome_trace: for Perfetto");
  expect(to_csv(profile).find("kv") != std::string::npos && to_csv(all).find("kv") != std::string::npos,
         "to_csv: a line for each site or block");

  // The logging adaptor and its replay benchmark; an event log and its replay.
  const auto logged = trace(direct("cpu"));
  for (int i = 0; i < 100; ++i) logged->deallocate(logged->allocate({.bytes = 1000}));
  const ReplayResult replayed = replay(plan_replay(read_trace(logged->to_csv()).events), {.device = "cpu", .strategy = "pool"});
  expect(replayed.events == 200 && replayed.peak_live_bytes == 1000, "replay: the same requests, with another strategy");

  // tracking_resource_adaptor, CappedMemoryPool.
  const auto tracked = track(limit(direct("cpu"), 1_MiB));
  const Block outstanding = tracked->allocate({.bytes = 1000});
  expect(tracked->live().size() == 1 && !tracked->try_allocate({.bytes = 2_MiB}), "track lists what lives, limit caps it");
  tracked->deallocate(outstanding);

  // Inspection of one storage.
  expect(inspect(kept).to_string().find("tag kv") != std::string::npos, "inspect tells the tag");
  return g_right ? 0 : 1;
}
