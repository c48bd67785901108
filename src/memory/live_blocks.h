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

// Every block of every allocator that was allocated while someone watched, and lives: with what an allocator does not keep of it, its site and
// its time. Trackers, profilers with sites, and through them snapshots look here.
namespace berth::internal::memory {

struct BlockNote {
  std::uint64_t allocator_id = 0;  // the outermost: whom the block must come back to
  std::uint64_t serial = 0;        // of that allocator's blocks
  std::uint64_t address = 0;
  std::size_t bytes = 0;
  DeviceKey device;
  Tag tag;
  SiteId site;
  StackId stack;
  std::uint64_t since_ns = 0;  // steady clock
  std::uint64_t age_ns = 0;    // when it was asked for: at least 1
};

// A sink that keeps them. By allocator and serial, which no later block has again: records of two threads may come in any order.
class BlockBook : public Sink {
 public:
  explicit BlockBook(std::size_t stack_depth) noexcept : stack_depth_(stack_depth) {}

  void on_record(const Record& record) noexcept final;

  std::vector<BlockNote> notes() const;                               // in no order
  std::uint64_t dropped() const noexcept { return dropped_.load(); }  // blocks that there was no heap to note

 protected:
  // Told of each one that comes or goes, with no lock held.
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

// Makes a book known to snapshots, for as long as it lives.
void enter_book(const std::shared_ptr<BlockBook>& book);

// The blocks on a device that a book knows, by address; with none, empty.
using LiveBlocks = std::unordered_map<std::uint64_t, BlockNote>;
LiveBlocks live_blocks(DeviceKey device);

// "decoder.cc:118 (grow) < a.out+0x1f20 (main)"; empty when both are unknown.
std::string site_in_words(SiteId site, StackId stack);

}  // namespace berth::internal::memory
