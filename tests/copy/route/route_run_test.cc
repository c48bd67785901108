// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <future>
#include <numeric>
#include <vector>

#include "base/random.h"
#include "berth/copy/convert.h"
#include "berth/copy/route.h"
#include "copy/fake_devices.h"
#include "copy/route/execute.h"
#include "support/errors.h"
#include "support/everything.h"
#include "support/scale.h"

namespace berth::testing {

using namespace internal::base;
using namespace internal::copy;
namespace {

constexpr DType kRouteDTypes[] = {DType::boolean, DType::u8,  DType::i8,  DType::i32,    DType::i64,    DType::u64, DType::f16,
                                  DType::bf16,    DType::f32, DType::f64, DType::f8e4m3, DType::f8e5m2, DType::c64, DType::c128};

// A layout, and the range of elements that it needs.
struct Layout {
  Strides strides;
  std::int64_t start = 0;  // of the element at index 0, 0, …
  std::int64_t length = 0;
};

Shape random_shape(Random& random) {
  std::vector<std::int64_t> dims(random.below(5));
  for (std::int64_t& dim : dims) dim = static_cast<std::int64_t>(random.one_in(40) ? 0 : 1 + random.below(6));
  return Shape(std::span<const std::int64_t>(dims));
}

// Dense, permuted, with gaps, reversed; `repeats` allows strides of 0.
Layout random_layout(Random& random, const Shape& shape, bool repeats) {
  std::vector<std::size_t> order(shape.rank());
  std::iota(order.begin(), order.end(), std::size_t{0});
  if (random.one_in(2)) {
    for (std::size_t i = order.size(); i > 1; --i) std::swap(order[i - 1], order[random.below(i)]);
  }
  const bool gaps = random.one_in(2);
  Layout made{Strides(shape.rank(), 1), 0, 1};
  for (std::size_t i = order.size(); i-- > 0;) {
    const std::int64_t size = shape[order[i]];
    std::int64_t stride = made.length + (gaps && random.one_in(3) ? static_cast<std::int64_t>(random.below(3)) : 0);
    if (repeats && random.one_in(12)) stride = 0;
    made.length += std::max<std::int64_t>(size - 1, 0) * stride;
    if (random.one_in(5) && size > 0) {
      made.start += (size - 1) * stride;
      stride = -stride;
    }
    made.strides.set(order[i], stride);
  }
  return made;
}

// Bytes on a device, written and read as a whole.
struct Memory {
  Buffer buffer;

  Memory(Device device, std::span<const std::byte> bytes) : buffer(make_buffer(bytes.size(), device)) {
    copy_bytes(buffer.data(), device, bytes.data(), "cpu", bytes.size());
  }
  std::vector<std::byte> bytes() const {
    std::vector<std::byte> read(buffer.size_bytes());
    copy_bytes(read.data(), "cpu", buffer.data(), buffer.device(), read.size());
    return read;
  }
  StridedSpan span(DType dtype, const Shape& shape, const Layout& layout, std::size_t offset_bytes = 0) const {
    auto* const first = static_cast<std::byte*>(buffer.data()) + offset_bytes;
    return {first + layout.start * static_cast<std::int64_t>(size_bytes(dtype)), dtype, shape, layout.strides, buffer.device(), {}};
  }
};

std::vector<std::byte> random_bytes(Random& random, std::size_t count) {
  std::vector<std::byte> bytes(count);
  for (std::byte& byte : bytes) byte = static_cast<std::byte>(random.next());
  return bytes;
}

std::size_t bytes_of(const Layout& layout, DType dtype) { return static_cast<std::size_t>(layout.length) * size_bytes(dtype); }

// The slow and obvious copy: element by element, from the previous contents.
struct Model {
  std::span<const std::byte> from;
  DType from_dtype;
  Layout from_layout;
  std::span<std::byte> to;
  DType to_dtype;
  Layout to_layout;

