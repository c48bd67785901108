// SPDX-License-Identifier: Apache-2.0
#include "berth/memory/track.h"

#include <algorithm>
#include <new>
#include <unordered_map>

#include "memory/adaptor.h"
#include "memory/holders.h"
#include "os/lock/mutex.h"
#include "os/system.h"

namespace berth {

using namespace internal;
using namespace internal::memory;

namespace {

class Tracking : public Adaptor<TrackAdaptor> {
 public:
  explicit Tracking(std::shared_ptr<Allocator> upstream) : Adaptor("track", std::move(upstream)) {}

  Status obtain(const Request& request, Block& block) noexcept override {
    Status done = upstream_->obtain(request, block);
    if (!done || remember(block, request)) return done;
    upstream_->give_back(block, When::later, nullptr);
    return Failure{ErrorCode::out_of_memory, 0, "no heap for the block's entry"};
  }

  BlockVerdict give_back(const Block& block, When when, Block* known) noexcept override {
    Block own;
    if (known == nullptr) known = &own;
    const BlockVerdict freed = upstream_->give_back(block, when, known);
    if (freed == BlockVerdict::ok) {
      // Serials are never reused, so another thread that already has the same address cannot be confused with
      // this block.
      const os::Lock lock(mutex_);
      if (const auto found = live_.find(known->serial); found != live_.end()) {
        holders_.remove(found->second.block.tag, found->second.block.bytes);
        live_.erase(found);
      }
    }
    return freed;
  }

  bool grow(Block& block, std::size_t bytes) noexcept override {
    const std::uint64_t before = block.serial;
    if (!upstream_->grow(block, bytes)) return false;
    const os::Lock lock(mutex_);
    auto node = live_.extract(before);
    if (node.empty()) return true;  // not allocated through this adaptor
    Block& known = node.mapped().block;
    const Tag tag = known.tag;
    holders_.remove(tag, known.bytes);
    holders_.add(tag, bytes);
    node.key() = block.serial;
    known = block;
    known.tag = tag;                // that of the block passed in is not verified
    live_.insert(std::move(node));  // the size stays the same: does not allocate
    return true;
  }

  std::vector<LiveBlock> live() const override {
    std::vector<LiveBlock> blocks;
    {
      const os::Lock lock(mutex_);
      blocks.reserve(live_.size());
      for (const auto& [serial, entry] : live_) blocks.push_back(entry);
    }
    std::ranges::sort(blocks, {}, [](const LiveBlock& b) { return std::pair(b.since_ns, b.block.serial); });
    return blocks;
  }

  std::vector<Holder> holders() const override {
    std::vector<Holder> held;
    {
      const os::Lock lock(mutex_);
      held = holders_.holders();
    }
    return most_first(std::move(held));
  }

 private:
  bool remember(const Block& block, const Request& request) noexcept {
    try {
      const LiveBlock entry{block, intern(request.site), os::steady_time_ns()};
      const os::Lock lock(mutex_);
      if (!holders_.reserve(block.tag)) return false;
      live_.emplace(block.serial, entry);
      holders_.add(block.tag, block.bytes);
      return true;
    } catch (const std::bad_alloc&) {
      return false;
    }
  }

  mutable os::Mutex mutex_;
  std::unordered_map<std::uint64_t, LiveBlock> live_ BERTH_GUARDED_BY(mutex_);  // by serial
  HolderTotals holders_ BERTH_GUARDED_BY(mutex_);                               // of live_
};

}  // namespace

std::string LiveBlock::to_string() const {
  std::string out = text::bytes(block.bytes);
  if (block.tag) out += text::join(", tag ", text::printable(block.tag.word()));
  return text::join(out, ", at ", berth::to_string(site));
}

std::shared_ptr<TrackAdaptor> track(std::shared_ptr<Allocator> upstream) { return std::make_shared<Tracking>(std::move(upstream)); }

}  // namespace berth
