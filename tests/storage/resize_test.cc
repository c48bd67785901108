// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <numeric>
#include <vector>

#include "base/random.h"
#include "base/text.h"
#include "support/errors.h"
#include "support/everything.h"
#include "support/scale.h"

// Storages that grow and shrink.
namespace berth::testing {

using namespace internal;
namespace {

Storage counted(std::int64_t count, const AllocatorRef& where) {
  std::vector<std::int32_t> values(static_cast<std::size_t>(count));
  std::iota(values.begin(), values.end(), 0);
  return from_data(values, {count}, where);
}

TEST(Resize, KeepsTheElementsAndEveryView) {
  for (const char* device : {"cpu", "pinned", "sim:0"}) {
    for (const auto& memory : {pool(device), direct(device), rounded(device)}) {
      Storage x = counted(100, memory);
      const Storage tail = x.slice(0, 90);
      const Storage same = x;
      x.resize({50'000});
      EXPECT_EQ(x.shape(), Shape({50'000}));
      EXPECT_TRUE(equal(x.slice(0, 0, 100), counted(100, device)));
      EXPECT_TRUE(same.is_view_of(x));
      EXPECT_EQ(same.shape(), Shape({100}));
      EXPECT_EQ(tail.item<std::int32_t>({9}), 99);
      x.slice(0, 99, 100).fill(-5);
      EXPECT_EQ(tail.item<std::int32_t>({9}), -5) << "the view follows to the bytes' new place";
      x.resize({10, 4});
      EXPECT_EQ(x.item<std::int32_t>({9, 3}), 39);
      EXPECT_EQ(tail.item<std::int32_t>({0}), 90) << "what the storage gave up is there for its views";
      x.resize({0});
      EXPECT_EQ(x.num_elements(), 0U);
      x.resize({100});
      EXPECT_EQ(x.item<std::int32_t>({50}), 50) << "a smaller shape gives nothing back";
    }
  }
}

TEST(Resize, GrowsInPlaceWhereThePoolCan) {
  const auto memory = pool("cpu");
  Storage x = counted(500'000, memory);
  const void* const before = x.data_ptr();
  x.resize({3'000'000});
  EXPECT_EQ(x.data_ptr(), before) << "nothing lies behind it";
  const Storage neighbour = empty({1'000'000}, DType::i32, memory);
  x.resize({30'000'000});
  EXPECT_NE(x.data_ptr(), before) << "the neighbour is in the way";
  EXPECT_TRUE(equal(x.slice(0, 0, 500'000), counted(500'000, "cpu")));
}

// One by one, so that growing by what is missing would copy half a million million bytes.
TEST(Resize, AppendsInConstantTimeEach) {
  const auto memory = direct("cpu");  // which never grows in place
  Storage x = empty({0}, DType::i32, memory);
  for (std::int64_t i = 0; i < 100'000; ++i) {
    x.resize({i + 1});
    x.data<std::int32_t>()[i] = static_cast<std::int32_t>(i);
  }
  EXPECT_TRUE(equal(x, counted(100'000, "cpu")));
  EXPECT_LE(memory->stats().allocations, 40U);
  EXPECT_LE(x.buffer().size_bytes(), 600'000U);
  EXPECT_EQ(memory->stats().live_blocks, 1U);
}

TEST(Resize, RandomSizesMatchAVector) {
  const std::uint64_t steps = scaled(3000, 100);
  for (const char* device : {"cpu", "sim:0"}) {
    for (const auto& memory : {pool(device), direct(device)}) {
      Random random(seed());
      std::vector<std::int32_t> model;
      Storage x = empty({0}, DType::i32, memory);
      std::vector<Storage> others;  // neighbours, so that it moves now and then
      for (std::uint64_t step = 0; step < steps; ++step) {
        const std::size_t size = random.below(random.one_in(4) ? 60'000 : 200);
        const std::size_t kept = std::min(size, model.size());
        x.resize({size});
        model.resize(size);
        if (size > kept) {
          const auto value = static_cast<std::int32_t>(random.below(1000));
          x.slice(0, static_cast<std::int64_t>(kept)).fill(value);
          std::fill(model.begin() + static_cast<std::ptrdiff_t>(kept), model.end(), value);
        }
        ASSERT_TRUE(equal(x, from_data(model, {model.size()}, "cpu").to(device))) << "seed " << seed() << ", step " << step;
        if (random.one_in(3)) others.push_back(empty({1 + random.below(50'000)}, DType::i32, memory));
        if (others.size() > 6) others.erase(others.begin());
      }
      others.clear();
      x = {};
      EXPECT_EQ(memory->stats().live_blocks, 0U);
      EXPECT_EQ(memory->audit(), "");
    }
  }
  did(text::join(steps, " sizes on each of 4 allocators"));
}

TEST(Resize, CopiesInTheOrderOfItsStream) {
  const Device device = make_sim({.capacity_bytes = 64_MiB, .background = false});
  const Stream stream = make_stream(device);
  Storage x = empty({1000}, DType::i32, direct(device), {.stream = stream});
  x.fill(7, {.stream = stream, .non_blocking = true});
  EXPECT_ERROR(x.resize({2000}, stream), AccessError, ErrorCode::busy);
  stream.synchronize();
  x.resize({2000}, stream);
  EXPECT_EQ(x.item<std::int32_t>({999}), 7);
}

TEST(Resize, ChangesNothingWhenMemoryIsShort) {
  const auto memory = limit(direct("cpu"), 950_KiB);
  Storage x = counted(100'000, memory);
  EXPECT_ERROR(x.resize({1'000'000}), OutOfMemory, ErrorCode::out_of_memory);
  EXPECT_ERROR(x.resize({INT64_MAX}), ArgumentError, ErrorCode::size_overflow);
  EXPECT_TRUE(equal(x, counted(100'000, "cpu")));
  x.resize({130'000});  // half as much again does not fit
  EXPECT_TRUE(equal(x.slice(0, 0, 100'000), counted(100'000, "cpu")));
}

TEST(Resize, RefusesWhatOthersHave) {
  Storage part = counted(100, "cpu").slice(0, 0, 50);
  EXPECT_ERROR(part.resize({60}), ArgumentError, ErrorCode::not_viewable);
  EXPECT_EQ(part.shape(), Shape({50}));
  Storage turned = counted(100, "cpu").reshape({10, 10}).transpose(0, 1);
  EXPECT_ERROR(turned.resize({60}), ArgumentError, ErrorCode::not_viewable);
  Storage kept = counted(100, "cpu");
  const auto pin = kept.buffer().keep_alive();
  EXPECT_ERROR(kept.resize({60}), AccessError, ErrorCode::busy);
  Storage shared = zeros({10}, DType::u8, "shared");
  EXPECT_ERROR(shared.resize({60}), DeviceError, ErrorCode::unsupported);
  std::array<float, 4> outside{};
  Storage wrapped = from_blob(outside.data(), {4}, DType::f32, "cpu");
  EXPECT_ERROR(wrapped.resize({2}), DeviceError, ErrorCode::unsupported);
  Storage fixed = counted(100, "cpu").read_only();
  EXPECT_ERROR(fixed.resize({60}), AccessError, ErrorCode::read_only);
  Storage none;
  EXPECT_ERROR(none.resize({60}), DeviceError, ErrorCode::unsupported);
}

}  // namespace
}  // namespace berth::testing
