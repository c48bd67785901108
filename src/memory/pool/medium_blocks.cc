// SPDX-License-Identifier: Apache-2.0
#include "memory/pool/medium_blocks.h"

namespace berth::internal::memory {

// A thread that would wait for another's shard makes a region in its own if there is none: shards are as many as the
// processors can use at once.
bool MediumBlocks::obtain_from_regions(const Request& request, Block& block) noexcept {
  const Regions::Wait wait = regions_.has_own() || !may_add() ? Regions::Wait::yes : Regions::Wait::no;
  if (regions_.obtain(request, block, wait)) return true;
  if (!may_add()) return false;
  const os::Lock lock(core_.mutex);
  if (!supply_.ready({})) return false;
  if (regions_.obtain(request, block, wait)) return true;  // of a region that another thread has added meanwhile
  if (supply_.would_need_more(Regions::kRegionBytes) && regions_.dissolve_sparse()) return false;
  return regions_.begin_adding() && add_region(request, block);
}

// With the mutex; releases it.
bool MediumBlocks::add_region(const Request& request, Block& block) noexcept {
  const Space::Effort effort = supply_.may_ask_for_more_than(request.bytes) ? Space::Effort::usual : Space::Effort::cached_only;
  const Result<PoolExtent*> extent = core_.space.take(Space::Part::large, Regions::kRegionBytes, kSlabGrain, 0, effort);
  regions_.end_adding();
  if (extent) {
    (*extent)->stream = 0;
    if (regions_.add(*extent, request, block)) return true;
    book_.release(*extent);
  }
  core_.waits.store(0);  // memory is tight: no further attempt until threads have waited again
  return false;
}

std::optional<BlockVerdict> MediumBlocks::free(BlockRef entry, const Block& block, When when) noexcept {
  if (when == When::now) {  // its pages are returned, which regions do not know
    const os::Lock lock(core_.mutex);
    regions_.dissolve(entry, block);
  }
  const std::optional<Regions::Freed> freed = regions_.free(entry, block);
  if (!freed) return std::nullopt;
  if (freed->should_poll && !core_.is_inherited()) {
    const os::Lock lock(core_.mutex);
    regions_.tidy();
    supply_.decay(Supply::Decayed::a_few_pages);
  }
  return freed->verdict;
}

}  // namespace berth::internal::memory
