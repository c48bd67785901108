// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <map>
#include <optional>
#include <string>

#include "cli/bench/cases.h"
#include "cli/bench/pace.h"
#include "cli/bench/torch_peer.h"

// Measures one case, compared with memcpy and PyTorch.
namespace berth::internal::cli {

class MemcpyPeer;

// Times are medians over rounds. Ratios are medians of the ratios within each round, of bytes per second: above
// 1, berth is faster.
struct BenchResult {
  std::string name;
  std::size_t bytes = 0;  // read plus written by one copy
  double seconds = 0;     // of one copy
  std::optional<double> memcpy_seconds = {};
  std::optional<double> memcpy_ratio = {};
  std::optional<std::size_t> memcpy_chunk_bytes = {};  // 0: one part per thread
  std::optional<double> torch_seconds = {};
  std::optional<double> torch_ratio = {};
  // Of a batch: its time / the time of one copy of as many bytes; below 1, the batch is faster.
  std::optional<double> large_copy_ratio = {};
  std::optional<std::string> wrong = {};   // the first wrong element; then nothing was measured
  std::optional<std::string> failed = {};  // why nothing was measured

  double bytes_per_second() const noexcept { return static_cast<double>(bytes) / seconds; }
};

class Bench {
 public:
  // The peer, if any, must outlive the Bench.
  Bench(BenchPace pace, int threads, TorchPeer* torch) : pace_(pace), threads_(threads), torch_(torch) {}

  BenchResult measure(const BenchCase& one);

 private:
  std::size_t chunk_for(const MemcpyPeer& peer, std::size_t bytes);

  const BenchPace pace_;
  const int threads_;
  TorchPeer* const torch_;
  std::map<std::size_t, std::size_t> chunks_;  // the best chunk by bytes
};

}  // namespace berth::internal::cli
