// SPDX-License-Identifier: Apache-2.0
#include "memory/pool/block_map.h"

#include <new>

namespace berth::internal::memory {

bool BlockMap::reserve(std::size_t begin, std::size_t bytes) noexcept {
  const std::size_t last = (begin + bytes - 1) / kSlabGrain / kGrains;
  try {
    if (leaves_.size() <= last) leaves_.resize(last + 1);
    for (std::size_t i = begin / kSlabGrain / kGrains; i <= last; ++i) {
      if (leaves_[i] != nullptr) continue;
      leaves_[i] = std::make_unique<Leaf>();
      ++made_;
    }
    return true;
  } catch (const std::bad_alloc&) {
    return false;
  }
}

void BlockMap::set(std::size_t begin, std::size_t bytes, BlockRef first) noexcept {
  for (std::size_t grain = begin / kSlabGrain; grain <= (begin + bytes - 1) / kSlabGrain; ++grain)
    (*leaves_[grain / kGrains])[grain % kGrains] = first;
}

BlockRef BlockMap::find(std::size_t offset, const std::byte* base) const noexcept {
  const std::size_t grain = offset / kSlabGrain;
  if (grain / kGrains >= leaves_.size() || leaves_[grain / kGrains] == nullptr) return {};
  const BlockRef first = (*leaves_[grain / kGrains])[grain % kGrains];
  if (!first) return {};
  const auto inside = static_cast<std::size_t>(base + offset - static_cast<const std::byte*>(first.data()));
  const std::size_t block = first.group().block_bytes.load();
  if (inside == 0) return first;
  if (block == 0 || inside % block != 0 || inside / block >= BlockTable::kMostBlocks) return {};
  const auto index = static_cast<std::uint32_t>(inside / block);
  return index + 1 < 1U << first.order() ? first.later(index) : BlockRef();
}

}  // namespace berth::internal::memory
