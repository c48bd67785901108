// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "base/relaxed.h"
#include "berth/base/result.h"
#include "berth/record/tag.h"
#include "memory/cache/size_classes.h"

// What a pool knows of each block, kept outside the blocks, because their memory may be a device's, and stray
// writes must not corrupt it: 16 bytes for a block, and 16 for what the blocks of a slab have in common.
//
//     chunk of 64 KiB   | group, entry, entry, entry, … | group, entry, entry, entry, … |
//                         a power of two of 16 bytes, the same for all groups of a chunk
//
// `Block::cookie` is the address of the entry (BlockRef), so that a free finds it without a search; every field
// of the entry is compared with the block before it is trusted.
//
// An entry is written by the owner of its block: the thread cache it belongs to, or the pool under its lock.
// Others may read it at any time, which is why its fields are `Relaxed`; they act on what they read only after
// the owner has confirmed it. One transition is open to every thread, in one atomic operation: from live to
// sent home.
namespace berth::internal::memory {

struct BlockEntry {
  // The serial of the live block, and flags; 0: there is none. A serial is the number of the cache that handed
  // the block out, its owner (0: the pool itself), above a counter.
  Relaxed<std::uint64_t> state;
  // Of the live block: its allocator, its tag and, if it is small, its size class and bytes. Of a free block in
  // a thread's bin: its address, so that it need not be computed.
  Relaxed<std::uint64_t> label;

  static constexpr unsigned kOwnerShift = 42;
  static constexpr unsigned kOwnerBits = 17;
  static constexpr std::uint64_t kGroup = std::uint64_t{1} << 59;      // it is no entry but a BlockGroup
  static constexpr std::uint64_t kExtraUses = std::uint64_t{1} << 60;  // small: streams other than its own use it
  static constexpr std::uint64_t kSentHome = std::uint64_t{1} << 61;   // freed by another thread: on its way to its owner
  static_assert(kOwnerShift + kOwnerBits == 59);

  static std::uint64_t make_serial(std::uint32_t owner, std::uint64_t count) noexcept {
    return std::uint64_t{owner} << kOwnerShift | (count & ((std::uint64_t{1} << kOwnerShift) - 1));
  }
  static std::uint32_t owner_of(std::uint64_t serial) noexcept {
    return static_cast<std::uint32_t>(serial >> kOwnerShift) & ((1U << kOwnerBits) - 1);
  }

  bool is_live() const noexcept { return state.load() != 0; }
  std::uint64_t serial() const noexcept { return state.load() & (kGroup - 1); }
  std::uint32_t owner() const noexcept { return owner_of(state.load()); }  // of a small block
  bool has_extra_uses() const noexcept { return (state.load() & kExtraUses) != 0; }
  bool is_sent_home() const noexcept { return (state.load() & kSentHome) != 0; }

  // A label. Of the allocator's id, 20 bits are kept: two allocators are confused only if a million were created
  // between them.
  static constexpr unsigned kTagShift = 21;
  static constexpr unsigned kClassShift = 37;
  static constexpr unsigned kIdShift = 44;
  static constexpr std::uint64_t kTagMask = std::uint64_t{0xffff} << kTagShift;
  static std::uint64_t make_label(std::uint64_t allocator_id, Tag tag) noexcept {
    return allocator_id << kIdShift | std::uint64_t{tag.id()} << kTagShift;
  }
  static std::uint64_t class_and_bytes(SizeClass size_class, std::size_t small_bytes) noexcept {
    return std::uint64_t{size_class} << kClassShift | small_bytes;
  }
  bool is_of(std::uint64_t allocator_id) const noexcept { return (label.load() ^ allocator_id << kIdShift) >> kIdShift == 0; }
  static Tag tag_in(std::uint64_t label) noexcept { return Tag::from_id(static_cast<std::uint16_t>(label >> kTagShift)); }
  static std::size_t bytes_in(std::uint64_t label) noexcept { return label & ((std::uint64_t{1} << kTagShift) - 1); }
  Tag tag() const noexcept { return tag_in(label.load()); }
  std::size_t small_bytes() const noexcept { return bytes_in(label.load()); }
  // The class that the block is used for: that of its slab, or a shorter one.
  SizeClass size_class() const noexcept { return static_cast<SizeClass>(label.load() >> kClassShift) & 0x7f; }

  // Frees the block, into a bin of its owner; its address, there.
  void put_in_bin(void* data) noexcept {
    state.store(0);
    label.store(reinterpret_cast<std::uintptr_t>(data));
  }
  void* data_in_bin() const noexcept { return reinterpret_cast<void*>(label.load()); }
};

// How a block lies in its pool.
enum class BlockKind : std::uint8_t {
  small,   // one of a slab's
  medium,  // one of a region's (pool/regions.h)
  large,   // it has an extent of its own
};

// What the blocks of a slab, or of a region, have in common. A large block is a group of its own, unless it was
// one of a region's: then others are in its group.
struct BlockGroup {
  // Where its blocks are: the address of the first, less the size of one; kGroup; and above that the order, so
  // that a reference with another order gives another address. 0: the group is not in use.
  Relaxed<std::uint64_t> where;
  Relaxed<std::uint32_t> block_bytes;  // of each, of a cell in a region; 0: a large one
  // Of the slab or the extent; in a free group, of the next free group. With a mark, of the region, or how many
  // large blocks it has left.
  Relaxed<std::uint32_t> number;

