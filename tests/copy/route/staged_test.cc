// SPDX-License-Identifier: Apache-2.0
// Copies between the host and a device with several pieces in flight, and batches in one submission, on
// simulated devices, whose streams finish in any order that is legal.
#include <gtest/gtest.h>

#include <atomic>
#include <cstring>
#include <vector>

#include "base/random.h"
#include "berth/copy/convert.h"
#include "copy/route/execute.h"
#include "copy/route/pipeline.h"
#include "copy/route/staged.h"
#include "support/errors.h"
#include "support/everything.h"
#include "support/scale.h"

namespace berth::testing {

using namespace internal;
using namespace internal::copy;
namespace {

// Devices with and without kernels, and with and without a preference for page-locked memory.
const std::vector<Device>& devices() {
  static const std::vector<Device> made = [] {
    std::vector<Device> list;
    for (int bits = 0; bits < 4; ++bits)
      list.push_back(make_sim({.capacity_bytes = 64_MiB,
                               .seed = seed() + static_cast<std::uint64_t>(bits),
                               .kernels = (bits & 1) != 0,
                               .wants_pinned = (bits & 2) != 0}));
    return list;
  }();
  return made;
}

RouteEnd end_of(const Storage& storage) {
  return {storage.device(), storage.dtype(), storage.shape(), storage.strides(), backend(storage.device()).properties().abilities};
}

// Copies by a route with the given piece size. Returns whether several pieces were in flight.
bool copy_in_pieces(const Storage& source, const Storage& target, std::size_t piece_bytes) {
  const StridedSpan from = source.span();
  const StridedSpan to = target.span();
  const ValidatedPair pair = validate_pair(from, to);
  const Route route = plan_route(end_of(source), end_of(target), {.piece_bytes = piece_bytes});
  run_route(route, from, to, pair);
  return is_pipelined(route, pair);
}

Storage random_values(Random& random, const Shape& shape, DType dtype) {
  const Storage made = empty(shape, dtype, "cpu");
  auto* const bytes = static_cast<std::byte*>(made.data_ptr());
  for (std::size_t i = 0; i < made.size_bytes(); ++i) bytes[i] = static_cast<std::byte>(random.next());
  return made;
}

TEST(Staged, EveryPieceArrivesInBothDirectionsInAnyLayoutAndDType) {
  Random random(seed());
  constexpr DType kDTypes[] = {DType::f32, DType::bf16, DType::f64, DType::i8, DType::i32};
  const auto rounds = scaled(2'000, 100);
  std::uint64_t pipelined = 0;
  for (std::uint64_t round = 0; round < rounds; ++round) {
    const Device device = devices()[random.below(devices().size())];
    const DType from = kDTypes[random.below(std::size(kDTypes))];
    const DType to = random.one_in(2) ? from : kDTypes[random.below(std::size(kDTypes))];
    const Shape shape{1 + random.below(40), 1 + random.below(60)};
    const Storage source = random_values(random, shape, from);
    const Storage expected = source.to(to);
    // To the device and back, each time with one side transposed.
    const Storage there = random.one_in(2) ? empty(shape, to, device) : empty({shape[1], shape[0]}, to, device).transpose(0, 1);
    const Storage back = random.one_in(2) ? zeros(shape, to, "cpu") : zeros({shape[1], shape[0]}, to, "cpu").transpose(0, 1);
    pipelined += copy_in_pieces(source, there, 16 + random.below(2000)) ? 1 : 0;
    pipelined += copy_in_pieces(there, back, 16 + random.below(2000)) ? 1 : 0;
    ASSERT_TRUE(equal(back, expected)) << "seed " << seed() << ", round " << round << ", " << device.to_string() << ", "
                                       << shape.to_string() << " " << to_string(from) << " to " << to_string(to);
  }
  EXPECT_GT(pipelined, rounds / 4);
  did(std::to_string(pipelined) + " copies in several pieces at once, seed " + std::to_string(seed()));
}

TEST(Staged, AFailureOfAnyCopyIsThrownOnceAndNothingIsLeftBehind) {
  const Device device = make_sim({.capacity_bytes = 16_MiB, .seed = seed(), .wants_pinned = true});
  const Storage host = full({4000}, 3, DType::f32, "cpu");
  const Storage there = zeros({4000}, DType::f32, device);
  const Storage back = zeros({4000}, DType::f32, "cpu");
  ASSERT_TRUE(copy_in_pieces(host, there, 1000));
  const std::uint64_t live = default_allocator("pinned")->stats().live_blocks;
  for (std::uint64_t nth = 1; nth <= 16; ++nth) {
    sim_control(device).fail_after(SimOperation::copy, nth, ErrorCode::device_error);
    EXPECT_ERROR(copy_in_pieces(host, there, 1000), DeviceError, ErrorCode::device_error);
    sim_control(device).fail_after(SimOperation::copy, nth, ErrorCode::device_error);
    EXPECT_ERROR(copy_in_pieces(there, back, 1000), DeviceError, ErrorCode::device_error);
    EXPECT_EQ(default_allocator("pinned")->stats().live_blocks, live);
    EXPECT_EQ(sim_control(device).pending_work(), 0U) << "something still runs in memory that was given back";
  }
  sim_control(device).clear_faults();
  copy_in_pieces(host, there, 1000);
  copy_in_pieces(there, back, 1000);
  EXPECT_TRUE(equal(back, host)) << "it works again";
}

TEST(Staged, RunsInsideAStreamOfTheDevice) {
  for (const Device device : devices()) {
    const Stream stream = make_stream(device);
    const Storage host = full({3, 1 << 21}, 2, DType::f32, "cpu");
    const Storage there = empty({3, 1 << 21}, DType::f32, device);
    const Storage back = zeros({3, 1 << 21}, DType::f32, "cpu");
    there.copy_from(host, {.stream = stream, .non_blocking = true});
    const Event done = back.copy_from(there, {.stream = stream, .non_blocking = true});
    done.wait();
    EXPECT_TRUE(equal(back, host)) << device.to_string();
  }
}

// Counts how often each piece was started and finished.
class CountedWork final : public PipelineWork {
 public:
  explicit CountedWork(std::size_t pieces) : started(pieces), finished(pieces) {}

  struct Room final : PipelineRoom {
    explicit Room(CountedWork& of) : work(of) {}
    void start(std::size_t number, StreamRef) override {
      if (work.fail_at == number) throw std::runtime_error("asked for");
      piece = number;
      ++work.started[number];
    }
    void finish() override { ++work.finished[piece]; }
    CountedWork& work;
    std::size_t piece = 0;
  };
  std::unique_ptr<PipelineRoom> make_room() override { return std::make_unique<Room>(*this); }

  std::vector<std::atomic<int>> started;
  std::vector<std::atomic<int>> finished;
  std::size_t fail_at = SIZE_MAX;
};

TEST(Pipeline, StartsAndFinishesEveryPieceOnce) {
  for (const std::size_t pieces : {0U, 1U, 2U, 3U, 100U}) {
    for (const int threads : {1, 3, 16}) {
      CountedWork work(pieces);
      run_pipeline("sim:0", pieces, threads, work);
      for (std::size_t i = 0; i < pieces; ++i) EXPECT_TRUE(work.started[i] == 1 && work.finished[i] == 1) << i;
    }
  }
}

TEST(Pipeline, StartsNoMoreAfterAFailureAndThrowsIt) {
  CountedWork work(100);
  work.fail_at = 5;
  EXPECT_THROW(run_pipeline("sim:0", 100, 1, work), std::runtime_error);
  for (std::size_t i = 0; i < 100; ++i) EXPECT_EQ(work.started[i], i < 5 ? 1 : 0) << i;
}

TEST(DeviceBatch, ThousandsOfSmallCopiesAreOneSubmission) {
  for (const Device device : devices()) {
    const bool packed = backend(device).properties().abilities.wants_pinned;
    std::vector<Storage> sources;
    std::vector<Storage> targets;
    std::vector<Storage> back;
    for (int i = 0; i < 1000; ++i) {
      sources.push_back(full({1 + i % 50}, i, DType::i32, packed || i % 2 == 0 ? "cpu" : "pinned"));
      targets.push_back(zeros({1 + i % 50}, DType::i32, device));
      back.push_back(zeros({1 + i % 50}, DType::i32, "cpu"));
    }
    const std::uint64_t before = sim_control(device).count(SimOperation::copy);
    copy_batch(sources, targets);
    EXPECT_LE(sim_control(device).count(SimOperation::copy) - before, packed ? 1U : 2U) << device.to_string();
    copy_batch(targets, back);
    EXPECT_LE(sim_control(device).count(SimOperation::copy) - before, packed ? 2U : 3U) << device.to_string();
    for (int i = 0; i < 1000; ++i) ASSERT_TRUE(equal(back[static_cast<std::size_t>(i)], full({1 + i % 50}, i, DType::i32, "cpu"))) << i;
  }
}

TEST(DeviceBatch, LargeAndOddOnesAmongManyArriveToo) {
  Random random(seed());
  const auto rounds = scaled(60, 4);
  for (std::uint64_t round = 0; round < rounds; ++round) {
    const Device device = devices()[random.below(devices().size())];
    std::vector<Storage> sources;
    std::vector<Storage> targets;
    std::vector<Storage> back;
    std::vector<Storage> expected;
    for (std::uint64_t i = random.below(60); i > 0; --i) {
      const Shape shape{1 + random.below(random.one_in(10) ? 400'000 : 300), 1 + random.below(3)};
      const DType to = random.one_in(5) ? DType::bf16 : DType::f32;
      sources.push_back(random_values(random, shape, DType::f32));
      if (random.one_in(5)) sources.back() = sources.back().slice(1, 0, 1);
      targets.push_back(empty(sources.back().shape(), to, device));
      expected.push_back(sources.back().to(to));
      back.push_back(zeros(sources.back().shape(), to, "cpu"));
    }
    copy_batch(sources, targets);
    copy_batch(targets, back);
    for (std::size_t i = 0; i < back.size(); ++i) ASSERT_TRUE(equal(back[i], expected[i])) << "seed " << seed() << ", round " << round;
  }
}

}  // namespace
}  // namespace berth::testing
