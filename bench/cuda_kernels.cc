// SPDX-License-Identifier: Apache-2.0
// The CUDA kernels alone, timed by device events: bytes read plus written per second, and the ratio to the
// device's own copy. Launch overhead is not included; `berth bench copy --device cuda:0` includes it. Values
// are random bits, including NaNs.
#include <cuda_runtime_api.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <string>
#include <vector>

#include "base/random.h"
#include "device/cuda/kernels/launch.h"

namespace {

using namespace berth;
using namespace berth::internal;
using namespace berth::internal::device;

constexpr std::size_t kBytes = std::size_t{1} << 30;  // per buffer: many times the L2 cache

void must(cudaError_t code) {
  if (code == cudaSuccess) return;
  std::printf("CUDA: %s\n", cudaGetErrorString(code));
  std::exit(1);
}
void must(const Status& status) {
  if (status.ok()) return;
  std::printf("berth: %s\n", status.failure().why);
  std::exit(1);
}

class Timer {
 public:
  Timer() {
    must(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking));
    must(cudaEventCreate(&begin_));
    must(cudaEventCreate(&end_));
  }
  cudaStream_t stream() const { return stream_; }

  // The median over rounds of several runs each.
  double seconds(const std::function<void()>& run) const {
    constexpr int kRuns = 5;
    std::array<float, 9> rounds{};
    run();
    for (float& round : rounds) {
      must(cudaEventRecord(begin_, stream_));
      for (int i = 0; i < kRuns; ++i) run();
      must(cudaEventRecord(end_, stream_));
      must(cudaEventSynchronize(end_));
      must(cudaEventElapsedTime(&round, begin_, end_));
    }
    std::nth_element(rounds.begin(), rounds.begin() + rounds.size() / 2, rounds.end());
    return static_cast<double>(rounds[rounds.size() / 2]) * 1e-3 / kRuns;
  }

 private:
  cudaStream_t stream_ = nullptr;
  cudaEvent_t begin_ = nullptr;
  cudaEvent_t end_ = nullptr;
};

class Program {
 public:
  Program() {
    std::vector<std::uint64_t> bits(kBytes / 8);
    Random random(1);
    for (std::uint64_t& word : bits) word = random.next();
    must(cudaMalloc(&source_, kBytes));
    must(cudaMalloc(&target_, kBytes));
    must(cudaMemcpy(source_, bits.data(), kBytes, cudaMemcpyHostToDevice));
  }