  static constexpr unsigned kOrderShift = 60;
  static constexpr std::uint32_t kRegion = std::uint32_t{1} << 31;
  static constexpr std::uint32_t kShared = std::uint32_t{1} << 30;
};
static_assert(sizeof(BlockEntry) == 16 && sizeof(BlockGroup) == sizeof(BlockEntry));
static_assert(kSmallLimit < 1ULL << BlockEntry::kTagShift);

// The address of an entry and, in the four low bits of it, how long its group is: a power of two of entries.
class BlockRef {
 public:
  constexpr BlockRef() noexcept = default;
  explicit constexpr BlockRef(std::uint64_t cookie) noexcept : bits_(cookie) {}

  std::uint64_t cookie() const noexcept { return bits_; }
  explicit operator bool() const noexcept { return bits_ != 0; }
  friend bool operator==(BlockRef, BlockRef) = default;

  BlockEntry* operator->() const noexcept { return reinterpret_cast<BlockEntry*>(bits_ & ~kOrderMask); }
  BlockGroup& group() const noexcept { return *reinterpret_cast<BlockGroup*>(bits_ & group_mask()); }
  // The number of its block in the slab, from 0.
  std::uint32_t index() const noexcept { return position() - 1; }
  BlockKind kind() const noexcept {
    const std::uint32_t number = group().number.load();
    if (group().block_bytes.load() == 0 || (number & BlockGroup::kShared) != 0) return BlockKind::large;
    return (number & BlockGroup::kRegion) != 0 ? BlockKind::medium : BlockKind::small;
  }
  bool is_large() const noexcept { return kind() == BlockKind::large; }
  // Of a large block: the number of its extent. In a group that it shares, the label of the next entry has it,
  // which is no block's: each of them was longer than a cell.
  std::uint32_t extent_number() const noexcept {
    return group().block_bytes.load() == 0 ? group().number.load() : static_cast<std::uint32_t>(later(1)->label.load());
  }
  void set_extent_number(std::uint32_t number) const noexcept { later(1)->label.store(number); }  // in a group that it shares
  // The block itself.
  void* data() const noexcept { return reinterpret_cast<void*>(where() & (BlockEntry::kGroup - 1)); }
  // 0 if the block is at that address, for a reference that is not trusted: no part of it may be wrong.
  std::uint64_t differs_from(const void* data) const noexcept {
    return where() ^ reinterpret_cast<std::uintptr_t>(data) ^ bits_ << BlockGroup::kOrderShift ^ BlockEntry::kGroup;
  }

  // Of a group: says where its first block is, the size of each (0: a large one), and the number of the slab or
  // the extent.
  void set_group(const void* begin, std::size_t block_bytes, std::uint32_t number) const noexcept {
    group().block_bytes.store(static_cast<std::uint32_t>(block_bytes));
    group().number.store(number);
    group().where.store((reinterpret_cast<std::uintptr_t>(begin) - block_bytes) | BlockEntry::kGroup | bits_ << BlockGroup::kOrderShift);
  }

  unsigned order() const noexcept { return bits_ & kOrderMask; }
  static BlockRef first_of(std::uint64_t group, unsigned order) noexcept { return BlockRef(group + sizeof(BlockGroup) + order); }
  BlockRef later(std::uint32_t blocks) const noexcept { return BlockRef(bits_ + std::uint64_t{blocks} * sizeof(BlockEntry)); }

  static constexpr std::uint64_t kOrderMask = sizeof(BlockEntry) - 1;

 private:
  std::uint64_t group_mask() const noexcept { return ~kOrderMask << order(); }
  // In its group, in entries: from 1, since the group itself comes first.
  std::uint32_t position() const noexcept { return static_cast<std::uint32_t>((bits_ & ~group_mask()) / sizeof(BlockEntry)); }
  // As BlockGroup::where, for this block. One multiplication of 32 bits: it is computed for every small block.
  std::uint64_t where() const noexcept {
    const BlockGroup& of = group();
    return of.where.load() + std::uint64_t{position()} * of.block_bytes.load();
  }

  std::uint64_t bits_ = 0;
};

// The addresses of all entries of a pool that can be read.
struct EntryRange {
  std::uintptr_t begin = 0;
  std::size_t bytes = 0;

  // Whether an untrusted cookie refers to the table, and its entry; null when it does not. What it refers to
  // may be any 16 bytes of the table, and its group any others: reading them is harmless, and only the live
  // block of that serial matches.
  bool has(std::uint64_t cookie) const noexcept { return cookie - begin < bytes; }
  BlockRef find(std::uint64_t cookie) const noexcept { return has(cookie) ? BlockRef(cookie) : BlockRef(); }
};

// All entries of a pool, in an address range that never moves. It is committed as the table grows. A chunk
// whose groups are all free serves groups of any length. Most such chunks return their memory to the system,
// and read as empty then. Not thread-safe, except for `range`.
class BlockTable {
 public:
  static constexpr std::uint32_t kMostBlocks = 1023;  // in a group
  static constexpr Failure kNoTables{ErrorCode::out_of_memory, 0, "no heap for the pool's tables"};

