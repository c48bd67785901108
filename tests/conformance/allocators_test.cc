// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <tuple>

#include "conformance/allocator_suite.h"

// Every allocator there is, against every check.
namespace berth::testing {
namespace {

Device small_sim() {
  static const Device device = make_sim({.capacity_bytes = 64_MiB, .page_bytes = 4096, .background = false});
  return device;
}

std::vector<AllocatorSubject> allocator_subjects() {
  std::vector<AllocatorSubject> all;
  for (const char* device : {"cpu", "pinned", "sim:0"}) {
    all.push_back({std::string("direct_") + std::string(Device(device).kind_name()), [device] { return direct(device); }});
    all.push_back({.name = std::string("arena_") + std::string(Device(device).kind_name()),
                   .make = [device] { return arena(device, 32_MiB); },
                   .returns_at_once = false});
    all.push_back({std::string("pool_") + std::string(Device(device).kind_name()), [device] { return pool(device); }});
    all.push_back(
        {std::string("private_pool_") + std::string(Device(device).kind_name()), [device] { return private_pool(pool(device)); }});
    all.push_back({std::string("rounded_") + std::string(Device(device).kind_name()), [device] { return rounded(device); }});
    all.push_back({std::string("exact_") + std::string(Device(device).kind_name()), [device] { return exact(device); }});
  }
  all.push_back({"pool_shared", [] { return pool("shared"); }});
  all.push_back({"direct_shared", [] { return direct("shared"); }});
  all.push_back({"pool_small_sim", [] { return pool(small_sim()); }});
  all.push_back({"rounded_small_sim", [] { return rounded(small_sim(), {.least_bytes = 512, .cutoff_bytes = 64_KiB}); }});
  all.push_back({"exact_small_sim", [] { return exact(small_sim(), {.granularity_bytes = 4096}); }});
  all.push_back({.name = "limit_over_rounded", .make = [] { return limit(rounded("cpu"), 40_MiB); }, .limit_bytes = 40_MiB});
  all.push_back({.name = "limit_over_pool", .make = [] { return limit(pool("cpu"), 40_MiB); }, .limit_bytes = 40_MiB});
  all.push_back({"direct_small_sim", [] { return direct(small_sim()); }});
  all.push_back({.name = "limit", .make = [] { return limit(direct("cpu"), 40_MiB); }, .limit_bytes = 40_MiB});
  all.push_back({.name = "limit_sim", .make = [] { return limit(direct(small_sim()), 3_MiB); }, .limit_bytes = 3_MiB});
  all.push_back({"track", [] { return track(direct("cpu")); }});
  all.push_back({"trace", [] { return trace(direct("cpu")); }});
  all.push_back({"fail_never", [] { return fail(direct("cpu"), {}); }});
  for (const char* device : {"cpu", "sim:0"}) {
    const std::string kind(Device(device).kind_name());
    all.push_back({"check_over_direct_" + kind, [device] { return check(direct(device)); }});
    all.push_back({"check_over_pool_" + kind, [device] { return check(pool(device)); }});
  }
  all.push_back({"check_guarded", [] { return check(direct("cpu"), {.guard_every = 1, .zero = true}); }});
  all.push_back({"check_without_quarantine", [] { return check(rounded("cpu"), {.quarantine_blocks = 0}); }});
  all.push_back({.name = "check_over_arena", .make = [] { return check(arena("cpu", 32_MiB)); }, .returns_at_once = false});
  all.push_back({.name = "limit_over_check", .make = [] { return limit(check(pool("cpu")), 40_MiB); }, .limit_bytes = 40_MiB});
  all.push_back(
      {.name = "all_adaptors", .make = [] { return limit(track(check(trace(fail(direct("cpu"), {})))), 40_MiB); }, .limit_bytes = 40_MiB});
  all.push_back({.name = "limit_over_arena",
                 .make = [] { return limit(arena("cpu", 32_MiB), 8_MiB); },
                 .limit_bytes = 8_MiB,
                 .returns_at_once = false});
  return all;
}

class AllocatorConformance : public ::testing::TestWithParam<std::tuple<AllocatorSubject, AllocatorCheck>> {};

TEST_P(AllocatorConformance, Holds) {
  const auto& [subject, check] = GetParam();
  Report report;
  check.run(subject, report);
  EXPECT_TRUE(report.ok()) << report.text();
}

INSTANTIATE_TEST_SUITE_P(All, AllocatorConformance,
                         ::testing::Combine(::testing::ValuesIn(allocator_subjects()),
                                            ::testing::ValuesIn(allocator_checks().begin(), allocator_checks().end())),
                         [](const auto& param) {
                           return std::get<0>(param.param).name + "_" + std::string(std::get<1>(param.param).name);
                         });

}  // namespace

// gtest prints parameters of unknown type as bytes; a name says more.
void PrintTo(const AllocatorSubject& subject, std::ostream* out) { *out << subject.name; }
void PrintTo(const AllocatorCheck& check, std::ostream* out) { *out << check.name; }

}  // namespace berth::testing