  void run() {
    plain_ = 2 * static_cast<double>(kBytes) /
             timer_.seconds([&] { must(cudaMemcpyAsync(target_, source_, kBytes, cudaMemcpyDeviceToDevice, timer_.stream())); });
    std::printf("%-28s %8.3f TB/s\n", "device copy", plain_ * 1e-12);
    for (const DType from : kDTypes) {
      for (const DType to : kDTypes) {
        if (from != to) whole(from, to);
      }
    }
    whole(DType::i32, DType::f32);
    whole(DType::i64, DType::i32);
    whole(DType::f32, DType::f32);
    for (const DType dtype : {DType::f32, DType::u8, DType::f16, DType::f64}) {
      transpose("transpose", dtype, dtype, 8192, 8192);
      transpose("transpose odd", dtype, dtype, 8191, 8193);
    }
    transpose("transpose", DType::f32, DType::bf16, 8192, 8192);
    transpose("transpose odd", DType::f32, DType::bf16, 8191, 8193);
    transpose("transpose", DType::bf16, DType::f32, 8192, 8192);
    transpose("transpose", DType::f32, DType::f8e4m3, 8192, 8192);
    transpose("transpose", DType::bf16, DType::f16, 8192, 8192);
    copy("nhwc f32", DType::f32, DType::f32, {32, 128, 128, 64}, {64 * 16384, 128, 1, 16384});
    copy("nhwc f32, 3 channels", DType::f32, DType::f32, {64, 224, 224, 3}, {3 * 50176, 224, 1, 50176});
    copy("every second f32", DType::f32, DType::f32, {kBytes / 8}, {2});
    copy("reversed f32", DType::f32, DType::f32, {kBytes / 4}, {-1}, kBytes / 4 - 1);
    copy("rows of 4 KiB in 5", DType::f32, DType::f32, {200'000, 1024}, {1280, 1});
    fills();
    gather();
  }

 private:
  static constexpr std::array kDTypes = {DType::f32, DType::f16, DType::bf16, DType::f8e4m3, DType::f8e5m2, DType::i8, DType::f64};

  void report(const std::string& name, std::size_t bytes, double seconds) const {
    const double rate = static_cast<double>(bytes) / seconds;
    std::printf("%-28s %8.3f TB/s %7.3f %10.1f us\n", name.c_str(), rate * 1e-12, rate / plain_, seconds * 1e6);
  }

  void copy(const std::string& name, DType from, DType to, const Shape& shape, const Strides& strides, std::size_t first = 0) {
    const ElementCopy asked{.target = target_,
                            .target_dtype = to,
                            .target_strides = Strides::contiguous(shape),
                            .source = static_cast<std::byte*>(source_) + first * size_bytes(from),
                            .source_dtype = from,
                            .source_strides = strides,
                            .shape = shape};
    const double seconds = timer_.seconds([&] { must(cuda::launch_copy_elements(asked, timer_.stream())); });
    report(name, shape.num_elements() * (size_bytes(from) + size_bytes(to)), seconds);
  }
  static std::string pair(DType from, DType to) { return std::string(to_string(from)) + " to " + std::string(to_string(to)); }
  void whole(DType from, DType to) { copy(pair(from, to), from, to, {kBytes / std::max(size_bytes(from), size_bytes(to))}, {1}); }
  void transpose(const char* name, DType from, DType to, std::int64_t rows, std::int64_t columns) {
    copy(std::string(name) + " " + pair(from, to), from, to, {columns, rows}, {1, columns});
  }

  void fills() {
    const std::array<std::byte, 16> pattern{std::byte{1}, std::byte{2}};
    for (const std::size_t size : {1U, 4U, 16U}) {
      const double seconds =
          timer_.seconds([&] { must(cuda::launch_fill(target_, kBytes, std::span(pattern).first(size), timer_.stream())); });
      report("fill by " + std::to_string(size) + " bytes", kBytes, seconds);
    }
  }

  void gather() {
    constexpr std::size_t kPieces = 4096;
    constexpr std::size_t kPiece = 16 << 10;
    std::byte* pinned = nullptr;
    must(cudaHostAlloc(reinterpret_cast<void**>(&pinned), kPieces * kPiece, cudaHostAllocDefault));
    std::vector<cuda::BytePiece> pieces;
    for (std::size_t i = 0; i < kPieces; ++i)
      pieces.push_back({static_cast<std::byte*>(target_) + i * 2 * kPiece, pinned + i * kPiece, kPiece});
    report("4096 x 16 KiB, host", kPieces * kPiece, timer_.seconds([&] { must(cuda::launch_gather(pieces, timer_.stream())); }));
    for (cuda::BytePiece& piece : pieces) std::swap(piece.target, const_cast<void*&>(piece.source));
    report("4096 x 16 KiB, to the host", kPieces * kPiece, timer_.seconds([&] { must(cuda::launch_gather(pieces, timer_.stream())); }));
    const double one =
        timer_.seconds([&] { must(cudaMemcpyAsync(target_, pinned, kPieces * kPiece, cudaMemcpyHostToDevice, timer_.stream())); });
    report("one copy of as much", kPieces * kPiece, one);
    must(cudaFreeHost(pinned));
  }

  Timer timer_;
  void* source_ = nullptr;
  void* target_ = nullptr;
  double plain_ = 1;
};

}  // namespace

int main() {
  int count = 0;
  if (cudaGetDeviceCount(&count) != cudaSuccess || count == 0) {
    std::printf("no CUDA device\n");
    return 0;
  }
  Program().run();
  return 0;
}
