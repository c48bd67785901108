// SPDX-License-Identifier: Apache-2.0
#include "memory/pool/medium_blocks.h"

namespace berth::internal::memory {

bool MediumBlocks::obtain_from_regions(const Request& request, Block& block) noexcept {
  if (regions_.obtain(request, block)) return true;
  const os::Lock lock(core_.mutex);
  if (!supply_.ready({})) return false;
  if (regions_.obtain(request, block)) return true;  // of a region that another thread has added meanwhile
  if (is_adding_ || (supply_.would_need_more(Regions::kRegionBytes) && regions_.dissolve_sparse())) return false;
  is_adding_ = true;
  const Space::Effort effort = supply_.may_ask_for_more() ? Space::Effort::usual : Space::Effort::cached_only;
  const Result<PoolExtent*> extent = core_.space.take(Space::Part::large, Regions::kRegionBytes, kSlabGrain, 0, effort);
  is_adding_ = false;
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
    regions_.dissolve(entry);
  }
  const std::optional<Regions::Freed> freed = regions_.free(entry, block);
  if (!freed) return std::nullopt;
  if (freed->should_poll && !core_.is_inherited()) {
    const os::Lock lock(core_.mutex);
    regions_.release_empty();
    supply_.decay(Supply::Decayed::a_few_pages);
  }
  return freed->verdict;
}

}  // namespace berth::internal::memory
