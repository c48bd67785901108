// SPDX-License-Identifier: Apache-2.0
#include "memory/pool/block_map.h"

#include <new>

namespace berth::internal::memory {

bool BlockMap::grow(std::size_t begin, std::size_t bytes) noexcept {
  const std::size_t last = leaf_of(begin + bytes - 1);
  try {
    if (leaves_.size() <= last) leaves_.resize(last + 1);
    for (std::size_t i = leaf_of(begin); i <= last; ++i) {
      if (leaves_[i] != nullptr) continue;
      leaves_[i] = std::make_unique<Leaf>();
      ++made_;
    }
    return true;
  } catch (const std::bad_alloc&) {
    return false;
  }
}

BlockRef BlockMap::find(std::size_t offset, const std::byte* base) const noexcept {
  if (!has(leaf_of(offset))) return {};
  const BlockRef first = (*leaves_[leaf_of(offset)])[offset / kSlabGrain % kGrains];
  return first ? find(first, base + offset) : BlockRef();
}

BlockRef BlockMap::find(BlockRef first, const std::byte* address) noexcept {
  const auto inside = static_cast<std::size_t>(address - static_cast<const std::byte*>(first.data()));
  const std::size_t block = first.group().block_bytes.load();
  if (inside == 0) return first;
  if (block == 0 || inside % block != 0 || inside / block >= BlockTable::kMostBlocks) return {};
  const auto index = static_cast<std::uint32_t>(inside / block);
  return index + 1 < 1U << first.order() ? first.later(index) : BlockRef();
}

}  // namespace berth::internal::memory
