// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <optional>

#include "berth/memory/block_source.h"
#include "memory/pool/regions.h"
#include "memory/pool/supply.h"

// Blocks of a few hundred KiB, of no stream, on threads that have waited for the pool's mutex: taken from
// regions, without it (docs/decisions/0031-regions-under-contention.md). Until threads wait, such requests are
// large ones: one thread alone never gets a block here.
namespace berth::internal::memory {

class MediumBlocks {
 public:
  using When = BlockSource::When;

  MediumBlocks(PoolCore& core, StreamBook& book, Regions& regions, Supply& supply) noexcept
      : core_(core), book_(book), regions_(regions), supply_(supply) {}

  // Without the mutex. False: it is a large request.
  bool obtain(const Request& request, Block& block) noexcept { return serves(request) && obtain_from_regions(request, block); }
  // Nothing: it is, or has become, a large block.
  std::optional<BlockVerdict> free(BlockRef entry, const Block& block, When when) noexcept;

 private:
  static constexpr std::size_t kLeastRegions = 16;  // within the limit

  bool serves(const Request& request) const noexcept {
    return (regions_.any() || may_add()) && request.bytes >= Regions::kLeastBytes && request.bytes <= Regions::kMostBytes &&
           request.alignment <= Regions::kCellBytes && request.stream.state() == nullptr;
  }
  bool may_add() const noexcept { return core_.waits.load() >= least_waits_ && least_waits_ != PoolOptions::kNoRegions; }
  bool obtain_from_regions(const Request& request, Block& block) noexcept;
  bool add_region(const Request& request, Block& block) noexcept;

  PoolCore& core_;
  StreamBook& book_;
  Regions& regions_;
  Supply& supply_;
  // No regions where memory returns at once, stays at its addresses, or is so tight that one is much of it.
  const std::uint32_t least_waits_ =
      core_.decay_period.count() != 0 && !core_.fixed_pages && core_.budget.limit() / kLeastRegions >= Regions::kRegionBytes
          ? core_.region_waits
          : PoolOptions::kNoRegions;
};

}  // namespace berth::internal::memory
