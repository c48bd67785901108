// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <ostream>
#include <tuple>

#include "conformance/allocator_suite.h"
#include "conformance/backend_suite.h"
#include "device/cuda/device.h"

// The conformance suites, on a real device and on memory that is page-locked for it.
namespace berth::testing {
namespace {

std::vector<BackendSubject> backend_subjects() {
  return {{"cuda", []() -> Backend& { return backend("cuda:0"); }}, {"pinned", []() -> Backend& { return backend("pinned"); }}};
}

std::vector<AllocatorSubject> allocator_subjects() {
  std::vector<AllocatorSubject> all;
  for (const char* device : {"cuda:0", "pinned"}) {
    const std::string kind(Device(device).kind_name());
    all.push_back({"direct_" + kind, [device] { return direct(device); }});
    all.push_back({.name = "arena_" + kind, .make = [device] { return arena(device, 32_MiB); }, .returns_at_once = false});
    all.push_back({"pool_" + kind, [device] { return pool(device); }});
    all.push_back({"private_pool_" + kind, [device] { return private_pool(pool(device)); }});
    all.push_back({"rounded_" + kind, [device] { return rounded(device); }});
    all.push_back({"exact_" + kind, [device] { return exact(device); }});
    all.push_back({.name = "limit_" + kind, .make = [device] { return limit(pool(device), 40_MiB); }, .limit_bytes = 40_MiB});
    all.push_back({"check_over_pool_" + kind, [device] { return check(pool(device)); }});
  }
  return all;
}

class CudaBackendConformance : public ::testing::TestWithParam<std::tuple<BackendSubject, BackendCheck>> {};

TEST_P(CudaBackendConformance, Holds) {
  BERTH_NEEDS_DEVICE();
  const auto& [subject, check] = GetParam();
  Report report;
  check.run(subject.get(), report);
  EXPECT_TRUE(report.ok()) << report.text();
}

INSTANTIATE_TEST_SUITE_P(All, CudaBackendConformance,
                         ::testing::Combine(::testing::ValuesIn(backend_subjects()),
                                            ::testing::ValuesIn(backend_checks().begin(), backend_checks().end())),
                         [](const auto& param) {
                           return std::get<0>(param.param).name + "_" + std::string(std::get<1>(param.param).name);
                         });

class CudaAllocatorConformance : public ::testing::TestWithParam<std::tuple<AllocatorSubject, AllocatorCheck>> {};

TEST_P(CudaAllocatorConformance, Holds) {
  BERTH_NEEDS_DEVICE();
  const auto& [subject, check] = GetParam();
  Report report;
  check.run(subject, report);
  EXPECT_TRUE(report.ok()) << report.text();
}

INSTANTIATE_TEST_SUITE_P(All, CudaAllocatorConformance,
                         ::testing::Combine(::testing::ValuesIn(allocator_subjects()),
                                            ::testing::ValuesIn(allocator_checks().begin(), allocator_checks().end())),
                         [](const auto& param) {
                           return std::get<0>(param.param).name + "_" + std::string(std::get<1>(param.param).name);
                         });

}  // namespace

void PrintTo(const BackendSubject& subject, std::ostream* out) { *out << subject.name; }
void PrintTo(const BackendCheck& check, std::ostream* out) { *out << check.name; }
void PrintTo(const AllocatorSubject& subject, std::ostream* out) { *out << subject.name; }
void PrintTo(const AllocatorCheck& check, std::ostream* out) { *out << check.name; }

}  // namespace berth::testing
