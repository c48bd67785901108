// SPDX-License-Identifier: Apache-2.0
#include "device/cuda/cuda_copy.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "device/address_number.h"
#include "device/cuda/host_locks.h"
#include "device/cuda/kernels/launch.h"

namespace berth::internal::device::cuda {

namespace {

constexpr std::size_t kMostPieces = 64;  // of an overlapping copy; more are slower than a temporary

Status copy_through_temporary(CudaContext& context, CUdeviceptr target, CUdeviceptr source, std::size_t bytes, CUstream stream) noexcept {
  CUdeviceptr between = 0;
  Status done = BERTH_CUDA_CALL(context, cuMemAllocAsync, &between, bytes, stream);
  if (!done) return done;
  done = BERTH_CUDA_CALL(context, cuMemcpyDtoDAsync, between, source, bytes, stream);
  if (done) done = BERTH_CUDA_CALL(context, cuMemcpyDtoDAsync, target, between, bytes, stream);
  const Status freed = BERTH_CUDA_CALL(context, cuMemFreeAsync, between, stream);
  return done ? freed : done;
}

// The Status of a launch. After one that failed, the stream is queried for whether the device is lost.
Status launched(CudaContext& context, const Status& done, CUstream stream) noexcept {
  if (!done) (void)BERTH_CUDA_CALL(context, cuStreamQuery, stream).ok();
  return done;
}

template <class Word>
Word word_at(std::span<const std::byte> pattern) noexcept {
  Word word;
  std::memcpy(&word, pattern.data(), sizeof(word));
  return word;
}

// The shortest pattern that repeats to the same bytes.
std::span<const std::byte> shortest(std::span<const std::byte> pattern) noexcept {
  while (pattern.size() > 1) {
    const std::size_t half = pattern.size() / 2;
    if (std::memcmp(pattern.data(), pattern.data() + half, half) != 0) break;
    pattern = pattern.first(half);
  }
  return pattern;
}

// The driver's own fills, of 1, 2 and 4 bytes at aligned addresses.
Status fill_words(CudaContext& context, CUdeviceptr target, std::size_t bytes, std::span<const std::byte> pattern,
                  CUstream stream) noexcept {
  switch (pattern.size()) {
    case 1: return BERTH_CUDA_CALL(context, cuMemsetD8Async, target, word_at<unsigned char>(pattern), bytes, stream);
    case 2: return BERTH_CUDA_CALL(context, cuMemsetD16Async, target, word_at<unsigned short>(pattern), bytes / 2, stream);
    default: return BERTH_CUDA_CALL(context, cuMemsetD32Async, target, word_at<unsigned>(pattern), bytes / 4, stream);
  }
}

// Any other fill: write one pattern, then double what is written.
Status fill_by_doubling(CudaContext& context, CUdeviceptr target, std::size_t bytes, std::span<const std::byte> pattern,
                        CUstream stream) noexcept {
  const std::size_t word = target % 4 == 0 && pattern.size() % 4 == 0 ? 4 : 1;
  for (std::size_t at = 0; at < pattern.size(); at += word) {
    if (const Status done = fill_words(context, target + at, word, pattern.subspan(at, word), stream); !done) return done;
  }
  for (std::size_t done = pattern.size(); done < bytes;) {
    const std::size_t piece = std::min(done, bytes - done);
    if (const Status copied = BERTH_CUDA_CALL(context, cuMemcpyDtoDAsync, target + done, target, piece, stream); !copied) return copied;
    done += piece;
  }
  return {};
}

}  // namespace

bool load_kernels_here() noexcept { return load_kernels().ok(); }

Status submit_copy(CudaContext& context, void* target, const void* source, std::size_t bytes, CUstream stream) noexcept {
  for (std::size_t done = 0; done < bytes;) {
    auto* const to = static_cast<std::byte*>(target) + done;
    const auto* const from = static_cast<const std::byte*>(source) + done;
    const std::size_t piece = host_run(from, host_run(to, bytes - done));
    if (const Status copied = BERTH_CUDA_CALL(context, cuMemcpyAsync, number(to), number(from), piece, stream); !copied) return copied;
    done += piece;
  }
  return {};
}

Status submit_copy_within(CudaContext& context, void* target, const void* source, std::size_t bytes, CUstream stream) noexcept {
  const CUdeviceptr to = number(target);
  const CUdeviceptr from = number(source);
  const std::size_t apart = to > from ? to - from : from - to;
  if (apart == 0) return {};
  if (apart >= bytes) return BERTH_CUDA_CALL(context, cuMemcpyDtoDAsync, to, from, bytes, stream);
  if (bytes / apart > kMostPieces) return copy_through_temporary(context, to, from, bytes, stream);
  // In pieces that do not overlap, in the direction that reads every byte before it is overwritten.
  for (std::size_t done = 0; done < bytes;) {
    const std::size_t piece = std::min(apart, bytes - done);
    const std::size_t at = to > from ? bytes - done - piece : done;
    if (const Status copied = BERTH_CUDA_CALL(context, cuMemcpyDtoDAsync, to + at, from + at, piece, stream); !copied) return copied;
    done += piece;
  }
  return {};
}

Status submit_fill(CudaContext& context, void* target, std::size_t bytes, std::span<const std::byte> pattern, bool kernels,
                   CUstream stream) noexcept {
  if (bytes == 0) return {};
  const std::span<const std::byte> least = shortest(pattern);
  const CUdeviceptr at = number(target);
  if (least.size() <= 4 && at % least.size() == 0) return fill_words(context, at, bytes, least, stream);
  if (!kernels) return fill_by_doubling(context, at, bytes, least, stream);
  return launched(context, launch_fill(target, bytes, least, stream), stream);
}

Status submit_elements(CudaContext& context, const ElementCopy& copy, CUstream stream) noexcept {
  return launched(context, launch_copy_elements(copy, stream), stream);
}

Status submit_gather(CudaContext& context, std::span<const Transfer> transfers, CUstream stream) noexcept {
  std::array<BytePiece, 1024> pieces;
  while (!transfers.empty()) {
    const std::size_t count = std::min(transfers.size(), pieces.size());
    for (std::size_t i = 0; i < count; ++i) pieces[i] = {transfers[i].target, transfers[i].source, transfers[i].bytes};
    const Status done = launched(context, launch_gather({pieces.data(), count}, stream), stream);
    if (!done) return done;
    transfers = transfers.subspan(count);
  }
  return {};
}

}  // namespace berth::internal::device::cuda
