// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>

#include "berth/memory/block_source.h"

// Whether a block that is passed to an allocator is what it says: the rules that direct, arena, the buckets and
// the check adaptor have in common. Nothing in a block is trusted: its fields are compared with what the
// allocator's entry knows. Plain functions: the caller locks whatever guards the entry.
namespace berth::internal::memory {

// What an entry knows of the block at its address: the one that it stands for, or stood for last.
struct KnownBlock {
  std::size_t bytes = 0;
  std::size_t alignment = 0;
  std::uint64_t serial = 0;
  std::uint64_t stream_id = 0;
  std::uint64_t allocator_id = 0;  // the allocator that the block must be freed through
  Tag tag = {};
  bool live = false;
};

// `known` is null if the allocator has no entry at the block's address. A block without a serial
// (Allocator::block_at) is judged by the other fields. A serial below `next_serial` was handed out: if no entry
// has it any more, its block was freed.
[[gnu::always_inline]] inline BlockVerdict judge(const KnownBlock* known, const Block& block, std::uint64_t next_serial) noexcept {
  const bool has_serial = block.serial != 0;
  if (known == nullptr) return has_serial && block.serial < next_serial ? BlockVerdict::double_free : BlockVerdict::foreign;
  if (known->allocator_id != block.allocator_id) return BlockVerdict::foreign;
  if (!known->live || (has_serial && known->serial != block.serial)) return BlockVerdict::double_free;
  return known->bytes == block.bytes ? BlockVerdict::ok : BlockVerdict::size_mismatch;
}

template <class Entry>
concept KnowsItsBlock = requires(const Entry& entry) {
  { entry.known() } -> std::same_as<KnownBlock>;
};

// The same for an allocator's own kind of entry. Null: there is none.
template <KnowsItsBlock Entry>
[[gnu::always_inline]] inline BlockVerdict judge(const Entry* entry, const Block& block, std::uint64_t next_serial) noexcept {
  if (entry == nullptr) return judge(static_cast<const KnownBlock*>(nullptr), block, next_serial);
  const KnownBlock known = entry->known();
  return judge(&known, block, next_serial);
}

// Implements BlockSource::locate. Null: there is no entry at the block's address.
template <KnowsItsBlock Entry>
inline bool describe(const Entry* entry, Block& block) noexcept {
  const KnownBlock known = entry == nullptr ? KnownBlock() : entry->known();
  if (!known.live || known.allocator_id != block.allocator_id) return false;
  block.bytes = known.bytes;
  block.alignment = known.alignment;
  block.serial = known.serial;
  block.stream_id = known.stream_id;
  block.tag = known.tag;
  return true;
}

// What BlockSource::give_back reports in `out`, unless that is null: the block as it was handed out. REQUIRES:
// the verdict on the block is `ok`.
inline void complete(Block* out, const Block& block, const KnownBlock& known) noexcept {
  if (out == nullptr) return;
  *out = block;
  out->serial = known.serial;
  out->tag = known.tag;
  out->alignment = known.alignment;
  out->stream_id = known.stream_id;
}

}  // namespace berth::internal::memory
