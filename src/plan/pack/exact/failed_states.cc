// SPDX-License-Identifier: Apache-2.0
#include "plan/pack/exact/failed_states.h"

#include "base/random.h"

namespace berth::internal::plan::pack::exact {

namespace {

std::uint64_t stir(std::uint64_t x) noexcept { return Random(x).next(); }

}  // namespace

// 8 MiB for all but small instances.
FailedStates::FailedStates(std::size_t buffers) : slots_(std::size_t{1} << (buffers < 50 ? 12 : 20), 0) {
  Random random(12345);
  salts_.reserve(buffers);
  for (std::size_t i = 0; i < buffers; ++i) {
    const std::uint64_t slot = random.next();
    salts_.push_back({slot, random.next()});
  }
}

// A sum over the items, which is independent of their order.
FailedStates::Key FailedStates::key_of(std::span<const Item> items) const noexcept {
  Key key{items.size(), 0};
  for (const Item& item : items) {
    const std::uint64_t state = (static_cast<std::uint64_t>(item.low) << 1 | (item.rests ? 1U : 0U)) * 0x9e3779b97f4a7c15ULL;
    std::uint64_t hash = state ^ salts_[item.id].slot;
    hash = (hash ^ (hash >> 32)) * 0xd6e8feb86659fd93ULL;
    hash ^= hash >> 29;
    key.slot += hash;
    std::uint64_t other = (hash ^ salts_[item.id].check) * 0x9fb21c651e98df25ULL;
    key.check += other ^ (other >> 31);
  }
  return {stir(key.slot), stir(key.check) | 1};  // 0 marks an empty entry
}

}  // namespace berth::internal::plan::pack::exact
