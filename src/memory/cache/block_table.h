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

// What a pool knows of each block, kept outside the blocks, because their memory may be a device's, and stray
// writes must not corrupt it. `Block::cookie` is the address of the entry, so that a free finds it with one
// load; every field of the entry is compared with the block before it is trusted.
//
// An entry is written by the owner of its block: the thread cache it belongs to, or the pool under its lock.
// Others may read it at any time, which is why its fields are `Relaxed`; they act on what they read only after
// the owner has confirmed it.
namespace berth::internal::memory {

struct BlockEntry {
  static constexpr unsigned kOwnerShift = 48;

  Relaxed<std::uint64_t> serial;  // of the live block; 0: none
  Relaxed<std::uint64_t> label;   // of the live block: its allocator, its tag and, if it is small, its bytes
  Relaxed<std::uint64_t> where;   // offset in the range, and above it the number of the owner
  Relaxed<std::uint32_t> kind;    // small: size class, maybe with kExtraUses. Large: extent << 8 | kLargeClass
  Relaxed<std::uint32_t> mark;    // low half of the serial under which another thread freed it; 0: none

  static constexpr std::uint32_t kLargeClass = 255;
  static constexpr std::uint32_t kExtraUses = 1U << 31;  // a small block that streams other than its own use

  // A label: the bytes, above them the tag, above that the id of the allocator that the block must be freed
  // through, of which 30 bits are kept: two allocators are confused only after more than a thousand million
  // were created.
  static constexpr unsigned kTagShift = 18;
  static constexpr unsigned kIdShift = 34;
  static constexpr std::uint64_t kTagMask = std::uint64_t{0xffff} << kTagShift;
  static std::uint64_t make_label(std::uint64_t allocator_id, Tag tag, std::size_t small_bytes) noexcept {
    return allocator_id << kIdShift | std::uint64_t{tag.id()} << kTagShift | small_bytes;
  }
  bool is_of(std::uint64_t allocator_id) const noexcept { return (label.load() ^ allocator_id << kIdShift) >> kIdShift == 0; }
  Tag tag() const noexcept { return Tag::from_id(static_cast<std::uint16_t>(label.load() >> kTagShift)); }
  std::size_t small_bytes() const noexcept { return label.load() & ((1ULL << kTagShift) - 1); }

  // Whether another thread has freed the block, and its owner has not read its inbox yet. A hint, unless the caller
  // owns the entry.
  bool is_sent_home() const noexcept {
    const std::uint32_t sent = mark.load();
    return sent != 0 && sent == static_cast<std::uint32_t>(serial.load());
  }

  SizeClass size_class() const noexcept { return kind.load() & 0xff; }
  bool is_large() const noexcept { return size_class() == kLargeClass; }
  std::uint32_t extent() const noexcept { return kind.load() >> 8; }                // REQUIRES: is_large()
  bool has_extra_uses() const noexcept { return (kind.load() & kExtraUses) != 0; }  // REQUIRES: !is_large()

  std::size_t offset() const noexcept { return where.load() & ((1ULL << kOwnerShift) - 1); }
  std::uint32_t owner() const noexcept { return static_cast<std::uint32_t>(where.load() >> kOwnerShift); }
  void set_where(std::size_t offset, std::uint32_t owner) noexcept { where.store(offset | std::uint64_t{owner} << kOwnerShift); }
};
static_assert(sizeof(BlockEntry) == 32);
static_assert(kSmallLimit < 1ULL << BlockEntry::kTagShift);

// The address range of the entries of a pool.
struct EntryRange {
  std::uintptr_t begin = 0;
  std::size_t count = 0;

  // The cookie of an entry (its address: to convert it to an index and back would lengthen the dependency chain
  // of every free), and the entry of an untrusted cookie; nullptr when there is none.
  static std::uint64_t cookie(const BlockEntry* entry) noexcept { return reinterpret_cast<std::uintptr_t>(entry); }
  BlockEntry* find(std::uint64_t cookie) const noexcept {
    // The rotation makes an offset that is no multiple of the entry size far too large, so that one comparison
    // rejects it too.
    return std::rotr(cookie - begin, std::countr_zero(sizeof(BlockEntry))) < count ? reinterpret_cast<BlockEntry*>(cookie) : nullptr;
  }
};

// All entries of a pool: one array that never moves. All of it is committed, and the kernel backs it with pages
// on first touch; an entry that was never used reads as empty. Entries are taken in groups, one for each block
// of a slab. Not thread-safe, except for `range`.
class BlockTable {
 public:
  BlockTable() noexcept = default;
  ~BlockTable();
  BlockTable(const BlockTable&) = delete;
  BlockTable& operator=(const BlockTable&) = delete;

  // Reserves the entries for a pool whose address range has that many bytes.
  Status open(std::size_t range_bytes) noexcept;

  // Takes a group of consecutive entries, and returns the number of the first; 0 when there are none left.
  // Groups of one kind have one size.
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
  std::uint32_t used_ = 0;                                    // entries 1 to used_ have been taken; 0 is none
  std::array<std::uint32_t, SizeClasses::kMost + 1> free_{};  // by kind: free lists of groups, through `kind`
};

}  // namespace berth::internal::memory
