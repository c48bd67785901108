// SPDX-License-Identifier: Apache-2.0
#include "berth/device/sim.h"

#include <gtest/gtest.h>

#include <set>
#include <string>

#include "base/sanitizers.h"
#include "support/errors.h"
#include "support/everything.h"

namespace berth::testing {

using namespace internal;
namespace {

TEST(Sim, TheHostMayNotTouchItsMemory) {
  const Storage x = zeros({16}, DType::f32, "sim:0");
  EXPECT_ERROR(x.data<float>(), AccessError, ErrorCode::wrong_device);
  EXPECT_DEATH({ *static_cast<volatile float*>(x.data_ptr()) = 1.0F; }, "");
}

TEST(Sim, IsFullWhenItsCapacityIsCommitted) {
  const Device device = make_sim({.capacity_bytes = 1_MiB, .page_bytes = 64_KiB});
  const Storage most = empty({15 * 64 * 1024}, DType::u8, device);
  EXPECT_EQ(backend(device).memory_info().free_bytes, 64_KiB);
  EXPECT_FALSE(try_empty({64 * 1024 + 1}, DType::u8, device).has_value());
  EXPECT_TRUE(try_empty({64 * 1024}, DType::u8, device).has_value());
  try {
    empty({128 * 1024}, DType::u8, device);
    FAIL() << "more than the capacity was handed out";
  } catch (const OutOfMemory& error) {
    EXPECT_EQ(error.report().device_total_bytes, 1_MiB);
    EXPECT_EQ(error.report().device_free_bytes, 0U) << "the last page is with the pool by now";
    EXPECT_EQ(error.report().cached_bytes, 64_KiB);
    EXPECT_EQ(error.report().would_be_enough_bytes, 64_KiB);
  }
}

TEST(Sim, FreshMemoryIsNotZero) {
  const Storage x = empty({64}, DType::u8, make_sim({}));
  EXPECT_NE(x.item<std::uint8_t>({10}), 0);
}

TEST(Sim, ADeviceMayBeLargerThanTheMachine) {
  if (kThreadSanitizer) GTEST_SKIP() << "the thread sanitizer leaves no such addresses";
  const Device device = make_sim({.capacity_bytes = 4_TiB, .page_bytes = 2_MiB});
  const Storage x = empty({static_cast<std::int64_t>(3_TiB)}, DType::u8, device);
  EXPECT_EQ(sim_control(device).committed_bytes(), 3_TiB);
  const Storage middle = x.slice(0, static_cast<std::int64_t>(1_TiB) - 3, static_cast<std::int64_t>(1_TiB) + 3);
  const Storage untouched = x.slice(0, 0, 6).to("cpu");
  middle.fill(7);
  EXPECT_TRUE(equal(middle.to("cpu"), full({6}, 7, DType::u8, "cpu")));
  EXPECT_TRUE(equal(x.slice(0, 0, 6), untouched));
}

TEST(Sim, FailsOnDemandAndRecovers) {
  const Device device = make_sim({.capacity_bytes = 8_MiB});
  set_default_allocator(device, direct(device));  // which asks the device for every block
  SimControl& control = sim_control(device);
  control.fail_after(SimOperation::commit, 2);
  EXPECT_TRUE(try_empty({1}, DType::u8, device));
  EXPECT_FALSE(try_empty({1}, DType::u8, device)) << "the second commit fails";
  EXPECT_TRUE(try_empty({1}, DType::u8, device)) << "and only that one";
  control.fail_always(SimOperation::copy, ErrorCode::device_error);
  const Storage x = zeros({4}, DType::f32, device);
  EXPECT_ERROR(x.to("cpu"), DeviceError, ErrorCode::device_error);
  EXPECT_ERROR(x.to("cpu"), DeviceError, ErrorCode::device_error);
  control.clear_faults();
  EXPECT_EQ(x.to("cpu").item<float>({3}), 0.0F);
  EXPECT_EQ(control.committed_bytes(), 64_KiB) << "nothing but x is held";
}

TEST(Sim, AFailureInAStreamIsForTheOneWhoWaits) {
  const Device device = make_sim({});
  const Storage x = zeros({4}, DType::f32, device);
  const Stream stream = make_stream(device);
  sim_control(device).fail_after(SimOperation::copy, 1, ErrorCode::device_error);
  const Storage y = zeros({4}, DType::f32, "cpu");
  const Event done = y.copy_from(x, {.stream = stream, .non_blocking = true});
  EXPECT_ERROR(done.wait(), DeviceError, ErrorCode::device_error);
  EXPECT_ERROR(stream.synchronize(), DeviceError, ErrorCode::device_error);
  EXPECT_NO_THROW(stream.synchronize());
}

TEST(Sim, ALostDeviceSaysSoAndDestructorsLeaveItAlone) {
  const Device device = make_sim({});
  Storage x = zeros({4}, DType::f32, device);
  const auto scratch = arena(device, 1_MiB);
  Storage y = zeros({4}, DType::f32, scratch);
  SimControl& control = sim_control(device);
  control.lose();
  EXPECT_ERROR(x.to("cpu"), DeviceError, ErrorCode::device_lost);
  EXPECT_ERROR(x.fill(1), DeviceError, ErrorCode::device_lost);
  // More than any cache has.
  EXPECT_ERROR(empty({1 << 20}, DType::u8, device), DeviceError, ErrorCode::device_lost);
  EXPECT_ERROR(make_stream(device), DeviceError, ErrorCode::device_lost);
  const std::uint64_t releases = control.count(SimOperation::release);
  x = {};
  y = {};
  EXPECT_EQ(control.count(SimOperation::release), releases) << "a destructor called into a lost device";
  EXPECT_FALSE(backend(device).is_alive());
  EXPECT_EQ(full({2}, 5, DType::i32, "cpu").item<std::int32_t>({1}), 5) << "host storages live on";
}

// The order in which three independent streams finish, as text.
std::string completion_order(std::uint64_t seed) {
  const Device device = make_sim({.seed = seed, .background = false});
  std::string order;
  std::vector<Stream> streams;
  for (char name = 'a'; name < 'd'; ++name) {
    streams.push_back(make_stream(device));
    for (int i = 0; i < 3; ++i) streams.back().enqueue([&order, name] { order += name; });
  }
  const Stream join = make_stream(device);
  for (const Stream& stream : streams) join.wait(stream.record());
  join.synchronize();
  return order;
}

TEST(Sim, CompletionOrdersComeFromTheSeed) {
  std::set<std::string> orders;
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    const std::string order = completion_order(seed);
    EXPECT_EQ(order.size(), 9U);
    EXPECT_EQ(order, completion_order(seed)) << "the same seed gives the same order";
    orders.insert(order);
  }
  EXPECT_GT(orders.size(), 100U) << "different seeds give many of the 1,680 legal orders";
}

TEST(Sim, PutsWorkOffAsLongAsIsLegal) {
  const Device device = make_sim({.background = false});
  const Stream stream = make_stream(device);
  int ran = 0;
  stream.enqueue([&] { ++ran; });
  EXPECT_EQ(ran, 0);
  EXPECT_EQ(sim_control(device).pending_work(), 1U);
  stream.synchronize();
  EXPECT_EQ(ran, 1);
  EXPECT_EQ(sim_control(device).pending_work(), 0U);
}

TEST(Sim, RefusesOptionsThatMakeNoSense) {
  EXPECT_ERROR(make_sim({.page_bytes = 5000}), ArgumentError, ErrorCode::invalid_argument);
  EXPECT_ERROR(make_sim({.page_bytes = 512}), ArgumentError, ErrorCode::invalid_argument);
  EXPECT_ERROR(make_sim({.capacity_bytes = 100}), ArgumentError, ErrorCode::invalid_argument);
  EXPECT_ERROR(make_sim({.alignment = 3}), ArgumentError, ErrorCode::invalid_argument);
  EXPECT_ERROR(sim_control("cpu"), DeviceError, ErrorCode::wrong_device);
}

TEST(Sim, CopiesBetweenTwoSimulatedDevicesGoThroughTheHost) {
  const Device a = make_sim({});
  const Device b = make_sim({.page_bytes = 4096});
  const std::vector<std::int32_t> values = {1, 2, 3, 4, 5, 6};
  const Storage x = from_data(values, {2, 3}, a);
  EXPECT_TRUE(equal(x.to(b), x));
  EXPECT_TRUE(equal(x.transpose(0, 1).to(b), x.transpose(0, 1)));
}

}  // namespace
}  // namespace berth::testing
