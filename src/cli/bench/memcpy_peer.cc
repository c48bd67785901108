// SPDX-License-Identifier: Apache-2.0
#include "cli/bench/memcpy_peer.h"

#include <algorithm>
#include <cstring>

#include "berth/storage/create.h"
#include "copy/host/workers.h"

namespace berth::internal::cli {

namespace {

// `bytes` of the memory of a side with one storage, if that is large enough; else new, touched memory.
Storage bytes_of(const std::vector<Storage>& side, std::size_t bytes) {
  const Buffer& own = side.front().buffer();
  if (side.size() == 1 && own.size_bytes() >= bytes) return Storage(own, DType::u8, {bytes}, {1});
  Storage made = empty({bytes}, DType::u8, "cpu");
  std::memset(made.data_ptr(), 1, bytes);
  return made;
}

}  // namespace

MemcpyPeer::MemcpyPeer(const BenchSides& sides, int threads)
    : source_(bytes_of(sides.sources, sides.bytes() / 2)),
      target_(bytes_of(sides.targets, sides.bytes() / 2)),
      bytes_(sides.bytes() / 2),
      threads_(threads) {}

void MemcpyPeer::run(std::size_t chunk_bytes) const noexcept {
  const auto threads = static_cast<std::size_t>(threads_);
  const std::size_t chunk = chunk_bytes != 0 ? chunk_bytes : (bytes_ / threads / 64 + 1) * 64;
  auto* const target = static_cast<std::byte*>(target_.data_ptr());
  const auto* const source = static_cast<const std::byte*>(source_.data_ptr());
  copy::run_in_parallel((bytes_ + chunk - 1) / chunk, threads_, [&](std::size_t item) {
    const std::size_t begin = item * chunk;
    std::memcpy(target + begin, source + begin, std::min(chunk, bytes_ - begin));
  });
}

std::size_t MemcpyPeer::best_chunk(const BenchPace& pace) const {
  std::size_t best = 0;
  double best_seconds = 0;
  for (const std::size_t chunk : kMemcpyChunks) {
    const double seconds = least_seconds(pace, [&] { run(chunk); });
    if (best_seconds != 0 && seconds >= best_seconds) continue;
    best = chunk;
    best_seconds = seconds;
  }
  return best;
}

}  // namespace berth::internal::cli
