// SPDX-License-Identifier: Apache-2.0
#include "memory/pool/stream_uses.h"

#include <algorithm>
#include <new>

namespace berth {

std::uint32_t StreamUses::find_or_add(StreamRef stream) noexcept {
  if (!stream) return 0;
  const auto found = by_id_.find(stream.id());
  if (found != by_id_.end()) return found->second;
  const std::uint32_t number = count();
  try {
    uses_.reserve(uses_.size() + 1);
    by_id_.emplace(stream.id(), number);
    uses_.push_back({.id = stream.id(), .stream = stream->weak_from_this().lock()});
    return number;
  } catch (const std::bad_alloc&) {
    return 0;
  }
}

bool StreamUses::any_pending() const noexcept {
  return std::ranges::any_of(uses_, [](const Use& use) { return use.ticket > use.done; });
}

}  // namespace berth
