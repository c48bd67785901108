// SPDX-License-Identifier: Apache-2.0
#include "memory/holders.h"

#include <algorithm>
#include <new>

namespace berth::internal::memory {

bool HolderTotals::reserve(Tag tag) noexcept {
  const std::size_t chunk = tag.id() / kChunk;
  if (chunk < chunks_.size() && chunks_[chunk] != nullptr) [[likely]]
    return true;
  try {
    if (chunk >= chunks_.size()) chunks_.resize(chunk + 1);
    chunks_[chunk] = std::make_unique<std::array<Sum, kChunk>>();
    return true;
  } catch (const std::bad_alloc&) {
    return false;
  }
}

std::vector<Holder> HolderTotals::holders() const {
  std::vector<Holder> found;
  for (std::size_t chunk = 0; chunk < chunks_.size(); ++chunk) {
    if (chunks_[chunk] == nullptr) continue;
    for (std::size_t at = 0; at < kChunk; ++at) {
      const Sum& sum = (*chunks_[chunk])[at];
      if (sum.blocks > 0) found.push_back({Tag::from_id(static_cast<std::uint16_t>(chunk * kChunk + at)), sum.bytes, sum.blocks});
    }
  }
  return found;
}

std::vector<Holder> most_first(std::vector<Holder> holders) {
  std::ranges::sort(holders,
                    [](const Holder& a, const Holder& b) { return a.bytes != b.bytes ? a.bytes > b.bytes : a.tag.word() < b.tag.word(); });
  return holders;
}

std::vector<Holder> top_holders(std::vector<Holder> holders) {
  if (holders.size() > 8) holders.resize(8);
  return holders;
}

}  // namespace berth::internal::memory
