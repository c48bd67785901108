// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>

#include "base/relaxed.h"
#include "berth/base/result.h"
#include "berth/record/tag.h"
#include "memory/cache/size_classes.h"

// What a pool knows of each block, kept outside the blocks: their memory may be a device's, and what a stray write leaves there must not
// be believed. `Block::cookie` says where its entry is, so that a free finds it with one load; everything in the entry is compared with
// the block before it is believed.
//
// An entry is written by whoever owns its block: the thread cache it belongs to, or the pool under its lock. Others may read it at any time,
// which is why its parts are `Relaxed`; they act on what they read only after the owner has agreed.
namespace berth::internal::memory {

struct BlockEntry {
  static constexpr unsigned kOwnerShift = 48;

  Relaxed<std::uint64_t> serial;  // of the live block; 0: none
  Relaxed<std::uint64_t> label;   // of the live block: whose it is, its tag and, if it is small, its bytes
  Relaxed<std::uint64_t> where;   // offset in the range, and above it the owner's number
  Relaxed<std::uint32_t> kind;    // small: the size class, perhaps with kExtraUses. Large: extent << 8 | kLargeClass
  Relaxed<std::uint32_t> mark;    // the low half of the serial under which another thread has sent it home; 0: none

  static constexpr std::uint32_t kLargeClass = 255;
  static constexpr std::uint32_t kExtraUses = 1U << 31;  // a small block that streams beside its own use

  // A label: the bytes, above them the tag, above that the allocator that the block must come back to. Of its number 30 bits are kept: more
  // than a thousand million allocators would have to be made before one could pass for another here.
  static constexpr unsigned kTagShift = 18;
  static constexpr unsigned kIdShift = 34;
  static constexpr std::uint64_t kTagMask = std::uint64_t{0xffff} << kTagShift;
  static std::uint64_t make_label(std::uint64_t allocator_id, Tag tag, std::size_t small_bytes) noexcept {
    return allocator_id << kIdShift | std::uint64_t{tag.id()} << kTagShift | small_bytes;
  }
  bool is_of(std::uint64_t allocator_id) const noexcept { return (label.load() ^ allocator_id << kIdShift) >> kIdShift == 0; }
  Tag tag() const noexcept { return Tag::from_id(static_cast<std::uint16_t>(label.load() >> kTagShift)); }
  std::size_t small_bytes() const noexcept { return label.load() & ((1ULL << kTagShift) - 1); }

  SizeClass size_class() const noexcept { return kind.load() & 0xff; }
  bool is_large() const noexcept { return size_class() == kLargeClass; }
  std::uint32_t extent() const noexcept { return kind.load() >> 8; }                // REQUIRES: it is large
  bool has_extra_uses() const noexcept { return (kind.load() & kExtraUses) != 0; }  // REQUIRES: it is small

  std::size_t offset() const noexcept { return where.load() & ((1ULL << kOwnerShift) - 1); }
  std::uint32_t owner() const noexcept { return static_cast<std::uint32_t>(where.load() >> kOwnerShift); }
  void set_where(std::size_t offset, std::uint32_t owner) noexcept { where.store(offset | std::uint64_t{owner} << kOwnerShift); }
};
static_assert(sizeof(BlockEntry) == 32);
static_assert(kSmallLimit < 1ULL << BlockEntry::kTagShift);

// Where the entries of a pool are.
struct EntryRange {
  std::uintptr_t begin = 0;
  std::size_t count = 0;

  // What a block carries for its entry (the address: turning it into a number and back would lengthen the path that every free waits
  // for), and the entry of one that came from outside; nullptr when there is none.
  static std::uint64_t cookie(const BlockEntry* entry) noexcept { return reinterpret_cast<std::uintptr_t>(entry); }
  BlockEntry* find(std::uint64_t cookie) const noexcept {
    // Turned round, what is not a multiple of an entry's size is far too large: one comparison finds that too.
    return std::rotr(cookie - begin, std::countr_zero(sizeof(BlockEntry))) < count ? reinterpret_cast<BlockEntry*>(cookie) : nullptr;
  }
};

// All entries of a pool: one array that never moves. There is memory under all of it, given by the kernel when first touched; an entry that was
// never used reads as empty. Entries are taken in groups, one for each block of a slab. Not thread-safe, but for `range`.
class BlockTable {
 public:
  BlockTable() noexcept = default;
  ~BlockTable();
  BlockTable(const BlockTable&) = delete;
  BlockTable& operator=(const BlockTable&) = delete;

  // For a pool whose address range has so many bytes.
  Status open(std::size_t range_bytes) noexcept;

  // A group of entries that belong together, by the number of the first; 0 when there are none left. Groups of one kind have one size.
  std::uint32_t take(SizeClass kind, std::uint32_t count) noexcept;
  void give_back(SizeClass kind, std::uint32_t first) noexcept;

  EntryRange range() const noexcept { return {reinterpret_cast<std::uintptr_t>(entries_), count_}; }
  BlockEntry& operator[](std::uint32_t number) const noexcept { return entries_[number]; }
  std::uint32_t number(const BlockEntry* entry) const noexcept { return static_cast<std::uint32_t>(entry - entries_); }
  std::uint32_t used() const noexcept { return used_; }

  static constexpr SizeClass kLarge = SizeClasses::kMost;  // the kind of single entries, for large blocks

 private:
  BlockEntry* entries_ = nullptr;
  std::size_t count_ = 0;
  std::uint32_t used_ = 0;                                    // entries 1 to used_ have been taken at some time; 0 is none's
  std::array<std::uint32_t, SizeClasses::kMost + 1> free_{};  // by kind: groups given back, linked through `kind` of their first entries
};

}  // namespace berth::internal::memory
