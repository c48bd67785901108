// SPDX-License-Identifier: Apache-2.0
#include "base/float_mode.h"

#include <gtest/gtest.h>

#include <atomic>
#include <cfenv>
#include <cstdint>
#include <cstring>
#include <thread>
#include <vector>

#include "copy/host/conversion.h"
#include "copy/host/host_copy.h"
#include "copy/host/workers.h"
#include "copy/telling_values.h"
#include "support/everything.h"
#include "support/scale.h"

// A program may have set its processor to another rounding mode or to flush subnormals: conversions do not
// depend on the mode, and leave it unchanged.
namespace berth::testing {

using namespace internal;
using namespace internal::copy;
namespace {

// The floating-point mode of this thread, in its control register: rounding and flushing.
#if defined(__x86_64__)
constexpr std::uint64_t kFlush = 0x8040;  // FTZ and DAZ
std::uint64_t mode() { return _mm_getcsr() & ~std::uint64_t{0x3f}; }
void set_mode(std::uint64_t mode) { _mm_setcsr(static_cast<unsigned>(mode)); }
#elif defined(__aarch64__)
constexpr std::uint64_t kFlush =
    // FZ, DN: NaN without payload, FZ16
    std::uint64_t{1} << 24 | std::uint64_t{1} << 25 | std::uint64_t{1} << 19;
std::uint64_t mode() {
  std::uint64_t mode;
  asm volatile("mrs %0, fpcr" : "=r"(mode));
  return mode;
}
void set_mode(std::uint64_t mode) { asm volatile("msr fpcr, %0" : : "r"(mode)); }
#else
constexpr std::uint64_t kFlush = 0;
std::uint64_t mode() { return 0; }
void set_mode(std::uint64_t) {}
#endif

std::vector<std::byte> copied(const std::vector<std::byte>& source, DType from, DType to, int threads, const Kernels& kernels) {
  const auto count = static_cast<std::int64_t>(source.size() / size_bytes(from));
  const std::int64_t dense = 1;
  std::vector<std::byte> target(static_cast<std::size_t>(count) * size_bytes(to));
  copy_on_host({&count, 1}, {const_cast<std::byte*>(source.data()), from, {&dense, 1}}, {target.data(), to, {&dense, 1}}, threads, kernels);
  return target;
}

class Modes : public ::testing::Test {
 protected:
  ~Modes() override {
    std::fesetround(FE_TONEAREST);
    set_mode(before_);
  }
  const std::uint64_t before_ = mode();
};

TEST_F(Modes, DoNotChangeWhatACopyGivesAndStayAsTheyWere) {
  TellingValues values(seed());
  for (const DType from : kKernelDTypes) {
    const std::vector<std::byte> source = values.make(from, 5'003);
    for (const DType to : kKernelDTypes) {
      for (const Kernels& kernels : all_kernels()) {
        const std::vector<std::byte> expected = copied(source, from, to, 1, kernels);
        for (const int rounding : {FE_UPWARD, FE_DOWNWARD, FE_TOWARDZERO, FE_TONEAREST}) {
          ASSERT_EQ(std::fesetround(rounding), 0);
          set_mode(mode() | kFlush);
          const std::uint64_t asked = mode();
          const std::vector<std::byte> got = copied(source, from, to, 1, kernels);
          const std::uint64_t left = mode();
          const int left_rounding = std::fegetround();
          set_mode(before_);
          EXPECT_EQ(left, asked);
          EXPECT_EQ(left_rounding, rounding);
          ASSERT_TRUE(got == expected) << kernels.name << " " << to_string(from) << " → " << to_string(to) << ", rounding " << rounding;
        }
      }
    }
  }
}

TEST_F(Modes, OfTheCallerAreOnlyItsOwnWhereThreadsHelp) {
  TellingValues values(seed());
  const std::vector<std::byte> source = values.make(DType::f64, 1'000'003);
  for (const DType to : {DType::f32, DType::f16, DType::f8e5m2, DType::i32}) {
    const std::vector<std::byte> expected = copied(source, DType::f64, to, 1, best_kernels());
    ASSERT_EQ(std::fesetround(FE_UPWARD), 0);
    set_mode(mode() | kFlush);
    const std::uint64_t asked = mode();
    const std::vector<std::byte> got = copied(source, DType::f64, to, 4, best_kernels());
    EXPECT_EQ(mode(), asked);
    set_mode(before_);
    EXPECT_TRUE(got == expected) << to_string(to);
  }
}

// A thread inherits the mode of the thread that starts it, and workers are kept.
TEST_F(Modes, AreNotHandedDownToWorkers) {
  constexpr int kThreads = 24;  // more than were started in this process so far
  const auto caller = std::this_thread::get_id();
  std::atomic<int> other{0};
  std::atomic<int> helped{0};
  set_mode(mode() | kFlush);
  run_in_parallel(4 * kThreads, kThreads, [&](std::size_t) noexcept {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
    if (std::this_thread::get_id() == caller) return;
    ++helped;
    other += mode() == before_ ? 0 : 1;
  });
  set_mode(before_);
  EXPECT_EQ(other, 0);
  did(std::to_string(helped) + " items by workers");
}

TEST_F(Modes, OfTheThreadThatRunsItDoNotChangeWhatASimulatedDeviceComputes) {
  const Device device = make_sim({.capacity_bytes = 1_MiB, .seed = seed(), .kernels = true});
  TellingValues values(seed());
  for (const DType from : {DType::bf16, DType::f32, DType::f64, DType::i64}) {
    const std::vector<std::byte> source = values.make(from, 1'003);
    const Storage host = empty({1'003}, from, "cpu");
    std::memcpy(host.data_ptr(), source.data(), source.size());
    const Storage there = host.to(device);
    for (const DType to : {DType::f32, DType::bf16, DType::f64}) {
      ASSERT_EQ(std::fesetround(FE_UPWARD), 0);
      set_mode(mode() | kFlush);
      const Storage got = there.to(to).to("cpu");
      set_mode(before_);
      EXPECT_TRUE(equal(got, host.to(to))) << to_string(from) << " → " << to_string(to);
    }
  }
}

// If setting the mode has no effect, the tests above test nothing.
TEST_F(Modes, ThatAreSetHereDoChangeWhatTheProcessorComputes) {
  if (kFlush == 0) GTEST_SKIP() << "a processor whose modes are not known here";
  const volatile float tiny = 0x1p-140F;  // so that the compiler does not fold it
  const volatile float half = 0.5F;
  set_mode(mode() | kFlush);
  const volatile float flushed = tiny * half;
  set_mode(before_);
  const volatile float kept = tiny * half;
  EXPECT_EQ(flushed, 0.0F);
  EXPECT_EQ(kept, 0x1p-141F);
}

}  // namespace
}  // namespace berth::testing