  void run(const Shape& shape, std::size_t axis, std::int64_t s, std::int64_t t) const {
    if (axis == shape.rank()) {
      convert_element(&from[static_cast<std::size_t>(s) * size_bytes(from_dtype)], from_dtype,
                      &to[static_cast<std::size_t>(t) * size_bytes(to_dtype)], to_dtype);
      return;
    }
    for (std::int64_t i = 0; i < shape[axis]; ++i) run(shape, axis + 1, s + i * from_layout.strides[axis], t + i * to_layout.strides[axis]);
  }
  void run(const Shape& shape) const { run(shape, 0, from_layout.start, to_layout.start); }
};

// The live blocks of all devices that a copy can involve.
std::vector<std::uint64_t> live_blocks() {
  std::vector<std::uint64_t> counts{default_allocator("pinned")->stats().live_blocks};
  for (const Device device : fake_devices()) counts.push_back(default_allocator(device)->stats().live_blocks);
  return counts;
}

// Through the public function, or by a route with so small a piece size that there are many pieces.
Route run_somehow(Random& random, const StridedSpan& source, const StridedSpan& target) {
  if (random.one_in(2)) {
    berth::copy(source, target);
    return plan_route(source, target);
  }
  const ValidatedPair pair = validate_pair(source, target);
  const auto end = [](const StridedSpan& span) {
    return RouteEnd{span.device, span.dtype, span.shape, span.strides, backend(span.device).properties().abilities};
  };
  const Route route = plan_route(end(source), end(target),
                                 {.piece_bytes = 1 + random.below(200),
                                  .source_reaches = backend(source.device).reaches(target.device),
                                  .target_reaches = backend(target.device).reaches(source.device),
                                  .overlap = pair.kind == PairKind::overlapping || pair.kind == PairKind::nothing});
  run_route(route, source, target, pair);
  return route;
}

TEST(RouteRun, EveryPairOfDevicesGivesWhatACopyElementByElementGives) {
  Random random(seed());
  const std::vector<Device>& devices = fake_devices();
  const std::vector<std::uint64_t> live = live_blocks();
  std::set<std::string> routes;
  const auto rounds = scaled(60'000, 2'000);
  FakeBackend::reset();
  for (std::uint64_t round = 0; round < rounds; ++round) {
    const Device from = devices[random.below(devices.size())];
    const Device to = devices[random.below(devices.size())];
    const DType source_dtype = kRouteDTypes[random.below(std::size(kRouteDTypes))];
    const DType target_dtype = random.one_in(2) ? source_dtype : kRouteDTypes[random.below(std::size(kRouteDTypes))];
    const Shape shape = random_shape(random);
    const Layout source_layout = random_layout(random, shape, true);
    const Layout target_layout = random_layout(random, shape, false);
    const std::vector<std::byte> source_bytes = random_bytes(random, bytes_of(source_layout, source_dtype));
    std::vector<std::byte> expected = random_bytes(random, bytes_of(target_layout, target_dtype));
    const Memory source(from, source_bytes);
    const Memory target(to, expected);
    Model{source_bytes, source_dtype, source_layout, expected, target_dtype, target_layout}.run(shape);

    const Route route =
        run_somehow(random, source.span(source_dtype, shape, source_layout), target.span(target_dtype, shape, target_layout));
    ASSERT_TRUE(target.bytes() == expected) << "seed " << seed() << ", round " << round << ": " << from.to_string() << " to "
                                            << to.to_string() << ", shape " << shape.to_string() << ", strides "
                                            << source_layout.strides.to_string() << " and " << target_layout.strides.to_string() << "\n"
                                            << route.to_string();
    ASSERT_TRUE(source.bytes() == source_bytes);
    std::string kinds;
    for (const RouteStep& step : route.steps) kinds += std::string(to_string(step.kind)) + " ";
    routes.insert(kinds);
  }
  EXPECT_EQ(live_blocks(), live) << "staging or scratch was not given back";
  for (const char* const way :
       {"host ", "transfer ", "kernel ", "peer ", "host transfer ", "transfer host ", "kernel transfer ", "transfer kernel ",
        "transfer transfer ", "transfer host transfer ", "kernel peer ", "peer kernel ", "kernel peer kernel ",
        "kernel transfer transfer kernel ", "host transfer kernel ", "kernel transfer host "})
    EXPECT_TRUE(routes.contains(way)) << "no random copy went this way: " << way;
  did(std::to_string(rounds) + " random copies by " + std::to_string(routes.size()) + " ways, seed " + std::to_string(seed()));
}

TEST(RouteRun, SidesThatShareBytesGiveTheResultOfACopyThroughATemporary) {
  Random random(seed());
  const std::vector<Device>& devices = fake_devices();
  const std::vector<std::uint64_t> live = live_blocks();
  const auto rounds = scaled(30'000, 1'000);
  std::uint64_t overlapping = 0;
  FakeBackend::reset();
  for (std::uint64_t round = 0; round < rounds; ++round) {
    const Device device = devices[random.below(devices.size())];
    const DType source_dtype = kRouteDTypes[random.below(std::size(kRouteDTypes))];
    const DType target_dtype = random.one_in(2) ? source_dtype : kRouteDTypes[random.below(std::size(kRouteDTypes))];
    const Shape shape = random_shape(random);
    const Layout source_layout = random_layout(random, shape, true);
    const Layout target_layout = random_layout(random, shape, false);
    const std::size_t source_offset = random.below(64);
    const std::size_t target_offset = random.below(64);
    const std::size_t source_end = source_offset + bytes_of(source_layout, source_dtype);
    const std::size_t target_end = target_offset + bytes_of(target_layout, target_dtype);
    const std::vector<std::byte> before = random_bytes(random, std::max(source_end, target_end));
    std::vector<std::byte> expected = before;
    Model{std::span(before).subspan(source_offset),   source_dtype, source_layout,
          std::span(expected).subspan(target_offset), target_dtype, target_layout}
        .run(shape);
    const Memory memory(device, before);
    const Route route = run_somehow(random, memory.span(source_dtype, shape, source_layout, source_offset),
                                    memory.span(target_dtype, shape, target_layout, target_offset));
    if (route.overlap) ++overlapping;
    ASSERT_TRUE(memory.bytes() == expected) << "seed " << seed() << ", round " << round << ": " << device.to_string() << ", shape "
                                            << shape.to_string() << "\n"
                                            << route.to_string();
  }
  EXPECT_GT(overlapping, rounds / 4);
  EXPECT_EQ(live_blocks(), live);
}

// One copy between two devices that takes every kind of step: transposed, converted, in two pieces.
struct Scenario {
  Storage source;
  Storage target;

