// SPDX-License-Identifier: Apache-2.0
#include "berth/device/registry.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <thread>
#include <vector>

#include "device/cpu/cpu_backend.h"
#include "support/errors.h"
#include "support/everything.h"

namespace berth::testing {

using namespace internal::device;
namespace {

std::atomic<int> g_made{0};

// Host memory under another name, whose backend is slow to make.
class SlowFactory : public BackendFactory {
 public:
  int count() override { return 3; }
  std::string unavailable_reason() override { return ""; }
  std::unique_ptr<Backend> make(Device device) override {
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
    ++g_made;
    return std::make_unique<CpuBackend>(device, "slow", CpuOptions{});
  }
};

class FailingFactory : public BackendFactory {
 public:
  int count() override { return 1; }
  std::string unavailable_reason() override { return ""; }
  std::unique_ptr<Backend> make(Device device) override {
    if (++attempts < 3) throw DeviceError(ErrorCode::device_error, {"opening " + device.to_string(), "planned", "try again"});
    return std::make_unique<CpuBackend>(device, "third time lucky", CpuOptions{});
  }
  int attempts = 0;
};

TEST(Registry, FirstUseBySixtyFourThreadsMakesOneBackend) {
  register_backend("slow", std::make_unique<SlowFactory>());
  std::atomic<bool> go{false};
  std::vector<Backend*> seen(64);
  std::vector<std::thread> threads;
  for (Backend*& slot : seen) {
    threads.emplace_back([&] {
      while (!go) std::this_thread::yield();
      slot = &backend("slow:1");
    });
  }
  go = true;
  for (std::thread& thread : threads) thread.join();
  for (Backend* const one : seen) EXPECT_EQ(one, seen.front());
  EXPECT_EQ(g_made, 1);
}

TEST(Registry, ABackendThatFailsToOpenIsTriedAgain) {
  register_backend("moody", std::make_unique<FailingFactory>());
  EXPECT_ERROR(backend("moody"), DeviceError, ErrorCode::device_error);
  EXPECT_EQ(find_backend("moody"), nullptr);
  EXPECT_EQ(backend("moody").properties().description, "third time lucky");
}

TEST(Registry, AKindAddedAtRunTimeWorksLikeABuiltInOne) {
  register_backend("late_kind2", std::make_unique<SlowFactory>());
  const Storage x = full({3, 3}, 2.5, DType::f32, "late_kind2:2");
  EXPECT_EQ(x.to("cpu").item<float>({1, 1}), 2.5F);
  EXPECT_EQ(x.device().to_string(), "late_kind2:2");
  EXPECT_ERROR(backend("late_kind2:3"), DeviceError, ErrorCode::no_such_device);
}

TEST(Registry, RefusesNamesThatAreTakenOrMalformed) {
  const auto add = [](std::string_view name) { register_backend(name, std::make_unique<SlowFactory>()); };
  for (const char* name : {"", "cpu", "Cuda", "9lives", "a-b", "a:b", "_x", "way_too_long_a_name_for_a_kind_of_device"}) {
    EXPECT_ERROR(add(name), ArgumentError, ErrorCode::invalid_argument);
  }
  EXPECT_ERROR(register_backend("nothing", nullptr), ArgumentError, ErrorCode::invalid_argument);
}

TEST(Registry, ListsEveryDevice) {
  const std::vector<Device> all = all_devices();
  EXPECT_EQ(all.front(), Device("cpu"));
  EXPECT_NE(std::ranges::find(all, Device("sim:0")), all.end());
  for (const KindInfo& kind : device_kinds()) EXPECT_EQ(kind.unavailable_reason.empty(), kind.count > 0) << kind.name;
}

TEST(CpuBackend, RefusesSettingsThatMakeNoSense) {
  setenv("BERTH_CPU_NODE", "77", 1);
  EXPECT_ERROR(cpu_options_from_environment(), ArgumentError, ErrorCode::invalid_argument);
  setenv("BERTH_CPU_NODE", "x", 1);
  EXPECT_ERROR(cpu_options_from_environment(), ArgumentError, ErrorCode::invalid_argument);
  unsetenv("BERTH_CPU_NODE");
  setenv("BERTH_CPU_HUGE_PAGES", "maybe", 1);
  EXPECT_ERROR(cpu_options_from_environment(), ArgumentError, ErrorCode::invalid_argument);
  setenv("BERTH_CPU_HUGE_PAGES", "0", 1);
  EXPECT_FALSE(cpu_options_from_environment().huge_pages);
  unsetenv("BERTH_CPU_HUGE_PAGES");
}

TEST(CpuBackend, TakesPagesFromOneNode) {
  CpuBackend bound("cpu", "node 0", {.huge_pages = true, .node = 0});
  const Result<void*> range = bound.reserve(4_MiB, 4096);
  ASSERT_TRUE(range.ok());
  EXPECT_TRUE(bound.commit(*range, 4_MiB).ok());
  static_cast<char*>(*range)[12345] = 1;
  CpuBackend missing("cpu", "no such node", {.huge_pages = true, .node = 900});
  const Result<void*> other = missing.reserve(4_MiB, 4096);
  ASSERT_TRUE(other.ok());
  EXPECT_FALSE(missing.commit(*other, 4_MiB).ok()) << "a node that is not there is refused";
  EXPECT_TRUE(bound.release(*range, 4_MiB).ok());
  EXPECT_TRUE(missing.release(*other, 4_MiB).ok());
}

TEST(CpuBackend, LargeRangesAreLaidOutForHugePages) {
  Backend& cpu = backend("cpu");
  const Result<void*> range = cpu.reserve(8_MiB, 4096);
  ASSERT_TRUE(range.ok());
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(*range) % 2_MiB, 0U);
  EXPECT_TRUE(cpu.release(*range, 8_MiB).ok());
}

}  // namespace
}  // namespace berth::testing
