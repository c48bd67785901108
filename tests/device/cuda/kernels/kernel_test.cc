// SPDX-License-Identifier: Apache-2.0
// The CUDA kernels by themselves: memory and streams come from CUDA's runtime, and no backend is involved.
// Every result is compared bit for bit with the host's reference, over the whole target with its gaps.
// Allocations are exactly as large as their contents, so that compute-sanitizer sees an access outside them.
#include <cuda_runtime_api.h>
#include <gtest/gtest.h>

#include <array>
#include <cstring>
#include <numeric>
#include <stdexcept>
#include <string>
#include <vector>

#include "base/random.h"
#include "berth/copy/convert.h"
#include "copy/random_layout.h"
#include "copy/telling_values.h"
#include "device/cuda/kernels/launch.h"
#include "support/scale.h"

namespace berth::testing {

using namespace internal;
namespace {

constexpr std::byte kUntouched{0xc7};

#define REQUIRE_CUDA(call)                                                                     \
  do {                                                                                         \
    const cudaError_t code_of_call = (call);                                                   \
    ASSERT_EQ(code_of_call, cudaSuccess) << #call << ": " << cudaGetErrorString(code_of_call); \
  } while (false)

void must(cudaError_t code, const char* what) {
  if (code != cudaSuccess) throw std::runtime_error(std::string(what) + ": " + cudaGetErrorString(code));
}

class CudaKernels : public ::testing::Test {
 protected:
  void SetUp() override {
    int count = 0;
    const cudaError_t code = cudaGetDeviceCount(&count);
    if (code != cudaSuccess || count == 0)
      GTEST_SKIP() << "no CUDA device: " << (code == cudaSuccess ? "none is there" : cudaGetErrorString(code));
    REQUIRE_CUDA(cudaSetDevice(0));
    REQUIRE_CUDA(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking));
  }
  void TearDown() override {
    if (stream_ != nullptr) {
      EXPECT_EQ(cudaStreamDestroy(stream_), cudaSuccess);
    }
  }

  void finish(const Status& launched) {
    ASSERT_TRUE(launched.ok()) << launched.failure().why;
    REQUIRE_CUDA(cudaStreamSynchronize(stream_));
  }

  cudaStream_t stream_ = nullptr;
};

// Bytes on the device that begin `offset` bytes into their allocation and end at its end.
class DeviceBytes {
 public:
  DeviceBytes(const std::vector<std::byte>& content, std::size_t offset) : offset_(offset), bytes_(content.size()) {
    must(cudaMalloc(&block_, std::max<std::size_t>(offset + bytes_, 1)), "cudaMalloc");
    if (bytes_ != 0) must(cudaMemcpy(data(), content.data(), bytes_, cudaMemcpyHostToDevice), "cudaMemcpy");
  }
  ~DeviceBytes() { (void)cudaFree(block_); }
  DeviceBytes(const DeviceBytes&) = delete;
  DeviceBytes& operator=(const DeviceBytes&) = delete;

  std::byte* data() const noexcept { return static_cast<std::byte*>(block_) + offset_; }
  std::vector<std::byte> read() const {
    std::vector<std::byte> bytes(bytes_);
    if (bytes_ != 0) must(cudaMemcpy(bytes.data(), data(), bytes_, cudaMemcpyDeviceToHost), "cudaMemcpy");
    return bytes;
  }

