// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "berth/memory/allocator.h"
#include "berth/memory/pool.h"
#include "memory/pool/cache_set.h"
#include "memory/pool/large_blocks.h"
#include "memory/pool/medium_blocks.h"
#include "memory/pool/pool_core.h"
#include "memory/pool/regions.h"
#include "memory/pool/small_blocks.h"
#include "memory/pool/stream_book.h"
#include "memory/pool/supply.h"

// The pool. It routes each request to the part that serves it, and reports on all of them; pool_core.h has the
// order of the parts.
namespace berth::internal::memory {

class Pool final : public Allocator {
 public:
  Pool(Device device, const PoolOptions& options);
  Pool(const std::shared_ptr<Pool>& parent, const PrivatePoolOptions& options);
  ~Pool() override;

  Status obtain(const Request& request, Block& block) noexcept override;
  BlockVerdict give_back(const Block& block, When when, Block* known) noexcept override;
  bool grow(Block& block, std::size_t bytes) noexcept override;
  Result<BlockVerdict> note_use(const Block& block, StreamRef stream) noexcept override;
  Result<bool> locate(Block& block) noexcept override;

  void trim(std::size_t keep_bytes) override { supply_.trim(keep_bytes); }
  void trim_idle() override { supply_.trim_idle(); }
  void reserve(std::size_t bytes) override;
  void begin_hold() noexcept override { supply_.begin_hold(); }
  void end_hold() noexcept override { supply_.end_hold(); }

  // In pool_report.cc.
  std::span<const std::byte> range() const noexcept override;
  std::string name() const override { return is_private() ? "private_pool" : "pool"; }
  std::string settings() const override;
  Stats stats() const override;
  std::vector<Holder> holders() const override;
  void list_blocks(Snapshot& snapshot) const override;
  void explain(const Failure& failure, OutOfMemoryReport& report) const override;
  std::string audit() const override;

  bool is_private() const noexcept { return supply_.parent() != nullptr; }
  static std::shared_ptr<Supply> supply_of(const std::shared_ptr<Pool>& pool) { return {pool, &pool->supply_}; }

 private:
  Pool(Backend& backend, const PoolCore::Setup& setup, std::shared_ptr<Supply> parent);
  void describe(Block& known, const Block& block, BlockRef entry) const noexcept;
  Stats stats_now() const noexcept;  // with the mutex. REQUIRES: the gates are shut, the regions quiet

  PoolCore core_;
  StreamBook book_;
  CacheSet caches_;
  Regions regions_;
  Supply supply_;
  SmallBlocks small_;
  MediumBlocks medium_;
  LargeBlocks large_;
};

}  // namespace berth::internal::memory
