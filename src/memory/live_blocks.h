// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/relaxed.h"
#include "berth/record/record.h"
#include "berth/record/stack.h"
#include "os/lock/mutex.h"

// The live blocks of all allocators that were allocated while a sink recorded them, with what an allocator does
// not keep: call site and time. Used by trackers, profilers with sites and, through them, snapshots. Any
// thread.
namespace berth::internal::memory {

struct BlockNote {
  std::uint64_t allocator_id = 0;  // the outermost, which the block must be freed through
  std::uint64_t serial = 0;        // unique in that allocator
  std::uint64_t address = 0;
  std::size_t bytes = 0;
  DeviceKey device;
  Tag tag;
  SiteId site;
  StackId stack;
  std::uint64_t since_ns = 0;  // steady clock
  std::uint64_t age_ns = 0;    // at the time of notes(): at least 1
};

// The sink that keeps them. The key is allocator and serial, which no later block has again, because records of
// two threads may arrive in any order.
class BlockBook : public Sink {
 public:
  explicit BlockBook(std::size_t stack_depth) noexcept : stack_depth_(stack_depth) {}

  void on_record(const Record& record) noexcept final;

  std::vector<BlockNote> notes() const;                               // in no order
  std::uint64_t dropped() const noexcept { return dropped_.load(); }  // blocks lost for lack of heap

 protected:
  // Called for each block that is added or removed, with no lock held.
  virtual void added(const BlockNote&) noexcept {}
  virtual void removed(const BlockNote&) noexcept {}

 private:
  static constexpr std::size_t kShards = 16;
  struct Key {
    std::uint64_t allocator_id;
    std::uint64_t serial;
    friend bool operator==(const Key&, const Key&) = default;
  };
  struct Hash {
    std::size_t operator()(const Key& key) const noexcept { return (key.serial + key.allocator_id * 31) * 0x9e3779b97f4a7c15ULL >> 20; }
  };
  struct Shard {
    mutable os::Mutex mutex;
    std::unordered_map<Key, BlockNote, Hash> notes BERTH_GUARDED_BY(mutex);
  };

  Shard& shard_of(const Key& key) noexcept { return shards_[Hash()(key) % kShards]; }
  void add(const Record& record);
  void remove(const Record& record) noexcept;

  const std::size_t stack_depth_;
  std::array<Shard, kShards> shards_;
  Relaxed<std::uint64_t> dropped_;
};

// Registers a book for use by snapshots, for as long as it lives.
void enter_book(const std::shared_ptr<BlockBook>& book);

// The blocks on a device that any book has, by address; empty without a book.
using LiveBlocks = std::unordered_map<std::uint64_t, BlockNote>;
LiveBlocks live_blocks(DeviceKey device);

// "decoder.cc:118 (grow) < a.out+0x1f20 (main)"; empty when both are unknown.
std::string site_in_words(SiteId site, StackId stack);

}  // namespace berth::internal::memory
