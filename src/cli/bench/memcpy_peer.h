// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>

#include "cli/bench/pace.h"
#include "cli/bench/sides.h"

// The memcpy baseline, on as many threads as berth uses, with its best chunk size.
namespace berth::internal::cli {

// The bytes that a thread copies at a time; 0: one equal part per thread.
inline constexpr std::array<std::size_t, 5> kMemcpyChunks = {0, std::size_t{64} << 20, std::size_t{16} << 20, std::size_t{4} << 20,
                                                             std::size_t{1} << 20};

// A memcpy that reads plus writes as many bytes as a case does. It uses the case's own memory where that is
// large enough, so that both work on the same pages: it reads the source, and overwrites the target.
class MemcpyPeer {
 public:
  MemcpyPeer(const BenchSides& sides, int threads);

  void run(std::size_t chunk_bytes) const noexcept;

  // The fastest of kMemcpyChunks.
  std::size_t best_chunk(const BenchPace& pace) const;

 private:
  Storage source_;
  Storage target_;
  std::size_t bytes_;  // to copy: half of the bytes read plus written
  int threads_;
};

}  // namespace berth::internal::cli
