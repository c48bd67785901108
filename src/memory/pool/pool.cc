// SPDX-License-Identifier: Apache-2.0
#include "memory/pool/pool.h"

#include <algorithm>
#include <system_error>

#include "base/text.h"
#include "berth/device/backend.h"
#include "berth/device/registry.h"
#include "memory/pool/background_trim.h"
#include "memory/process_budget.h"
#include "os/memory/memory.h"

namespace berth::internal::memory {

namespace {

// The granularity at which pages are moved and committed: on hosts whole huge pages, if there are any, unless
// rounding would use up a tight limit.
std::size_t page_of(const Backend& backend, std::size_t limit_bytes) noexcept {
  const std::size_t unit = backend.properties().unit_bytes;
  const std::size_t huge = backend.properties().abilities.host_access ? os::huge_page_bytes() : 0;
  return limit_bytes / 16 >= huge ? std::max(unit, huge) : unit;
}

PoolCore::Setup setup_of(Backend& backend, const PoolOptions& options) {
  return {.options = options, .page_bytes = page_of(backend, options.limit_bytes), .below = &process_budget(backend)};
}

PoolCore::Setup setup_of(Supply& parent, Budget& below, const PrivatePoolOptions& options) noexcept {
  const PoolCore& core = parent.core();
  return {.options = {.limit_bytes = options.limit_bytes,
                      .decay = options.decay,
                      .target_ratio = core.target_ratio,
                      .small_bytes = core.small_limit,
                      .region_waits = core.region_waits,
                      .wait_for_streams = core.wait_for_streams},
          .page_bytes = core.page_bytes,
          .below = &below,
          .lender = &parent,
          .fixed_pages = options.fixed_pages};
}

}  // namespace

Pool::Pool(Device device, const PoolOptions& options) : Pool(berth::backend(device), setup_of(berth::backend(device), options), nullptr) {}

Pool::Pool(const std::shared_ptr<Pool>& parent, const PrivatePoolOptions& options)
    : Pool(parent->backend(), setup_of(parent->supply_, parent->core_.budget, options), supply_of(parent)) {}

Pool::Pool(Backend& device_backend, const PoolCore::Setup& setup, std::shared_ptr<Supply> parent)
    : Allocator(device_backend),
      core_(device_backend, id(), setup),
      book_(core_),
      caches_(core_, book_, *this),
      regions_(core_, book_, caches_),
      supply_(core_, book_, caches_, regions_, std::move(parent)),
      small_(core_, book_, caches_, supply_),
      medium_(core_, book_, regions_, supply_),
      large_(core_, book_, caches_, supply_) {
  caches_.listen();
  regions_.listen();
}

// Buffers keep their allocator alive, so live blocks here were leaked by a user of bare blocks. Their memory
// stays: it may still be used.
Pool::~Pool() {
  const bool usable = !core_.is_inherited() && backend().is_alive();
  regions_.stop_listening();
  caches_.stop_listening();  // both before the mutex: a fork holds the list while it waits for the mutexes
  const os::Lock lock(core_.mutex);
  if (usable) {
    caches_.flush_unused();
    regions_.dissolve_all();
  }
  {
    const Regions::Quiet quiet(regions_);
    regions_.take_shares();
  }
  if (usable && core_.usage.counts().live() + caches_.counts().live() == 0) supply_.close();
  // That memory no longer belongs to this process.
  if (!usable) core_.budget.give_up(core_.space.figures().committed);
}

// The fast path has been tried by the public face, unless the request came through an adaptor.
Status Pool::obtain(const Request& request, Block& block) noexcept {
  const CacheFront& front = t_front;
  if (front.allocator == id() && front.stream == request.stream.state() && request.alignment <= core_.alignment) [[likely]] {
    const ThreadCache::Taken taken = front.cache->take(request.bytes, BlockEntry::make_label(request.allocator_id, request.tag));
    if (taken.cookie != 0) [[likely]] {
      block.data = taken.data;
      block.serial = taken.serial;
      block.cookie = taken.cookie;
      return {};
    }
  }
  if (core_.is_inherited()) {
    const os::Lock lock(core_.mutex);
    return core_.usage.refused({ErrorCode::fork_unsafe, 0, "the pool was made before fork, for a device that does not survive it"});
  }
  if (request.bytes <= core_.small_limit) {
    if (const std::optional<Status> done = small_.obtain(request, block)) return *done;
  } else if (medium_.obtain(request, block)) {
    return {};
  }
  return large_.obtain(request, block);
}

BlockVerdict Pool::give_back(const Block& given, When when, Block* known) noexcept {
  const CacheFront& front = t_front;
  if (front.allocator == id() && when == When::later && known == nullptr && front.cache->put(given, given.allocator_id)) [[likely]]
    return BlockVerdict::ok;
  Block block = given;
  const BlockRef entry = core_.find(block);
  if (!entry) return BlockVerdict::foreign;
  caches_.report_late_double_frees();
  if (known != nullptr) describe(*known, block, entry);
  const BlockKind kind = entry.kind();
  if (kind == BlockKind::small) return small_.free(entry, block, when);
  if (kind == BlockKind::medium) {
    if (const std::optional<BlockVerdict> verdict = medium_.free(entry, block, when)) return *verdict;
  }
  return large_.free(entry, block, when);
}

void Pool::describe(Block& known, const Block& block, BlockRef entry) const noexcept {
  known = block;
  known.serial = entry->serial();
  known.tag = entry->tag();
  known.cookie = entry.cookie();
  if (known.alignment == 0) known.alignment = core_.alignment;
}

bool Pool::grow(Block& block, std::size_t bytes) noexcept {
  const BlockRef entry = core_.entries.range().find(block.cookie);
  if (!entry || core_.is_inherited()) return false;
  const BlockKind kind = entry.kind();
  if (kind == BlockKind::small) return small_.grow(entry, block, bytes);
  return kind == BlockKind::medium ? regions_.grow(entry, block, bytes) : large_.grow(entry, block, bytes);
}

Result<BlockVerdict> Pool::note_use(const Block& given, StreamRef stream) noexcept {
  Block block = given;
  const BlockRef entry = core_.find(block);
  if (!entry) return BlockVerdict::foreign;
  const os::Lock lock(core_.mutex);
  const Result<std::uint32_t> number = core_.is_inherited() ? Result<std::uint32_t>(0U) : supply_.ready(stream);
  if (!number) return number.failure();
  if (entry.kind() == BlockKind::small) return small_.note_use(entry, block, stream, *number);
  regions_.dissolve(entry, block);
  if (entry.kind() == BlockKind::medium && caches_.judge(entry, block) == BlockVerdict::ok) return StreamBook::kNoHeap;
  return large_.note_use(entry, block, stream, *number);
}

// The caller owns the block if it is live: only for an address that is no block's can the entry change meanwhile, and
// what is returned then is a guess that every later use of the block checks.
Result<bool> Pool::locate(Block& block) noexcept {
  block.serial = 0;
  const BlockRef entry = core_.find(block);
  if (!entry || block.serial == 0 || entry->is_sent_home() || entry.differs_from(block.data) != 0) return false;
  if (!entry->is_of(block.allocator_id)) return false;
  const os::Lock lock(core_.mutex);  // under which a block of a region becomes a large one
  if (entry->serial() != block.serial) return false;
  block.bytes = entry.is_large() ? core_.extent_of(entry)->requested : entry->small_bytes();
  block.alignment = core_.alignment;
  block.tag = entry->tag();
  block.cookie = entry.cookie();
  return true;
}

void Pool::reserve(std::size_t bytes) {
  if (const Status done = supply_.reserve(bytes); !done) throw_refused({.bytes = bytes}, done.failure());
}

}  // namespace berth::internal::memory