  BlockTable() noexcept = default;
  ~BlockTable();
  BlockTable(const BlockTable&) = delete;
  BlockTable& operator=(const BlockTable&) = delete;

  // Reserves the addresses of the table, once.
  Status open(std::size_t most_bytes) noexcept;
  // What so much memory needs if all of it is cut into the shortest blocks.
  static std::size_t bytes_for(std::size_t memory_bytes) noexcept;

  // A group for so many blocks, of which none is live: the first of them. Null when there is no memory, or the
  // table is full.
  BlockRef take(std::uint32_t blocks) noexcept;
  // Why the last call of `take` found none.
  const Failure& refusal() const noexcept { return refusal_; }
  // Of a group that large blocks share, one, and with the last the group. REQUIRES: none of the group's other
  // blocks is live.
  void give_back(BlockRef any) noexcept;
  // Returns the memory of free chunks to the system, of so many at most.
  void trim(std::size_t most) noexcept;

  EntryRange range() const noexcept { return {begin_, committed_.load()}; }
  // The memory of chunks that are used, and all that it may hold.
  std::size_t used_bytes() const noexcept { return (chunks_.size() - free_count_ - bare_count_) * kChunkBytes; }
  std::size_t bytes() const noexcept { return (chunks_.size() - bare_count_) * kChunkBytes + chunks_.capacity() * sizeof(Chunk); }

  // `visit(ref)` for each live block of up to `most` chunks from `at` on. False when there are no more.
  template <class Visit>
  bool visit_live(std::size_t& at, std::size_t most, Visit visit) const {
    for (const std::size_t end = at + most; at < end && at < chunks_.size(); ++at) {
      const unsigned order = chunks_[at].order;
      for (std::uint32_t i = 0; i < chunks_[at].cut; ++i) {
        const std::uintptr_t group = group_at(static_cast<std::uint32_t>(at), i);
        if (reinterpret_cast<const BlockGroup*>(group)->where.load() == 0) continue;
        const BlockRef first = BlockRef::first_of(group, order);
        for (std::uint32_t block = 0; block + 1 < 1U << order; ++block) {
          const BlockRef ref = first.later(block);
          // Behind the last block of the slab there may be what another group has left: no live entries.
          if (ref->is_live() && (ref->state.load() & BlockEntry::kGroup) == 0) visit(ref);
        }
      }
    }
    return at < chunks_.size();
  }

  std::string audit() const;

 private:
  static constexpr std::size_t kChunkBytes = std::size_t{64} << 10;
  static constexpr unsigned kMostOrder = 10;
  static constexpr std::uint32_t kNone = UINT32_MAX;

  struct Chunk {
    std::uint32_t previous = kNone;  // in the list of chunks of the same order that have free groups
    std::uint32_t next = kNone;      // in that list, or in one of those of free chunks
    std::uint32_t free = kNone;      // groups that were given back: a list through BlockGroup::number
    std::uint16_t used = 0;          // groups
    std::uint16_t cut = 0;           // groups that were ever taken since it was free
    std::uint8_t order = 0;
  };

  std::uint32_t add_chunk(unsigned order) noexcept;
  bool commit_more() noexcept;
  bool discard(std::uint32_t chunk) noexcept;
  void link(std::uint32_t chunk) noexcept;
  void unlink(std::uint32_t chunk) noexcept;
  static std::uint32_t groups_in_chunk(unsigned order) noexcept {
    return static_cast<std::uint32_t>(kChunkBytes / sizeof(BlockEntry)) >> order;
  }
  std::uintptr_t group_at(std::uint32_t chunk, std::uint32_t group) const noexcept {
    return begin_ + chunk * kChunkBytes + (std::uintptr_t{group} * sizeof(BlockEntry) << chunks_[chunk].order);
  }

  std::uintptr_t begin_ = 0;
  std::size_t reserved_ = 0;
  Relaxed<std::size_t> committed_;                                // bytes from begin_ on
  std::vector<Chunk> chunks_;                                     // that have ever been used, from begin_ on
  std::array<std::uint32_t, kMostOrder + 1> partial_ = filled();  // by order: chunks with free groups
  std::uint32_t free_ = kNone;                                    // chunks without groups, with memory
  std::uint32_t bare_ = kNone;                                    // and without
  std::size_t free_count_ = 0;
  std::size_t bare_count_ = 0;
  Failure refusal_ = kNoTables;

  static constexpr std::array<std::uint32_t, kMostOrder + 1> filled() noexcept {
    std::array<std::uint32_t, kMostOrder + 1> all{};
    for (std::uint32_t& one : all) one = kNone;
    return all;
  }
};

}  // namespace berth::internal::memory