  Scenario(Device from, Device to) : source(full({6, 4}, 3, DType::f32, from).transpose(0, 1)), target(zeros({4, 8}, DType::f16, to)) {}
  void run() const {
    const StridedSpan from = source.span();
    const StridedSpan to = target.slice(1, 0, 6).span();
    const auto end = [](const StridedSpan& span) {
      return RouteEnd{span.device, span.dtype, span.shape, span.strides, backend(span.device).properties().abilities};
    };
    const RouteSettings settings{.piece_bytes = 48, .source_reaches = backend(from.device).reaches(to.device)};
    run_route(plan_route(end(from), end(to), settings), from, to, validate_pair(from, to));
  }
};

TEST(RouteRun, AFailureOfAnyCallOnTheWayIsTheErrorAndNothingLeaks) {
  std::uint64_t failures = 0;
  for (const Device from : fake_devices()) {
    for (const Device to : fake_devices()) {
      const Scenario scenario(from, to);
      const std::vector<std::uint64_t> live = live_blocks();
      FakeBackend::reset();
      scenario.run();
      const std::uint64_t calls = FakeBackend::calls();
      for (std::uint64_t nth = 1; nth <= calls; ++nth) {
        FakeBackend::fail_after(nth);
        bool thrown = false;
        try {
          scenario.run();
        } catch (const OutOfMemory&) {
          thrown = FakeBackend::failed() == FakeBackend::Call::commit;
        } catch (const DeviceError& error) {
          thrown = error.code() == ErrorCode::device_error && FakeBackend::failed() != FakeBackend::Call::commit;
          EXPECT_NE(error.why().find("a fault was asked for"), std::string::npos) << error.what();
        }
        EXPECT_TRUE(thrown) << from.to_string() << " to " << to.to_string() << ", call " << nth;
        EXPECT_EQ(live_blocks(), live) << from.to_string() << " to " << to.to_string() << ", call " << nth;
        failures += thrown ? 1 : 0;
      }
      FakeBackend::reset();
      scenario.run();
      EXPECT_TRUE(equal(scenario.target.slice(1, 0, 6).to("cpu"), full({4, 6}, 3, DType::f16, "cpu"))) << "it works again";
    }
  }
  did(std::to_string(failures) + " failures");
  EXPECT_GT(failures, 1000U);
}

TEST(Fill, WritesEveryElementOfAnyLayoutAndNoGap) {
  for (const Device device : fake_devices()) {
    const Storage x = full({5, 6}, 7, DType::i32, device);
    FakeBackend::reset();
    x.slice(0, 1, 4).slice(1, 0, 6, 2).fill(9);
    EXPECT_LE(FakeBackend::calls(), backend(device).properties().abilities.kernels ? 3U : 9U) << "by a kernel, where there is one";
    x.select(0, 4).fill(-1);
    x.select(1, 1).slice(0, 0, 1).expand({3}).fill(2);
    const Storage host = x.to("cpu");
    for (std::int64_t i = 0; i < 5; ++i) {
      for (std::int64_t j = 0; j < 6; ++j) {
        const int inner = i >= 1 && i < 4 && j % 2 == 0 ? 9 : 7;
        const int value = i == 4 ? -1 : i == 0 && j == 1 ? 2 : inner;
        EXPECT_EQ(host.item<std::int32_t>({i, j}), value) << device.to_string() << " " << i << " " << j;
      }
    }
  }
}

// A stream that does nothing until it is released.
class HeldStream {
 public:
  HeldStream() {
    stream_.enqueue([gate = gate_.get_future().share()] { gate.wait(); });
  }
  ~HeldStream() { release(); }
  void release() {
    if (!std::exchange(released_, true)) gate_.set_value();
  }
  const Stream& stream() const { return stream_; }

