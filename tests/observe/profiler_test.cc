// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <map>
#include <thread>
#include <vector>

#include "base/random.h"
#include "berth/storage/create.h"
#include "support/errors.h"
#include "support/everything.h"
#include "support/scale.h"

// The profiler: its totals equal those of a model that counts the same events in the obvious way.
namespace berth::testing {

using namespace internal;
namespace {

constexpr const char* kTags[] = {"", "weights", "kv", "activations", "optimizer"};

struct Model {
  std::map<std::pair<std::string, std::string>, ProfileCounts> tags;
  std::map<std::string, ProfileCounts> devices;
  std::array<std::uint64_t, 64> sizes{};

  static void allocate(ProfileCounts& counts, std::size_t bytes) {
    counts.bytes += static_cast<std::int64_t>(bytes);
    counts.peak_bytes = std::max(counts.peak_bytes, counts.bytes);
    ++counts.blocks;
    ++counts.allocations;
    counts.allocated_bytes += bytes;
  }
  static void free(ProfileCounts& counts, std::size_t bytes) {
    counts.bytes -= static_cast<std::int64_t>(bytes);
    --counts.blocks;
    ++counts.frees;
    counts.freed_bytes += bytes;
  }
  void allocate(const Block& block) {
    allocate(tags[{block.device.to_string(), std::string(block.tag.word())}], block.bytes);
    allocate(devices[block.device.to_string()], block.bytes);
    std::size_t bucket = 0;
    while ((std::uint64_t{1} << bucket) < block.bytes) ++bucket;
    ++sizes[bucket];
  }
  void free(const Block& block) {
    free(tags[{block.device.to_string(), std::string(block.tag.word())}], block.bytes);
    free(devices[block.device.to_string()], block.bytes);
  }
};

void expect_equal(const Profile& profile, const Model& model) {
  ASSERT_EQ(profile.tags.size(), model.tags.size());
  for (const TagProfile& row : profile.tags) {
    const auto found = model.tags.find({row.device.to_string(), std::string(row.tag.word())});
    ASSERT_NE(found, model.tags.end());
    EXPECT_EQ(row.counts, found->second) << row.device.to_string() << ' ' << row.tag.word();
  }
  ASSERT_EQ(profile.devices.size(), model.devices.size());
  for (const TagProfile& row : profile.devices) EXPECT_EQ(row.counts, model.devices.at(row.device.to_string())) << row.device.to_string();
  EXPECT_EQ(profile.sizes, model.sizes);
}

std::size_t any_size(Random& random) {
  const std::uint64_t kind = random.below(1000);
  return 1 + random.below(kind < 900 ? 4096 : kind < 990 ? 100'000 : 2_MiB);
}

// Small and large blocks, with and without a thread's cache, of several allocators and devices, with tags in
// scopes and in requests.
TEST(Profiler, CountsAsTheModelDoesOverManyRandomOperations) {
  const std::vector<std::shared_ptr<Allocator>> allocators = {pool("cpu"), track(pool("cpu")), direct("cpu"), rounded("cpu"),
                                                              pool(make_sim({.capacity_bytes = 4_GiB}))};
  const std::uint64_t steps = scaled(1'000'000, 5000);
  Model model;
  Random random(seed());
  std::vector<std::pair<Allocator*, Block>> live;
  const Profiler profiler;
  for (std::uint64_t i = 0; i < steps; ++i) {
    const TagScope outer(kTags[random.below(std::size(kTags))]);
    if (live.size() < 3000 && (live.empty() || random.below(100) < 52)) {
      Allocator* const memory = allocators[random.below(allocators.size())].get();
      const TagScope inner(random.one_in(2) ? Tag(kTags[random.below(std::size(kTags))]) : current_tag());
      const Tag tag = random.one_in(4) ? Tag("own") : Tag();
      if (const auto block = memory->try_allocate({.bytes = any_size(random), .tag = tag})) {
        model.allocate(*block);
        live.emplace_back(memory, *block);
      }
    } else if (!live.empty()) {
      std::swap(live[random.below(live.size())], live.back());
      const auto& [memory, block] = live.back();
      model.free(block);
      random.one_in(10) ? memory->deallocate_now(block) : memory->deallocate(block);
      live.pop_back();
    }
    if (i % (steps / 4) == 0) expect_equal(profiler.profile(), model);
  }
  expect_equal(profiler.profile(), model);
  for (const auto& [memory, block] : live) {
    model.free(block);
    memory->deallocate(block);
  }
  expect_equal(profiler.profile(), model);
  did(std::to_string(steps) + " random operations, seed " + std::to_string(seed()));
}

// Totals are exact; peaks are at least what one thread alone had, and at most the sum over all threads.
TEST(Profiler, CountsWhatThreadsDoThatFreeEachOthersBlocks) {
  const auto memory = pool("cpu");
  const std::uint64_t steps = scaled(100'000, 1000);
  std::vector<ProfileCounts> counted(4);
  const Profiler profiler;
  std::vector<std::vector<Block>> handed(4);
  const auto run = [&](std::size_t t, bool frees) {
    Random random(seed() + t);
    const TagScope scope("shared work");
    for (std::uint64_t i = 0; i < steps && !frees; ++i) {
      handed[t].push_back(memory->allocate({.bytes = 1 + random.below(2000)}));
      Model::allocate(counted[t], handed[t].back().bytes);
    }
    if (!frees) return;
    for (const Block& block : handed[(t + 1) % 4]) {
      Model::free(counted[t], block.bytes);
      memory->deallocate(block);
    }
  };
  for (const bool frees : {false, true}) {
    std::vector<std::thread> threads;
    for (std::size_t t = 0; t < 4; ++t) threads.emplace_back(run, t, frees);
    for (std::thread& thread : threads) thread.join();
  }
  const Profile profile = profiler.profile();
  ASSERT_EQ(profile.tags.size(), 1U);
  const ProfileCounts& all = profile.tags[0].counts;
  EXPECT_EQ(all.bytes, 0);
  EXPECT_EQ(all.blocks, 0);
  EXPECT_EQ(all.allocations, 4 * steps);
  EXPECT_EQ(all.frees, 4 * steps);
  std::uint64_t bytes = 0;
  for (const ProfileCounts& one : counted) bytes += one.allocated_bytes;
  EXPECT_EQ(all.allocated_bytes, bytes);
  EXPECT_EQ(all.freed_bytes, bytes);
  EXPECT_LE(all.peak_bytes, static_cast<std::int64_t>(bytes + 4_MiB));
  EXPECT_GE(all.peak_bytes, static_cast<std::int64_t>(bytes) - static_cast<std::int64_t>(4_MiB));
}

TEST(Profiler, CountsBySiteAsTheModelDoes) {
  const auto memory = pool("cpu");
  const std::uint64_t steps = scaled(200'000, 2000);
  const Profiler profiler({.sites = true});
  Random random(seed());
  std::map<std::uint32_t, ProfileCounts> model;
  std::vector<std::pair<std::uint32_t, Block>> live;
  const Site sites[] = {Site::here("a.cc", "f", 1), Site::here("a.cc", "g", 2), Site::here("b.cc", "h", 3)};
  for (std::uint64_t i = 0; i < steps; ++i) {
    if (live.empty() || random.one_in(2)) {
      const Site& site = sites[random.below(3)];
      const Block block = memory->allocate({.bytes = any_size(random), .site = site});
      Model::allocate(model[site.line], block.bytes);
      live.emplace_back(site.line, block);
    } else {
      std::swap(live[random.below(live.size())], live.back());
      Model::free(model[live.back().first], live.back().second.bytes);
      memory->deallocate(live.back().second);
      live.pop_back();
    }
  }
  const Profile profile = profiler.profile();
  ASSERT_EQ(profile.sites.size(), model.size());
  for (const SiteProfile& row : profile.sites) EXPECT_EQ(row.counts, model.at(site_of(row.site).line));
  EXPECT_TRUE(std::ranges::is_sorted(profile.sites, std::ranges::greater(), [](const SiteProfile& row) { return row.counts.peak_bytes; }));
  for (const auto& [line, block] : live) memory->deallocate(block);
}

TEST(Profiler, BeginsFromNothingEachTime) {
  const auto memory = pool("cpu");
  const Block old = memory->allocate({.bytes = 1000, .tag = "old"});
  {
    const Profiler first;
    memory->deallocate(memory->allocate({.bytes = 5000, .tag = "first"}));
    EXPECT_EQ(first.profile().tags.size(), 1U);
  }
  const Profiler second;
  EXPECT_TRUE(second.profile().tags.empty());
  memory->deallocate(old);
  const Profile profile = second.profile();
  ASSERT_EQ(profile.tags.size(), 1U);
  EXPECT_EQ(profile.tags[0].counts.bytes, -1000) << "what is older was freed";
  EXPECT_EQ(profile.tags[0].counts.frees, 1U);
}

TEST(Profiler, IsOneAtATime) {
  const Profiler one;
  EXPECT_ERROR(Profiler(), AccessError, ErrorCode::busy);
}

TEST(Profiler, RefusesOptionsThatMakeNoSense) {
  EXPECT_ERROR(Profiler({.every = std::chrono::milliseconds(-1)}), ArgumentError, ErrorCode::invalid_argument);
  EXPECT_ERROR(Profiler({.most_samples = 1}), ArgumentError, ErrorCode::invalid_argument);
  EXPECT_ERROR(Profiler({.stack_depth = 100}), ArgumentError, ErrorCode::invalid_argument);
  EXPECT_NO_THROW(Profiler());
}

TEST(Profiler, KnowsTheWaysOfCopies) {
  const Profiler profiler;
  const Storage x = full({100, 100}, 1.5, DType::f32, "cpu");
  const Storage h = x.to(DType::bf16);
  const Storage d = h.to("sim:0");
  const Stream stream = make_stream("sim:0");
  d.copy_from(h, {.stream = stream, .non_blocking = true});
  stream.synchronize();
  const Profile profile = profiler.profile();
  ASSERT_EQ(profile.copies.size(), 3U) << profile.to_string();
  EXPECT_EQ(profile.copies[0].route, "fill");
  EXPECT_EQ(profile.copies[0].bytes, 40'000U);
  EXPECT_EQ(profile.copies[1].route, "host");
  EXPECT_EQ(profile.copies[1].source_dtype, DType::f32);
  EXPECT_EQ(profile.copies[1].target_dtype, DType::bf16);
  EXPECT_EQ(profile.copies[1].bytes, 20'000U);
  EXPECT_GT(profile.copies[1].time_ns, 0U);
  EXPECT_EQ(profile.copies[2].target, Device("sim:0"));
  EXPECT_EQ(profile.copies[2].copies, 2U);
  EXPECT_EQ(profile.copies[2].waited, 1U) << "nobody waited for the other";
  EXPECT_EQ(profile.copy_events.size(), 4U);
}

TEST(Profiler, TakesSamplesWithLabelsAndKeepsAFew) {
  const auto memory = pool("cpu");
  Profiler profiler({.most_samples = 8});
  const Block a = memory->allocate({.bytes = 1000, .tag = "a"});
  profiler.mark("first step");
  const Block b = memory->allocate({.bytes = 500, .tag = "b"});
  for (int i = 0; i < 100; ++i) profiler.sample();
  memory->deallocate(a);
  profiler.mark("last");
  const Profile profile = profiler.profile();
  ASSERT_LE(profile.samples.size(), 8U);
  EXPECT_EQ(profile.samples.front().label, "first step");
  EXPECT_EQ(profile.samples.front().bytes, (std::vector<std::int64_t>{1000}));
  EXPECT_EQ(profile.samples.back().label, "last");
  EXPECT_EQ(profile.samples.back().bytes, (std::vector<std::int64_t>{0, 500}));
  EXPECT_TRUE(std::ranges::is_sorted(profile.samples, {}, &ProfileSample::time_ns));
  memory->deallocate(b);
}

TEST(Profiler, SamplesByItselfWhenAsked) {
  Profiler profiler({.every = std::chrono::milliseconds(1)});
  while (profiler.profile().samples.size() < 3) std::this_thread::sleep_for(std::chrono::milliseconds(1));
}

TEST(Profiler, WritesJsonThatSaysTheSame) {
  const auto memory = pool("cpu");
  Profiler profiler({.sites = true});
  const Block block = memory->allocate({.bytes = 3000, .tag = "kv \"cache\"", .site = Site::here()});
  profiler.mark("now");
  const auto read = nlohmann::json::parse(to_json(profiler.profile()));
  EXPECT_EQ(read["format"], "berth profile");
  EXPECT_EQ(read["tags"][0]["tag"], "kv \"cache\"");
  EXPECT_EQ(read["tags"][0]["bytes"], 3000);
  EXPECT_EQ(read["devices"][0]["peak_bytes"], 3000);
  EXPECT_EQ(read["sites"][0]["allocations"], 1);
  EXPECT_EQ(read["sizes"][0]["up_to_bytes"], 4096);
  EXPECT_EQ(read["samples"][0]["label"], "now");
  EXPECT_NE(profiler.profile().to_string().find("kv \"cache\""), std::string::npos);
  EXPECT_NE(profiler.profile().to_string().find("of at most 4 KiB: "), std::string::npos) << profiler.profile().to_string();
  memory->deallocate(block);
}

}  // namespace
}  // namespace berth::testing