 private:
  void* block_ = nullptr;
  std::size_t offset_;
  std::size_t bytes_;
};

std::size_t first_difference(const std::vector<std::byte>& a, const std::vector<std::byte>& b) {
  return static_cast<std::size_t>(std::mismatch(a.begin(), a.end(), b.begin(), b.end()).first - a.begin());
}

// All values of dtypes of up to two bytes, else values at the edges; a few more, so that a tail follows the
// last whole vector.
std::vector<std::byte> values_of(DType dtype, std::uint64_t count) {
  if (size_bytes(dtype) > 2) return TellingValues(seed()).make(dtype, count + 7);
  const std::size_t all = (std::size_t{1} << (8 * size_bytes(dtype))) + 7;
  std::vector<std::byte> made(all * size_bytes(dtype));
  for (std::size_t i = 0; i < all; ++i) std::memcpy(&made[i * size_bytes(dtype)], &i, size_bytes(dtype));
  return made;
}

// A copy of random or given layouts, on the device and element by element on the host.
struct Case {
  DType from = DType::u8;
  DType to = DType::u8;
  std::vector<std::int64_t> shape;
  Layout source;
  Layout target;
  std::size_t source_offset = 0;  // from the start of the allocation
  std::size_t target_offset = 0;

  std::string to_string() const {
    return std::string(berth::to_string(from)) + " to " + std::string(berth::to_string(to)) + ", shape " + Strides(shape).to_string() +
           ", strides " + Strides(source.strides).to_string() + " and " + Strides(target.strides).to_string() + ", offsets " +
           std::to_string(source_offset) + " and " + std::to_string(target_offset);
  }
};

void fill_with_values(TellingValues& values, DType dtype, std::vector<std::byte>& bytes) {
  values.fill(dtype, bytes.data(), bytes.size() / size_bytes(dtype));
}

// REQUIRES: a device.
::testing::AssertionResult run_case(const Case& c, TellingValues& values, cudaStream_t stream) {
  const std::size_t from_bytes = size_bytes(c.from);
  const std::size_t to_bytes = size_bytes(c.to);
  std::vector<std::byte> source(static_cast<std::size_t>(c.source.reach) * from_bytes);
  fill_with_values(values, c.from, source);
  std::vector<std::byte> expected(static_cast<std::size_t>(c.target.reach) * to_bytes, kUntouched);
  const DeviceBytes from(source, c.source_offset);
  const DeviceBytes to(expected, c.target_offset);
  for_each_index(c.shape, c.source.strides, c.target.strides, [&](std::int64_t s, std::int64_t t) {
    convert_element(&source[static_cast<std::size_t>(c.source.first + s) * from_bytes], c.from,
                    &expected[static_cast<std::size_t>(c.target.first + t) * to_bytes], c.to);
  });
  const ElementCopy copy{.target = to.data() + static_cast<std::size_t>(c.target.first) * to_bytes,
                         .target_dtype = c.to,
                         .target_strides = Strides(c.target.strides),
                         .source = from.data() + static_cast<std::size_t>(c.source.first) * from_bytes,
                         .source_dtype = c.from,
                         .source_strides = Strides(c.source.strides),
                         .shape = Shape(c.shape)};
  if (!device::cuda::can_copy_elements(copy)) return ::testing::AssertionFailure() << "refused: " << c.to_string();
  const Status launched = device::cuda::launch_copy_elements(copy, stream);
  if (!launched) return ::testing::AssertionFailure() << launched.failure().why << ": " << c.to_string();
  if (const cudaError_t code = cudaStreamSynchronize(stream); code != cudaSuccess)
    return ::testing::AssertionFailure() << cudaGetErrorString(code) << ": " << c.to_string();
  const std::vector<std::byte> made = to.read();
  if (made == expected) return ::testing::AssertionSuccess();
  const std::size_t at = first_difference(made, expected);
  return ::testing::AssertionFailure() << c.to_string() << ": byte " << at << " is " << std::to_integer<int>(made[at]) << ", not "
                                       << std::to_integer<int>(expected[at]);
}

Layout contiguous(const std::vector<std::int64_t>& shape) {
  Layout layout;
  layout.strides.resize(shape.size());
  for (std::size_t i = shape.size(); i-- > 0; layout.reach *= shape[i]) layout.strides[i] = layout.reach;
  return layout;
}

// One matrix or several, seen with the last two axes exchanged; the row stride exceeds the row length by `gap`
// elements.
Layout transposed(const std::vector<std::int64_t>& shape, std::int64_t gap) {
  Layout layout;
  layout.strides.resize(shape.size());
  const std::size_t rows = shape.size() - 2;
  const std::int64_t pitch = shape[rows] + gap;
  layout.strides[rows] = 1;
  layout.strides[rows + 1] = pitch;
  std::int64_t step = pitch * shape[rows + 1];
  for (std::size_t i = rows; i-- > 0; step *= shape[i]) layout.strides[i] = step;
  layout.reach = step;
  return layout;
}

DType random_dtype(Random& random) { return static_cast<DType>(random.below(kDTypeCount)); }
constexpr std::array kQuick = {DType::f32, DType::f64, DType::f16, DType::bf16, DType::f8e4m3, DType::f8e5m2,
                               DType::i8,  DType::u8,  DType::i32, DType::i64,  DType::boolean};

TEST_F(CudaKernels, ConvertEveryPairAsTheReferenceDoes) {
  const std::uint64_t count = scaled(400'000, 5'000);
  for (const DTypeInfo& from : all_dtypes()) {
    const std::vector<std::byte> source = values_of(from.dtype, count);
    const std::size_t elements = source.size() / from.size_bytes();
    const DeviceBytes on_device(source, 0);
    for (const DTypeInfo& to : all_dtypes()) {
      std::vector<std::byte> expected(elements * to.size_bytes(), kUntouched);
      const DeviceBytes target(expected, 0);
      for (std::size_t i = 0; i < elements; ++i)
        convert_element(&source[i * from.size_bytes()], from.dtype, &expected[i * to.size_bytes()], to.dtype);
      finish(device::cuda::launch_copy_elements({.target = target.data(),
                                                 .target_dtype = to.dtype,
                                                 .target_strides = {1},
                                                 .source = on_device.data(),
                                                 .source_dtype = from.dtype,
                                                 .source_strides = {1},
                                                 .shape = {elements}},
                                                stream_));
      const std::vector<std::byte> made = target.read();
      if (made == expected) continue;
      const std::size_t at = first_difference(made, expected) / to.size_bytes();
      std::uint64_t bits[3] = {};
      std::memcpy(&bits[0], &source[at * from.size_bytes()], std::min<std::size_t>(from.size_bytes(), 8));
      std::memcpy(&bits[1], &made[at * to.size_bytes()], std::min<std::size_t>(to.size_bytes(), 8));
      std::memcpy(&bits[2], &expected[at * to.size_bytes()], std::min<std::size_t>(to.size_bytes(), 8));
      ADD_FAILURE() << from.name << " to " << to.name << ", element " << at << std::hex << ": " << bits[0] << " became " << bits[1]
                    << ", not " << bits[2];
    }
  }
  did("17 x 17 conversions of all values, or of " + std::to_string(count) + ", seed " + std::to_string(seed()));
}

TEST_F(CudaKernels, RunsOfEverySmallSizeAtEveryAlignment) {
  Random random(seed());
  TellingValues values(seed());
  const std::uint64_t rounds = scaled(10, 1);
  for (std::uint64_t round = 0; round < rounds; ++round) {
    for (std::int64_t size = 0; size <= 300; ++size) {
      Case c;
      c.from = random.one_in(3) ? random_dtype(random) : kQuick[random.below(kQuick.size())];
      c.to = random.one_in(3) ? c.from : random.one_in(3) ? random_dtype(random) : kQuick[random.below(kQuick.size())];
      c.shape = {size};
      c.source = contiguous(c.shape);
      c.target = contiguous(c.shape);
      const bool misaligned = random.one_in(4);  // also for the dtype
      c.source_offset = random.below(64) * (misaligned ? 1 : size_bytes(c.from));
      c.target_offset = random.below(64) * (misaligned ? 1 : size_bytes(c.to));
      ASSERT_TRUE(run_case(c, values, stream_)) << "seed " << seed() << ", round " << round;
    }
  }
}

TEST_F(CudaKernels, LongRunsAtAnyAlignment) {
  Random random(seed());
  TellingValues values(seed());
  const std::uint64_t rounds = scaled(300, 20);
  for (std::uint64_t round = 0; round < rounds; ++round) {
    Case c;
    c.from = kQuick[random.below(kQuick.size())];
    c.to = random.one_in(4) ? c.from : kQuick[random.below(kQuick.size())];
    const auto rows = static_cast<std::int64_t>(1 + random.below(4));
    c.shape = {rows, static_cast<std::int64_t>(1 + random.below(40'000))};
    const auto with_gap = [&](std::int64_t gap) {
      return Layout{.strides = {c.shape[1] + gap, 1}, .first = 0, .reach = (rows - 1) * (c.shape[1] + gap) + c.shape[1]};
    };
    c.source = with_gap(random.one_in(2) ? 0 : static_cast<std::int64_t>(random.below(40)));
    c.target = with_gap(random.one_in(2) ? 0 : static_cast<std::int64_t>(random.below(40)));
    c.source_offset = random.below(32) * (c.from == c.to ? 1 : size_bytes(c.from));
    c.target_offset = random.below(32) * (c.from == c.to ? 1 : size_bytes(c.to));
    ASSERT_TRUE(run_case(c, values, stream_)) << "seed " << seed() << ", round " << round;
  }
}

TEST_F(CudaKernels, EveryLayoutGivesWhatACopyElementByElementGives) {
  Random random(seed());
  TellingValues values(seed());
  const std::uint64_t rounds = scaled(3'000, 100);
  for (std::uint64_t round = 0; round < rounds; ++round) {
    Case c;
    c.from = random.one_in(2) ? random_dtype(random) : kQuick[random.below(kQuick.size())];
    c.to = random.one_in(2) ? c.from : random.one_in(2) ? random_dtype(random) : kQuick[random.below(kQuick.size())];
    c.shape = random_shape(random, 40'000);
    c.source = random_layout(random, c.shape, Repeats::axes);
    c.target = random_layout(random, c.shape, Repeats::never);
    const bool misaligned = random.one_in(6);
    c.source_offset = random.below(20) * (misaligned ? 1 : size_bytes(c.from));
    c.target_offset = random.below(20) * (misaligned ? 1 : size_bytes(c.to));
    ASSERT_TRUE(run_case(c, values, stream_)) << "seed " << seed() << ", round " << round;
  }
  did(std::to_string(rounds) + " random layouts, seed " + std::to_string(seed()));
}

TEST_F(CudaKernels, TransposesOfEverySizeAroundTheBordersOfTiles) {
  constexpr std::array kTurned = {DType::f32, DType::f16, DType::bf16, DType::f8e4m3, DType::f8e5m2, DType::i8};
  Random random(seed());
  TellingValues values(seed());
  constexpr std::array<std::array<std::int64_t, 2>, 16> kShapes = {{{64, 64},
                                                                    {63, 65},
                                                                    {128, 128},
                                                                    {127, 129},
                                                                    {256, 256},
                                                                    {8, 300},
                                                                    {300, 8},
                                                                    {257, 129},
                                                                    {100, 33},
                                                                    {16, 1025},
                                                                    {1025, 16},
                                                                    {192, 320},
                                                                    {191, 321},
                                                                    {64, 1000},
                                                                    {1, 77},
                                                                    {130, 1}}};
  std::vector<std::array<DType, 2>> pairs;
  for (const DType dtype : {DType::u8, DType::f16, DType::f32, DType::f64, DType::c64, DType::c128}) pairs.push_back({dtype, dtype});
  for (const DType from : kTurned) {
    for (const DType to : kTurned) {
      if (from != to) pairs.push_back({from, to});
    }
  }
  pairs.push_back({DType::f32, DType::f64});
  pairs.push_back({DType::f64, DType::f32});
  pairs.push_back({DType::i32, DType::f16});
  for (std::uint64_t round = 0; round < scaled(4, 1); ++round) {
    for (const auto& [from, to] : pairs) {
      for (const auto& size : kShapes) {
        Case c;
        c.from = from;
        c.to = to;
        c.shape = {size[0], size[1]};
        if (random.one_in(3)) c.shape.insert(c.shape.begin(), static_cast<std::int64_t>(1 + random.below(4)));
        const auto gap = random.one_in(2) ? 0 : static_cast<std::int64_t>(random.below(20));
        c.source = transposed(c.shape, gap);
        c.target = contiguous(c.shape);
        if (random.one_in(4)) std::swap(c.source, c.target);
        c.source_offset = random.one_in(2) ? 0 : random.below(16) * size_bytes(from);
        c.target_offset = random.one_in(2) ? 0 : random.below(16) * size_bytes(to);
        ASSERT_TRUE(run_case(c, values, stream_)) << "seed " << seed();
      }
    }
  }
}

TEST_F(CudaKernels, PicturesChangeTheOrderOfTheirChannels) {
  TellingValues values(seed());
  for (const DType to : {DType::f32, DType::bf16}) {
    for (const std::int64_t channels : {3, 4, 64, 67}) {
      Case c;
      c.from = DType::f32;
      c.to = to;
      c.shape = {2, 33, 17, channels};  // NHWC, seen from the target
      c.target = contiguous(c.shape);
      c.source = {.strides = {channels * 33 * 17, 17, 1, 33 * 17}, .first = 0, .reach = 2 * channels * 33 * 17};
      ASSERT_TRUE(run_case(c, values, stream_));
      std::swap(c.source, c.target);
      ASSERT_TRUE(run_case(c, values, stream_));
    }
  }
}

TEST_F(CudaKernels, MoreElementsThanALaunchTakesAreCutWithoutASeam) {
  constexpr std::size_t kElements = (std::size_t{1} << 30) + 4099;
  std::size_t free = 0;
  std::size_t total = 0;
  REQUIRE_CUDA(cudaMemGetInfo(&free, &total));
  if (free < std::size_t{6} << 30 || scaled(10, 1) < 10) GTEST_SKIP() << "needs 4 GiB of the device, and the full scale";
  std::byte* source = nullptr;
  std::byte* target = nullptr;
  REQUIRE_CUDA(cudaMalloc(reinterpret_cast<void**>(&source), kElements));
  REQUIRE_CUDA(cudaMalloc(reinterpret_cast<void**>(&target), kElements * 2));
  const auto pattern = TellingValues(seed()).make(DType::f8e4m3, 16);
  finish(device::cuda::launch_fill(source, kElements / 16 * 16, pattern, stream_));
  finish(device::cuda::launch_fill(source + kElements / 16 * 16, kElements % 16, std::span(pattern).first(1), stream_));
  finish(device::cuda::launch_copy_elements({.target = target,
                                             .target_dtype = DType::f16,
                                             .target_strides = {1},
                                             .source = source,
                                             .source_dtype = DType::f8e4m3,
                                             .source_strides = {1},
                                             .shape = {kElements}},
                                            stream_));
  constexpr std::size_t kWindow = 8192;
  for (const std::size_t at : {std::size_t{0}, (std::size_t{1} << 30) - kWindow / 2, kElements - kWindow}) {
    std::vector<std::byte> made(kWindow * 2);
    REQUIRE_CUDA(cudaMemcpy(made.data(), target + at * 2, made.size(), cudaMemcpyDeviceToHost));
    for (std::size_t i = 0; i < kWindow; ++i) {
      const std::byte value = at + i < kElements / 16 * 16 ? pattern[(at + i) % 16] : pattern[0];
      std::uint16_t expected = 0;
      convert_element(&value, DType::f8e4m3, &expected, DType::f16);
      ASSERT_EQ(std::memcmp(&made[i * 2], &expected, 2), 0) << at + i;
    }
  }
  REQUIRE_CUDA(cudaFree(source));
  REQUIRE_CUDA(cudaFree(target));
}

TEST_F(CudaKernels, FillsRepeatEveryPatternAndWriteNothingElse) {
  Random random(seed());
  const auto pattern = TellingValues(seed()).make(DType::c128, 1);
  for (const std::size_t size : {1U, 2U, 4U, 8U, 16U}) {
    for (std::size_t count = 0; count <= 300 / size + 3; ++count) {
      const std::size_t before = random.below(40);
      std::vector<std::byte> expected(before + count * size + random.below(40), kUntouched);
      const DeviceBytes target(expected, random.below(16));
      for (std::size_t i = 0; i < count * size; ++i) expected[before + i] = pattern[i % size];
      finish(device::cuda::launch_fill(target.data() + before, count * size, std::span(pattern).first(size), stream_));
      ASSERT_TRUE(target.read() == expected) << size << " bytes, " << count << " times";
    }
  }
  std::vector<std::byte> expected(scaled(40'000'000, 1'000'000) / 16 * 16);
  const DeviceBytes target(expected, 8);
  for (std::size_t i = 0; i < expected.size(); ++i) expected[i] = pattern[i % 16];
  finish(device::cuda::launch_fill(target.data(), expected.size(), pattern, stream_));
  EXPECT_TRUE(target.read() == expected);
}

TEST_F(CudaKernels, AGatherCopiesEveryPieceFromHostAndDevice) {
  Random random(seed());
  const std::uint64_t rounds = scaled(20, 2);
  for (std::uint64_t round = 0; round < rounds; ++round) {
    const std::size_t count = round == 0 ? 5000 : random.below(3000);
    struct Span {
      std::size_t source;
      std::size_t target;
      std::size_t bytes;
    };
    std::vector<Span> spans;
    std::size_t source_bytes = 0;
    std::size_t target_bytes = 0;
    for (std::size_t i = 0; i < count; ++i) {
      const std::size_t bytes = random.one_in(20) ? random.below(100'000) : random.one_in(3) ? 1024 : random.below(200);
      source_bytes += random.one_in(2) ? random.below(40) : (16 - source_bytes % 16) % 16;
      target_bytes += random.one_in(2) ? random.below(40) : (16 - target_bytes % 16) % 16;
      spans.push_back({source_bytes, target_bytes, bytes});
      source_bytes += bytes;
      target_bytes += bytes;
    }
    std::vector<std::byte> content(source_bytes);
    for (std::byte& byte : content) byte = static_cast<std::byte>(random.next());
    std::vector<std::byte> expected(target_bytes, kUntouched);
    const DeviceBytes on_device(content, 0);
    const DeviceBytes target(expected, 0);
    std::byte* pinned = nullptr;
    REQUIRE_CUDA(cudaHostAlloc(reinterpret_cast<void**>(&pinned), std::max<std::size_t>(source_bytes, 1), cudaHostAllocDefault));
    std::copy(content.begin(), content.end(), pinned);
    std::vector<device::cuda::BytePiece> pieces;
    for (const Span& span : spans) {
      const std::byte* const base = random.one_in(2) ? pinned : on_device.data();
      pieces.push_back({target.data() + span.target, base + span.source, span.bytes});
      std::copy_n(content.begin() + static_cast<std::ptrdiff_t>(span.source), span.bytes,
                  expected.begin() + static_cast<std::ptrdiff_t>(span.target));
    }
    finish(device::cuda::launch_gather(pieces, stream_));
    const std::vector<std::byte> made = target.read();
    REQUIRE_CUDA(cudaFreeHost(pinned));
    ASSERT_TRUE(made == expected) << "seed " << seed() << ", round " << round << ", byte " << first_difference(made, expected);
  }
}

TEST_F(CudaKernels, WorkCanBeCapturedIntoAGraph) {
  const std::vector<std::byte> values = TellingValues(seed()).make(DType::f32, 5000);
  const DeviceBytes source(values, 0);
  const DeviceBytes target(std::vector<std::byte>(5000 * 2), 0);
  cudaGraph_t graph = nullptr;
  REQUIRE_CUDA(cudaStreamBeginCapture(stream_, cudaStreamCaptureModeGlobal));
  const Status launched = device::cuda::launch_copy_elements({.target = target.data(),
                                                              .target_dtype = DType::bf16,
                                                              .target_strides = {1},
                                                              .source = source.data(),
                                                              .source_dtype = DType::f32,
                                                              .source_strides = {1},
                                                              .shape = {5000}},
                                                             stream_);
  const std::array<device::cuda::BytePiece, 1> pieces = {{{target.data(), source.data(), 16}}};
  const Status gathered = device::cuda::launch_gather(pieces, stream_);
  REQUIRE_CUDA(cudaStreamEndCapture(stream_, &graph));
  ASSERT_TRUE(launched.ok() && gathered.ok());
  cudaGraphExec_t ready = nullptr;
  REQUIRE_CUDA(cudaGraphInstantiate(&ready, graph, 0));
  REQUIRE_CUDA(cudaGraphLaunch(ready, stream_));
  REQUIRE_CUDA(cudaStreamSynchronize(stream_));
  const std::vector<std::byte> made = target.read();
  EXPECT_EQ(std::memcmp(made.data(), values.data(), 16), 0);
  for (std::size_t i = 8; i < 5000; ++i) {
    std::uint16_t expected = 0;
    convert_element(&values[i * 4], DType::f32, &expected, DType::bf16);
    ASSERT_EQ(std::memcmp(&made[i * 2], &expected, 2), 0) << i;
  }
  REQUIRE_CUDA(cudaGraphExecDestroy(ready));
  REQUIRE_CUDA(cudaGraphDestroy(graph));
}

TEST(CudaLaunch, RefusesPatternsThatAreNone) {
  std::array<std::byte, 12> bytes{};
  EXPECT_EQ(device::cuda::launch_fill(bytes.data(), 12, std::span(bytes).first(3), nullptr).failure().code, ErrorCode::invalid_argument);
  EXPECT_EQ(device::cuda::launch_fill(bytes.data(), 12, std::span(bytes).first(8), nullptr).failure().code, ErrorCode::invalid_argument);
}

TEST(CudaLaunch, HasNothingToDoForNothing) {
  EXPECT_TRUE(device::cuda::launch_fill(nullptr, 0, std::array<std::byte, 1>{}, nullptr).ok());
  EXPECT_TRUE(device::cuda::launch_gather({}, nullptr).ok());
  EXPECT_TRUE(device::cuda::launch_copy_elements({.target_strides = {1, 1}, .source_strides = {1, 1}, .shape = {0, 3}}, nullptr).ok());
}

TEST(CudaLaunch, SaysWhyWhereThereIsNoDevice) {
  int count = 0;
  if (cudaGetDeviceCount(&count) == cudaSuccess && count > 0) GTEST_SKIP() << "there is one";
  (void)cudaGetLastError();
  const cudaError_t before = cudaPeekAtLastError();
  std::array<std::byte, 16> bytes{};
  const Status launched = device::cuda::launch_fill(bytes.data(), 16, std::span(bytes).first(1), nullptr);
  ASSERT_FALSE(launched.ok());
  EXPECT_NE(std::string(launched.failure().why), "");
  EXPECT_EQ(cudaPeekAtLastError(), before) << "nobody else finds the error";
}

}  // namespace
}  // namespace berth::testing
