// SPDX-License-Identifier: Apache-2.0
#include "memory/extra_uses.h"

#include <algorithm>
#include <new>

namespace berth::internal::memory {

bool ExtraUses::add(Key key, std::uint64_t stream_id) noexcept {
  try {
    std::vector<Use>& uses = live_[key];
    if (!std::ranges::any_of(uses, [&](const Use& use) { return use.stream_id == stream_id; })) uses.push_back({stream_id, 0});
    return true;
  } catch (const std::bad_alloc&) {
    return false;
  }
}

bool ExtraUses::free(Key key, StreamUses& streams) noexcept {
  auto node = live_.extract(key);
  if (node.empty()) return false;
  std::vector<Use>& uses = node.mapped();
  std::erase_if(uses, [&](const Use& use) { return streams.find(use.stream_id) == 0; });
  if (uses.empty()) return false;
  for (Use& use : uses) use.point = streams.point_of_free(streams.find(use.stream_id));
  freed_.insert(std::move(node));
  return true;
}

}  // namespace berth::internal::memory