namespace berth {

using namespace internal;
using namespace internal::memory;

namespace {

[[noreturn]] void throw_no_private_pool(std::string why, std::string help) {
  throw ArgumentError(ErrorCode::invalid_argument, {"making a private pool", std::move(why), std::move(help)});
}

void start_trimming(const std::shared_ptr<Allocator>& made, std::chrono::milliseconds period) {
  try {
    trim_in_background(made, period);
  } catch (const std::system_error& error) {
    throw DeviceError(ErrorCode::device_unavailable,
                      {text::join("a pool on ", made->device().to_string(), " with background_trim"),
                       text::join("no thread could be started: ", error.what()), "raise the limit of threads, or call trim_idle() instead"},
                      {{"errno", error.code().value()}});
  }
}

}  // namespace

std::shared_ptr<Allocator> pool(Device device, const PoolOptions& options) {
  if (options.decay.count() < 0) {
    throw ArgumentError(ErrorCode::invalid_argument,
                        {text::join("a pool on ", device.to_string(), " with decay=", options.decay.count(), "ms"),
                         "a decay time cannot be negative", "use 0 to release at once, or PoolOptions::kNever"},
                        {{"decay", options.decay.count()}});
  }
  if (!(options.target_ratio >= 1)) {
    throw ArgumentError(ErrorCode::invalid_argument, {text::join("a pool on ", device.to_string(), " with a target ratio below 1"),
                                                      "what is live is always committed", "use 1, or a little more"});
  }
  if (options.small_bytes < kSlabGrain || options.small_bytes > kSmallLimit) {
    throw ArgumentError(ErrorCode::invalid_argument,
                        {text::join("a pool on ", device.to_string(), " with small blocks of up to ", text::bytes(options.small_bytes)),
                         "slabs are made for blocks of up to 16 KiB at least, and 128 KiB at most", "use 60 KiB, or leave it at 128 KiB"},
                        {{"small", options.small_bytes}});
  }
  const bool decays = options.decay.count() != 0 && options.decay != PoolOptions::kNever;
  if (options.background_trim && !decays) {
    throw ArgumentError(ErrorCode::invalid_argument,
                        {text::join("a pool on ", device.to_string(), " with background_trim"),
                         options.decay.count() == 0 ? "with a decay of 0 nothing stays idle" : "with a decay of kNever nothing is returned",
                         "leave decay at 10 s, or background_trim out"});
  }
  std::shared_ptr<Allocator> made = enlisted(std::make_shared<Pool>(device, options));
  if (options.background_trim) start_trimming(made, options.decay);
  return made;
}

std::shared_ptr<Allocator> private_pool(const std::shared_ptr<Allocator>& parent, const PrivatePoolOptions& options) {
  auto shared = std::dynamic_pointer_cast<Pool>(parent);
  if (shared == nullptr) {
    throw_no_private_pool(parent == nullptr ? std::string("there is no pool to share pages with")
                                            : text::join(parent->name(), " is not a pool, and has no pages to share"),
                          "pass what pool() returned, and put adaptors around the private one");
  }
  if (shared->is_private()) throw_no_private_pool("the other pool is private itself", "pass the pool whose pages that one shares");
  if (options.decay.count() < 0) throw_no_private_pool("a decay time cannot be negative", "leave decay out");
  if (options.fixed_pages && options.decay != PoolOptions::kNever)
    throw_no_private_pool("fixed pages do not decay", "leave decay out, or set fixed_pages = false");
  auto made = std::make_shared<Pool>(shared, options);
  Pool::supply_of(shared)->add_child(Pool::supply_of(made));
  enlist(made, options.fixed_pages ? Trimmed::never : Trimmed::at_need);
  return made;
}

}  // namespace berth
