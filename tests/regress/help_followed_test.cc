// SPDX-License-Identifier: Apache-2.0
// What errors say would help is done here, as a user would do it, and works. Each row: the mistake, the help that
// the error gives, and that help followed.
#include <gtest/gtest.h>

#include <chrono>
#include <functional>
#include <memory>
#include <memory_resource>
#include <optional>
#include <string>
#include <vector>

#include "berth/record/trace_file.h"
#include "support/errors.h"
#include "support/everything.h"
#include "support/scratch.h"

namespace berth::testing {
namespace {

using std::chrono::milliseconds;

std::shared_ptr<Allocator> one(const std::shared_ptr<Allocator>& memory) {
  memory->deallocate(memory->allocate({.bytes = 1000}));
  return memory;
}

// The text of an example in a help: what follows "as in ".
std::string example_in(const std::string& help) {
  const std::size_t at = help.find("as in ");
  return at == std::string::npos ? "" : help.substr(at + 6);
}

TEST(HelpFollowed, OfAllocators) {
  const auto parent = pool("cpu");
  const auto child = private_pool(parent, {});
  follow({
      {"use 0 to release at once, or PoolOptions::kNever", [] { pool("cpu", {.decay = milliseconds(-1)}); },
       [] {
         one(pool("cpu", {.decay = milliseconds(0)}));
         one(pool("cpu", {.decay = PoolOptions::kNever}));
       }},
      {"use 1, or a little more", [] { pool("cpu", {.target_ratio = 0.5}); },
       [] {
         one(pool("cpu", {.target_ratio = 1}));
         one(pool("cpu", {.target_ratio = 1.02}));
       }},
      {"use 60 KiB, or leave it at 128 KiB", [] { pool("cpu", {.small_bytes = 200_KiB}); },
       [] {
         one(pool("cpu", {.small_bytes = 60_KiB}));
         one(pool("cpu", {.small_bytes = 128_KiB}));
       }},
      {"pass what pool() returned, and put adaptors around the private one", [] { private_pool(direct("cpu"), {}); },
       [&] { one(limit(private_pool(parent, {}), 1_MiB)); }},
      {"pass the pool whose pages that one shares", [&] { private_pool(child, {}); }, [&] { one(private_pool(parent, {})); }},
      {"leave decay at 10 s, or background_trim out", [] { pool("cpu", {.decay = PoolOptions::kNever, .background_trim = true}); },
       [] {
         one(pool("cpu", {.background_trim = true}));
         one(pool("cpu", {.decay = PoolOptions::kNever}));
       }},
      {"leave decay out", [&] { private_pool(parent, {.decay = milliseconds(-1)}); }, [&] { one(private_pool(parent, {})); }},
      {"leave decay out, or set fixed_pages = false", [&] { private_pool(parent, {.fixed_pages = true, .decay = milliseconds(5)}); },
       [&] {
         one(private_pool(parent, {.fixed_pages = true}));
         one(private_pool(parent, {.fixed_pages = false, .decay = milliseconds(5)}));
       }},
      {"pass one, such as direct(\"cpu\")", [] { limit(nullptr, 1_MiB); }, [] { one(limit(direct("cpu"), 1_MiB)); }},
      {"use at most 64 KiB", [] { check(direct("cpu"), {.canary_bytes = 65_KiB}); },
       [] { one(check(direct("cpu"), {.canary_bytes = 64_KiB})); }},
      {"give it a capacity", [] { arena("cpu", 0); }, [] { one(arena("cpu", 64_KiB)); }},
      {"raise the limit, or make the smallest block smaller", [] { rounded("cpu", {.least_bytes = 64_KiB, .limit_bytes = 4_KiB}); },
       [] {
         one(rounded("cpu", {.least_bytes = 64_KiB, .limit_bytes = 1_MiB}));
         one(rounded("cpu", {.least_bytes = 1_KiB, .limit_bytes = 4_KiB}));
       }},
      {"make one for that device", [] { set_default_allocator("cpu", direct("sim:0")); },
       [] {
         const std::shared_ptr<Allocator> before = default_allocator("cpu");
         set_default_allocator("cpu", direct("cpu"));
         one(default_allocator("cpu"));
         set_default_allocator("cpu", before);
       }},
      {"use an allocator for cpu", [] { MemoryResource(direct("sim:0")); },
       [] {
         MemoryResource resource(direct("cpu"));
         EXPECT_EQ(std::pmr::vector<int>(3, 7, &resource).size(), 3U);
       }},
  });
}

TEST(HelpFollowed, OfOptionsInText) {
  for (const char* wrong : {"pool:magic=1", "pool:limit=much", "pool:limit=0", "pool:decay=blue", "pool:ratio=x", "pool:limit=1MiB,",
                            "pool:limit=1MiB,limit=1MiB", "rounded:magic=1", "exact:magic=1"}) {
    const std::string help = help_of([&] { make_allocator(wrong, "cpu"); });
    const std::string example = example_in(help);
    ASSERT_FALSE(example.empty()) << wrong << ": " << help;
    EXPECT_EQ(help_of([&] { one(make_allocator(example, "cpu")); }), "no error") << wrong << ": " << help;
  }
}

TEST(HelpFollowed, OfMarksAndHolds) {
  const auto scratch = arena("cpu", 1_MiB);
  const auto memory = pool("cpu");
  const ArenaMark early = scratch->mark();
  const Block block = scratch->allocate({.bytes = 100});
  const ArenaMark late = scratch->mark();
  follow({
      {"free them, or drop the storages that use them, first", [&] { scratch->reset(); },
       [&] {
         scratch->deallocate(block);
         scratch->reset(late);
         scratch->reset(early);
       }},
      {"take marks and reset to them in reverse order", [&] { scratch->reset(late); },
       [&] {
         const ArenaMark first = scratch->mark();
         scratch->deallocate(scratch->allocate({.bytes = 100}));
         const ArenaMark second = scratch->mark();
         scratch->deallocate(scratch->allocate({.bytes = 100}));
         scratch->reset(second);
         scratch->reset(first);
       }},
      {"end the hold first, or reserve before it; and do not allocate in a signal handler",
       [&] {
         const Hold hold = memory->hold();
         (void)memory->allocate({.bytes = 4_MiB});
       },
       [&] {
         memory->deallocate(memory->allocate({.bytes = 4_MiB}));
         memory->reserve(8_MiB);
         const Hold hold = memory->hold();
         memory->deallocate(memory->allocate({.bytes = 8_MiB}));
       }},
  });
}

// By as much as the error says, and not by less.
TEST(HelpFollowed, OfALimit) {
  constexpr std::size_t kLimit = 4_MiB;
  const auto memory = pool("cpu", {.limit_bytes = kLimit});
  const Block held = memory->allocate({.bytes = 3_MiB, .tag = Tag("weights")});
  std::size_t missing = 0;
  try {
    (void)memory->allocate({.bytes = 2_MiB});
  } catch (const OutOfMemory& refused) {
    missing = refused.report().would_be_enough_bytes;
    EXPECT_EQ(refused.help(), "free 1 MiB more, or raise the limit by as much; most is held by 'weights' (3 MiB)") << refused.what();
  }
  ASSERT_GT(missing, 0U);
  const auto fits = [&](std::size_t limit_bytes) {
    const auto other = pool("cpu", {.limit_bytes = limit_bytes});
    const Block first = other->allocate({.bytes = 3_MiB});
    const std::optional<Block> second = other->try_allocate({.bytes = 2_MiB});
    if (second) other->deallocate(*second);
    other->deallocate(first);
    return second.has_value();
  };
  EXPECT_TRUE(fits(kLimit + missing));
  EXPECT_FALSE(fits(kLimit + missing - 4_KiB));
  memory->deallocate(held);
  memory->deallocate(memory->allocate({.bytes = 2_MiB}));
}

TEST(HelpFollowed, OfDevicesAndTraces) {
  const Scratch file;
  const Scratch second{file.path + ".second"};
  follow({
      {"use cpu:0", [] { (void)zeros({1}, DType::f32, "cpu:7"); }, [] { (void)zeros({1}, DType::f32, "cpu:0"); }},
      {"use a device that make_sim returned, or sim:0", [] { (void)sim_control("cpu"); },
       [] {
         (void)sim_control("sim:0");
         (void)sim_control(make_sim({}));
       }},
      {"change page_bytes", [] { make_sim({.page_bytes = 3}); }, [] { make_sim({.page_bytes = 4_KiB}); }},
      {"use 128 KiB or more", [&] { start_trace(file.path, {.limit_bytes = 1000}); },
       [&] {
         start_trace(file.path, {.limit_bytes = 128_KiB});
         stop_trace();
       }},
      {"name a file that can be created", [] { start_trace("/nowhere/at/all.trace"); },
       [&] {
         start_trace(file.path);
         stop_trace();
       }},
      {"stop that trace first, or unset BERTH_TRACE",
       [&] {
         start_trace(file.path);
         start_trace(second.path);
       },
       [&] {
         stop_trace();
         start_trace(second.path);
         stop_trace();
       }},
  });
}

TEST(HelpFollowed, OfCopiesAndObservers) {
  const Scratch file;
  const Storage row = from_data({1.0F, 2.0F}, {1, 2}, "cpu");
  const Storage square = zeros({2, 2}, DType::f32, "cpu");
  const std::vector<TraceEvent> events;
  const int threads = copy_threads();
  follow({
      {"use reshape or expand to make them equal", [&] { copy(row.span(), square.span()); },
       [&] {
         copy(row.expand({2, 2}).span(), square.span());
       }},
      {"write to a clone, or to the storage it is a view of",
       [&] {
         copy(square.span(), row.clone().expand({2, 2}).span());
       },
       [&] {
         copy(square.span(), row.expand({2, 2}).clone().span());
         copy(square.slice(0, 0, 1).span(), row.clone().span());
       }},
      {"use a number of processors of this machine", [] { set_copy_threads(0); }, [&] { set_copy_threads(threads); }},
      {"use 0 to take none, or 1 ms or more", [] { Profiler({.every = milliseconds(-1)}); },
       [] {
         { Profiler profiler({.every = milliseconds(0)}); }
         { Profiler profiler({.every = milliseconds(1)}); }
       }},
      {"leave it out, or ask for 2 or more", [] { Profiler({.most_samples = 1}); },
       [] {
         { const Profiler profiler; }
         { Profiler profiler({.most_samples = 2}); }
       }},
      {"end that one first, or unset BERTH_PROFILE",
       [] {
         const Profiler first;
         const Profiler second;
       },
       [] {
         { const Profiler first; }
         const Profiler second;
       }},
      {"ask for fewer", [] { Tracker({.stack_depth = 1000}); }, [] { Tracker({.stack_depth = 4}); }},
      {"name a file that can be created", [] { save_snapshot("/nowhere/at/all.json"); }, [&] { save_snapshot(file.path); }},
      {"use 1 or more", [&] { (void)plan_replay(events, 0); }, [&] { (void)plan_replay(events, 1); }},
      {"use 1 or more", [&] { (void)replay(plan_replay(events), {.threads = 0}); },
       [&] { (void)replay(plan_replay(events), {.threads = 1}); }},
      {"leave out the touching, or use the device cpu", [&] { (void)replay(plan_replay(events), {.device = "sim:0", .touch = true}); },
       [&] {
         (void)replay(plan_replay(events), {.device = "sim:0"});
         (void)replay(plan_replay(events), {.device = "cpu", .touch = true});
       }},
  });
}

}  // namespace
}  // namespace berth::testing