 private:
  Stream stream_ = make_stream("cpu");
  std::promise<void> gate_;
  bool released_ = false;
};

TEST(NonBlocking, ACopyReturnsWhileItsStreamIsHeldAndKeepsItsSourceAlive) {
  for (const Device from : {Device("cpu"), fake(0), fake(kKernels)}) {
    for (const Device to : {Device("cpu"), fake(0), fake(kKernels | kWantsPinned)}) {
      HeldStream held;
      const CopyOptions later{.stream = held.stream(), .non_blocking = true};
      const Storage target = zeros({3, 4}, DType::f16, to);
      Storage source = full({4, 3}, 5, DType::f32, from);
      const Buffer bytes = source.buffer();
      const Event done = target.copy_from(source.transpose(0, 1), later);
      source = Storage();
      EXPECT_GE(bytes.use_count(), 2) << "the copy holds it too";
      EXPECT_FALSE(done.query());
      EXPECT_TRUE(equal(target, zeros({3, 4}, DType::f16, to))) << "not before its turn";
      held.release();
      done.wait();
      EXPECT_TRUE(equal(target.to("cpu"), full({3, 4}, 5, DType::f16, "cpu")));
      held.stream().synchronize();
      EXPECT_EQ(bytes.use_count(), 1) << "and lets go of it when it has run";
    }
  }
}

TEST(NonBlocking, FillsAndBatchesWaitForTheirTurnAndKeepTheirBuffersAlive) {
  HeldStream held;
  const CopyOptions later{.stream = held.stream(), .non_blocking = true};
  const Storage filled = zeros({8}, DType::f32, "cpu");
  const Event fill_done = filled.slice(0, 0, 8, 2).fill(1, later);
  std::vector<Storage> sources;
  std::vector<Storage> targets;
  for (int i = 0; i < 6; ++i) {
    sources.push_back(full({5}, i, DType::i32, i % 2 == 0 ? Device("cpu") : fake(i)));
    targets.push_back(zeros({5}, DType::f32, i % 3 == 0 ? Device("cpu") : fake(kKernels)));
  }
  sources.push_back(filled);  // ordered after the fill
  targets.push_back(zeros({8}, DType::f64, "cpu"));
  const std::vector<Storage> seen = targets;
  const Buffer one = sources[0].buffer();
  const Event batch_done = copy_batch(sources, targets, later);
  sources.clear();
  targets.clear();
  EXPECT_GE(one.use_count(), 2);
  EXPECT_FALSE(fill_done.query());
  EXPECT_FALSE(batch_done.query());
  EXPECT_EQ(filled.item<float>({0}), 0.0F);
  held.release();
  batch_done.wait();
  EXPECT_TRUE(fill_done.query());
  for (int i = 0; i < 6; ++i) EXPECT_TRUE(equal(seen[static_cast<std::size_t>(i)].to("cpu"), full({5}, i, DType::f32, "cpu"))) << i;
  EXPECT_EQ(seen[6].item<double>({4}), 1.0);
  EXPECT_EQ(seen[6].item<double>({5}), 0.0);
  held.stream().synchronize();
  EXPECT_EQ(one.use_count(), 1);
}

TEST(NonBlocking, AFailureInTheStreamIsThrownByTheEvent) {
  const Storage target = zeros({4}, DType::f32, fake(0));
  const Storage source = full({4}, 1, DType::f32, "cpu");
  const Stream stream = make_stream("cpu");
  FakeBackend::fail_after(1);
  const Event done = target.copy_from(source, {.stream = stream, .non_blocking = true});
  EXPECT_ERROR(done.wait(), DeviceError, ErrorCode::device_error);
  EXPECT_ERROR(stream.synchronize(), DeviceError, ErrorCode::device_error);
  FakeBackend::reset();
}

}  // namespace
}  // namespace berth::testing
