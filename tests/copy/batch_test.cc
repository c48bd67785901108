// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "base/random.h"
#include "copy/fake_devices.h"
#include "support/errors.h"
#include "support/everything.h"
#include "support/scale.h"

namespace berth::testing {

using namespace internal;
namespace {

TEST(CopyBatch, ChecksEveryPairBeforeTheFirstByteMoves) {
  std::vector<Storage> sources;
  std::vector<Storage> targets;
  for (int i = 0; i < 5; ++i) {
    sources.push_back(full({3}, i + 1, DType::i32, i % 2 == 0 ? "cpu" : "sim:0"));
    targets.push_back(zeros({3}, DType::f32, i % 2 == 0 ? "sim:0" : "cpu"));
  }
  const Stream stream = make_stream("cpu");
  for (const CopyOptions& options : {CopyOptions{}, CopyOptions{.stream = stream}}) {
    targets.back() = zeros({4}, DType::f32, "cpu");
    EXPECT_ERROR(copy_batch(sources, targets, options), ArgumentError, ErrorCode::size_mismatch);
    targets.back() = zeros({3}, DType::f32, "cpu").read_only();
    EXPECT_ERROR(copy_batch(sources, targets, options), AccessError, ErrorCode::read_only);
    targets.back() = zeros({1}, DType::f32, "cpu").expand({3});
    EXPECT_ERROR(copy_batch(sources, targets, options), ArgumentError, ErrorCode::overlapping_view);
    EXPECT_ERROR(copy_batch(std::span(sources).first(4), targets, options), ArgumentError, ErrorCode::size_mismatch);
    stream.synchronize();
    for (int i = 0; i < 4; ++i) EXPECT_EQ(targets[static_cast<std::size_t>(i)].to("cpu").item<float>({0}), 0.0F);
  }
  targets.back() = zeros({3}, DType::f32, "cpu");
  copy_batch(sources, targets);
  for (int i = 0; i < 5; ++i) EXPECT_EQ(targets[static_cast<std::size_t>(i)].to("cpu").item<float>({2}), static_cast<float>(i + 1));
  copy_batch(std::span<const Storage>(), std::span<const Storage>());
}

// A batch of this many runs of bytes is validated by several threads.
constexpr std::size_t kMany = 1300;

TEST(CopyBatch, ChecksManyRunsBeforeTheFirstByteMoves) {
  const std::vector<Storage> sources(kMany, full({3}, 1, DType::i32, "cpu"));
  std::vector<Storage> targets;
  for (std::size_t i = 0; i < kMany; ++i) targets.push_back(zeros({3}, DType::i32, "cpu"));
  const auto expect_untouched = [&] {
    for (std::size_t i = 0; i < kMany; ++i) EXPECT_EQ(targets[i].item<std::int32_t>({0}), 0) << i;
  };
  const Stream stream = make_stream("cpu");
  for (const CopyOptions& options : {CopyOptions{}, CopyOptions{.stream = stream}}) {
    targets[1200] = zeros({3}, DType::i32, "cpu").read_only();
    EXPECT_ERROR(copy_batch(sources, targets, options), AccessError, ErrorCode::read_only);
    expect_untouched();
    targets[1200] = zeros({1, 3}, DType::i32, "cpu");
    EXPECT_ERROR(copy_batch(sources, targets, options), ArgumentError, ErrorCode::size_mismatch);
    targets[1200] = zeros({3}, DType::i32, "cpu");
    expect_untouched();
    copy_batch(sources, targets, options);
    for (std::size_t i = 0; i < kMany; ++i) EXPECT_TRUE(equal(sources[i], targets[i])) << i;
    for (const Storage& target : targets) target.fill(0);
  }
}

// Spans come from the caller, and may be inconsistent.
TEST(CopyBatch, RefusesASpanThatContradictsItselfAmongManyThatDoNot) {
  std::vector<std::int32_t> ones(3, 1);
  std::vector<std::int32_t> written(3 * kMany);
  const StridedSpan good{ones.data(), DType::i32, {3}, {1}};
  std::vector<StridedSpan> sources(kMany, good);
  std::vector<StridedSpan> targets;
  for (std::size_t i = 0; i < kMany; ++i) targets.push_back({written.data() + 3 * i, DType::i32, {3}, {1}});
  const auto expect_refused = [&](const StridedSpan& bad, ErrorCode code) {
    for (std::vector<StridedSpan>* const side : {&sources, &targets}) {
      const StridedSpan kept = std::exchange((*side)[1100], bad);
      EXPECT_ERROR(copy_batch(sources, targets), ArgumentError, code);
      (*side)[1100] = kept;
    }
    EXPECT_EQ(std::ranges::count(written, 0), static_cast<std::ptrdiff_t>(written.size()));
  };
  expect_refused({nullptr, DType::i32, {3}, {1}}, ErrorCode::invalid_argument);
  expect_refused({ones.data(), DType::i32, {3}, {1, 1}}, ErrorCode::size_mismatch);
  expect_refused({reinterpret_cast<void*>(~std::uintptr_t{7}), DType::i32, {3}, {1}}, ErrorCode::out_of_bounds);
  copy_batch(sources, targets);
  EXPECT_EQ(std::ranges::count(written, 1), static_cast<std::ptrdiff_t>(written.size()));
}

TEST(CopyBatch, RefusesADeviceThatIsGoneBeforeTheOthersAreWritten) {
  const Device lost = make_sim({});
  const Storage there = zeros({4}, DType::f32, lost);
  sim_control(lost).lose();
  const Storage ones = full({4}, 1, DType::f32, "cpu");
  for (const std::size_t count : {std::size_t{2}, kMany}) {
    std::vector<Storage> sources(count, ones);
    std::vector<Storage> targets;
    for (std::size_t i = 0; i < count; ++i) targets.push_back(zeros({4}, DType::f32, "cpu"));
    for (std::vector<Storage>* const side : {&sources, &targets}) {
      const Storage kept = std::exchange(side->back(), there);
      EXPECT_ERROR(copy_batch(sources, targets), DeviceError, ErrorCode::device_lost);
      EXPECT_EQ(targets[0].item<float>({0}), 0.0F);
      side->back() = kept;
    }
  }
}

// Batches of random pairs: many devices, layouts, dtypes; pairs that overlap themselves, are identical, or have
// no elements.
TEST(CopyBatch, GivesWhatTheSingleCopiesGive) {
  Random random(seed());
  const std::vector<Device>& devices = fake_devices();
  constexpr DType kDTypes[] = {DType::f32, DType::f16, DType::i8, DType::f64};
  FakeBackend::reset();
  const auto rounds = scaled(300, 20);
  for (std::uint64_t round = 0; round < rounds; ++round) {
    std::vector<Storage> sources;
    std::vector<Storage> targets;
    std::vector<Storage> expected;
    const bool many = random.one_in(10);  // the first of which is a run of bytes
    if (many) {
      sources.push_back(full({5}, 3, DType::i8, "cpu"));
      targets.push_back(zeros({5}, DType::i8, "cpu"));
      expected.push_back(sources.back());
    }
    for (std::uint64_t i = random.below(60) + (many ? kMany : 0); i > 0; --i) {
      const auto rows = static_cast<std::int64_t>(random.below(5));
      const auto columns = static_cast<std::int64_t>(1 + random.below(random.one_in(20) ? 2000 : 6));
      Storage values = empty({rows + 1, columns}, DType::i8, "cpu");
      for (std::byte& byte : std::span(static_cast<std::byte*>(values.data_ptr()), values.size_bytes()))
        byte = static_cast<std::byte>(random.next());
      const Storage all = values.to(devices[random.below(devices.size())], kDTypes[random.below(4)]);
      const Storage source = all.slice(0, 0, rows);
      if (random.one_in(6)) {  // within one buffer
        sources.push_back(source);
        targets.push_back(random.one_in(3) ? source : all.slice(0, 1, rows + 1));
      } else {
        sources.push_back(random.one_in(2) ? source : source.transpose(0, 1));
        targets.push_back(zeros(sources.back().shape(), kDTypes[random.below(4)], devices[random.below(devices.size())]));
      }
      expected.push_back(sources.back().to("cpu").clone().to(targets.back().dtype()));
    }
    copy_batch(sources, targets);
    for (std::size_t i = 0; i < targets.size(); ++i)
      ASSERT_TRUE(equal(targets[i], expected[i])) << "seed " << seed() << ", round " << round;
  }
  did(std::to_string(rounds) + " random batches, seed " + std::to_string(seed()));
}

TEST(CopyBatch, RunsTheCopiesOfADevicePairOneAfterAnother) {
  struct Collect : Sink {
    void on_record(const Record& record) noexcept override {
      if (record.kind == RecordKind::copied) targets.push_back(Device::from_key(record.device));
    }
    std::vector<Device> targets;
  };
  std::vector<Storage> sources;
  std::vector<Storage> targets;
  for (int i = 0; i < 6; ++i) {
    sources.push_back(full({2}, i, DType::f32, "cpu"));
    targets.push_back(zeros({2}, DType::f32, fake(i % 2 == 0 ? 0 : kKernels)));
  }
  // The fourth call fails; by then the three copies of the first device are done, and none of the second.
  FakeBackend::fail_after(4);
  EXPECT_ERROR(copy_batch(sources, targets), DeviceError, ErrorCode::device_error);
  FakeBackend::reset();
  for (std::size_t i = 0; i < 6; ++i) EXPECT_EQ(targets[i].item<float>({1}), i % 2 == 0 ? static_cast<float>(i) : 0.0F) << i;
  const auto sink = std::make_shared<Collect>();
  {
    const SinkAttachment attached = attach_sink(sink);
    copy_batch(sources, targets);
  }
  ASSERT_EQ(sink->targets.size(), 6U) << "each is recorded";
  for (std::size_t i = 0; i < 6; ++i) EXPECT_EQ(sink->targets[i], targets[i].device()) << "in the order they were given";
}

}  // namespace
}  // namespace berth::testing
