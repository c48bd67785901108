// SPDX-License-Identifier: Apache-2.0
#include "memory/holders.h"

#include <algorithm>

namespace berth::internal::memory {

void HolderTotals::add(Tag tag, std::size_t bytes) {
  if (tag.id() >= by_id_.size()) by_id_.resize(tag.id() + std::size_t{1});
  Holder& holder = by_id_[tag.id()];
  holder.tag = tag;
  holder.bytes += bytes;
  ++holder.blocks;
}

std::vector<Holder> HolderTotals::most_first() const {
  std::vector<Holder> holders;
  std::ranges::copy_if(by_id_, std::back_inserter(holders), [](const Holder& holder) { return holder.blocks > 0; });
  std::ranges::sort(holders,
                    [](const Holder& a, const Holder& b) { return a.bytes != b.bytes ? a.bytes > b.bytes : a.tag.word() < b.tag.word(); });
  return holders;
}

std::vector<Holder> top_holders(std::vector<Holder> holders) {
  if (holders.size() > 8) holders.resize(8);
  return holders;
}

}  // namespace berth::internal::memory
