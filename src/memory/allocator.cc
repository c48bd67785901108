// SPDX-License-Identifier: Apache-2.0
#include "berth/memory/allocator.h"

#include <atomic>
#include <new>
#include <utility>

#include "base/text.h"
#include "berth/base/checked.h"
#include "berth/device/backend.h"
#include "berth/record/misuse.h"
#include "memory/fast_path.h"
#include "memory/holders.h"
#include "memory/process_budget.h"
#include "memory/race_detector.h"
#include "memory/refusal_hook.h"
#include "record/emit.h"
#include "record/tally.h"

namespace berth {

using namespace internal;
using namespace internal::memory;
using namespace internal::record;

namespace {

std::atomic<std::uint64_t> g_next_allocator_id{1};

[[noreturn]] void throw_alignment(const Request& request, const Backend& backend) {
  throw ArgumentError(
      ErrorCode::invalid_alignment,
      {text::join("allocating ", request.bytes, " bytes aligned to ", request.alignment, " on ", backend.device().to_string()),
       text::join("an alignment is a power of two, at most ", backend.properties().max_alignment), "leave it out for the device's default"},
      {{"value", request.alignment}, {"limit", backend.properties().max_alignment}});
}

// Updates only the trace and the tally.
inline void note_allocation(const Block& block) noexcept {
  if (is_traced()) trace_allocation(block.allocator_id, block.serial, block.bytes, block.stream_id, block.tag);
  tally_allocation(block.device.key(), block.tag, block.bytes);
}
// Not inlined, so that an unrecorded free needs no stack frame.
[[gnu::noinline]] void note_free(const Block& block) noexcept {
  if (is_traced()) trace_free(block.allocator_id, block.serial);
  tally_free(block.device.key(), block.tag, block.bytes);
}

// Trace and tally first; the record is made for sinks alone.
void record_block(RecordKind kind, const Block& block, const Site& site) noexcept {
  if (kind == RecordKind::allocated) note_allocation(block);
  if (kind == RecordKind::freed) note_free(block);
  if (!has_block_sinks()) return;
  emit({.kind = kind,
        .device = block.device.key(),
        .address = block.data,
        .bytes = block.bytes,
        .allocator_id = block.allocator_id,
        .serial = block.serial,
        .stream_id = block.stream_id,
        .tag = block.tag,
        .site = intern(site)});
}

void record_allocation(const Block& block, StreamRef stream, const Site& site) noexcept {
  if (block.data == nullptr) return;
  if (is_detecting_races()) race_detector::allocated(block, stream);
  record_block(RecordKind::allocated, block, site);
}

MisuseKind misuse_of(BlockVerdict freed) noexcept {
  switch (freed) {
    case BlockVerdict::double_free: return MisuseKind::double_free;
    case BlockVerdict::size_mismatch: return MisuseKind::size_mismatch;
    case BlockVerdict::reentered: return MisuseKind::reentrancy;
    case BlockVerdict::foreign:
    case BlockVerdict::ok: break;
  }
  return MisuseKind::foreign_free;
}

}  // namespace

Allocator::Allocator(Backend& backend) noexcept
    : backend_(backend),
      device_(backend.device()),
      usual_alignment_(backend.properties().alignment),
      max_alignment_(backend.properties().max_alignment),
      id_(g_next_allocator_id.fetch_add(1, std::memory_order_relaxed)) {}
BlockSource::~BlockSource() = default;
Allocator::~Allocator() = default;

Result<bool> BlockSource::locate(Block&) noexcept {
  return Failure{ErrorCode::unsupported, 0, "it does not know its blocks by their addresses"};
}
void BlockSource::explain_free(const Block&, Misuse&) const noexcept {}
void BlockSource::list_blocks(Snapshot&) const {}

// Fills in the fields that the request left out, in place, and rejects invalid requests. Zero bytes are handled
// here, so that no strategy sees them.
inline Status Allocator::allocate_checked(Request& request, Block& block) {
  if (request.alignment == 0) [[likely]]
    request.alignment = usual_alignment_;
  else if (!is_power_of_two(request.alignment) || request.alignment > max_alignment_)
    throw_alignment(request, backend_);
  if (!request.tag) request.tag = t_current_tag;
  request.allocator_id = id_;
  block.bytes = request.bytes;
  block.alignment = request.alignment;
  block.device = device_;
  block.tag = request.tag;
  block.stream_id = request.stream.id();
  block.allocator_id = id_;
  return request.bytes - 1 < kMaxBytes ? obtain(request, block) : allocate_nothing(request, block);
}

Status Allocator::allocate_nothing(const Request& request, Block& block) noexcept {
  if (request.bytes != 0) return Failure{ErrorCode::out_of_memory, 0, "no address space is that large"};
  block.data = nullptr;
  block.serial = block.cookie = 0;
  return {};
}

// Tries the fast path first if nothing is recorded. (There is one call, and nothing that must be kept across it;
// what the fast path needs twice is copied, because its fences make the compiler read it again: then the
// registers suffice, and it sets up no stack frame.)
Block Allocator::allocate_parts(std::size_t bytes, std::size_t alignment, StreamRef stream, Tag tag, const Site& site) {
  if (!is_recording()) [[likely]] {
    const CacheFront front = t_front;
    const std::uint64_t id = id_;
    Tag known = tag;
    const ThreadCache::Taken taken = fast_path::take(front, id, bytes, alignment, stream, known);
    if (taken.cookie != 0) [[likely]]
      return fast_path::block_of(*front.cache, taken, bytes, usual_alignment_, device_, known, id);
  }
  return allocate_slowly(bytes, alignment, stream, tag, site);
}

// Whoever is called zeroes the block; allocators below it do not see that it was asked for.
[[gnu::noinline]] Block Allocator::allocate_zeroed(const Request& request, const Site& site) {
  const Block block = allocate_parts(request.bytes, request.alignment, request.stream, request.tag, site);
  make_zero(block, request.stream);
  return block;
}

void Allocator::make_zero(const Block& block, StreamRef stream) {
  if (block.data == nullptr) return;
  const Status done = backend_.zero(block.data, block.bytes, stream);
  if (done) return;
  deallocate(block);
  throw_failure(done.failure(), device(), text::join("zeroing a new block of ", text::bytes(block.bytes)));
}

// As above, if only the trace and the tally are on: this is the cost of a program that always counts.
[[gnu::noinline]] Block Allocator::allocate_slowly(std::size_t bytes, std::size_t alignment, StreamRef stream, Tag tag, const Site& site) {
  if (is_only_lightly_watched()) {
    const CacheFront& front = t_front;
    Tag known = tag;
    const ThreadCache::Taken taken = fast_path::take(front, id_, bytes, alignment, stream, known);
    if (taken.cookie != 0) {
      if (is_traced()) trace_allocation(id_, taken.serial, bytes, front.cache->stream_id, known);
      tally_allocation(device_.key(), known, bytes);
      return fast_path::block_of(*front.cache, taken, bytes, usual_alignment_, device_, known, id_);
    }
  }
  return allocate_fully(bytes, alignment, stream, tag, site);
}

// The full path: fills in defaults, calls the strategy, asks others for memory, and explains a refusal.
[[gnu::noinline]] Block Allocator::allocate_fully(std::size_t bytes, std::size_t alignment, StreamRef stream, Tag tag, const Site& site) {
  Request request{.bytes = bytes, .alignment = alignment, .stream = stream, .tag = tag, .site = site};
  Block block;
  unsigned calls = 0;
  const Status done = allocate_under_pressure(request, block, calls);
  if (!done) [[unlikely]] {
    record_refusal(request);
    throw_refused(request, done.failure(), calls);
  }
  if (is_recording()) [[unlikely]]
    record_allocation(block, request.stream, request.site);
  return block;
}

// No lock is held here, whatever allocators are below, so others can be asked for memory.
inline Status Allocator::allocate_under_pressure(Request& request, Block& block, unsigned& calls) {
  const auto attempt = [&] {
    const Status first = allocate_checked(request, block);
    if (!first && first.failure().cause == Refusal::process_limit && make_room_in_process(backend_, request.bytes)) [[unlikely]]
      return allocate_checked(request, block);
    return first;
  };
  Status done = attempt();
  if (!done && done.failure().code == ErrorCode::out_of_memory && request.bytes <= kMaxBytes) [[unlikely]] {
    const ReclaimHook reclaim = g_reclaim_hook.load(std::memory_order_acquire);
    if (reclaim != nullptr && reclaim()) done = attempt();
  }
  while (!done && done.failure().code == ErrorCode::out_of_memory && request.bytes <= kMaxBytes && calls < kMostPressureCalls)
    [[unlikely]] {
      if (!call_for_memory(request, calls + 1)) break;
      ++calls;
      done = allocate_checked(request, block);
    }
  return done;
}

std::optional<Block> Allocator::try_allocate(Request&& request, const Site& here) {
  if (request.site.line == 0) request.site = here;
  Block block;
  unsigned calls = 0;
  const Status done = allocate_under_pressure(request, block, calls);
  if (done) {
    if (is_recording()) record_allocation(block, request.stream, request.site);
    if (request.zeroed) make_zero(block, request.stream);
    return block;
  }
  record_refusal(request);
  const ErrorCode code = done.failure().code;
  if (code != ErrorCode::out_of_memory && code != ErrorCode::busy) throw_refused(request, done.failure());
  return std::nullopt;
}

void Allocator::record_refusal(const Request& request) const noexcept {
  if (!is_recording()) return;
  const Block unserved{.bytes = request.bytes,
                       .alignment = request.alignment,
                       .device = device_,
                       .tag = request.tag,
                       .stream_id = request.stream.id(),
                       .allocator_id = id_};
  record_block(RecordKind::allocation_failed, unserved, request.site);
}

void Allocator::throw_refused(const Request& request, const Failure& failure, unsigned pressure_calls) const {
  const std::string asked = text::join("allocating ", text::bytes(request.bytes), " with ", name());
  if (failure.code == ErrorCode::busy) {
    throw AccessError(ErrorCode::busy,
                      {text::join(asked, " on ", device().to_string()),
                       text::join("the device is held, or this thread is already inside the allocator: ", std::string_view(failure.why)),
                       "end the hold first, or reserve before it; and do not allocate in a signal handler"},
                      {{"requested", request.bytes}});
  }
  if (failure.code != ErrorCode::out_of_memory) throw_failure(failure, device(), asked);
  if (!backend_.is_alive()) throw_failure({ErrorCode::device_lost, 0, "the device was lost"}, device(), asked);
  OutOfMemoryReport report;
  report.device = device();
  report.allocator = name();
  report.requested_bytes = request.bytes;
  report.alignment = request.alignment;
  report.tag = request.tag;
  const MemoryInfo info = backend_.memory_info();
  report.device_total_bytes = info.total_bytes;
  report.device_free_bytes = info.free_bytes;
  explain(failure, report);
  if (failure.cause == Refusal::process_limit) explain_process_limit(backend_, report);
  if (request.bytes > info.total_bytes && info.total_bytes != 0) report.would_be_enough_bytes = 0;  // nothing would
  report.top_holders = top_holders(holders());
  if (pressure_calls > 0) report.tried.push_back(text::join("called the pressure callback, and tried again: ", pressure_calls, " times"));
  if (report.refused_by.empty()) report.refused_by = failure.why;
  OutOfMemory refusal(std::move(report));
  if (const RefusalHook hook = g_refusal_hook.load(std::memory_order_acquire)) hook(refusal);
  throw refusal;
}

void Allocator::deallocate(const Block& block) noexcept {
  const std::uint32_t watchers = g_watchers.load();
  if (watchers < kSlowWatcher && fast_path::free(id_, block)) [[likely]] {
    if (watchers != 0) [[unlikely]]
      return note_free(block);
    return;
  }
  deallocate_slowly(block, When::later);
}
void Allocator::deallocate_now(const Block& block) noexcept { deallocate_slowly(block, When::now); }

[[gnu::noinline]] void Allocator::deallocate_slowly(const Block& block, When when) noexcept {
  if (block.data == nullptr) return;
  const bool recording = is_recording();
  Block known;
  if (is_detecting_races()) [[unlikely]]
    race_detector::freed(block);
  const BlockVerdict freed = block.allocator_id == id_ ? give_back(block, when, recording ? &known : nullptr) : BlockVerdict::foreign;
  if (freed != BlockVerdict::ok)
    report_refused(block, freed);
  else if (recording)
    record_block(RecordKind::freed, known, {});
}

void Allocator::report_refused(const Block& block, BlockVerdict freed) const noexcept {
  std::string_view called = "(unknown)";
  std::string kept;
  try {
    // A reentrant call may have interrupted the heap.
    if (freed != BlockVerdict::reentered) called = kept = name();
  } catch (...) {  // a third party's name() may throw anything; it is then left out
  }
  Misuse misuse{.kind = misuse_of(freed),
                .allocator = called,
                .device = block.device.key(),
                .address = block.data,
                .bytes = block.bytes,
                .tag = block.tag};
  if (freed != BlockVerdict::reentered) explain_free(block, misuse);  // nor may a lock be acquired
  report_misuse(misuse);
}

bool Allocator::try_grow(Block& block, std::size_t bytes) noexcept {
  if (bytes == block.bytes) return true;
  if (block.data == nullptr || block.serial == 0 || block.allocator_id != id_ || bytes < block.bytes || bytes > kMaxBytes) return false;
  const Block before = block;
  if (!grow(block, bytes)) return false;
  if (is_recording()) {
    if (is_detecting_races()) race_detector::grown(block);
    record_block(RecordKind::freed, before, {});
    record_block(RecordKind::allocated, block, {});
  }
  return true;
}

void Allocator::used_on(const Block& block, StreamRef stream) {
  if (block.data == nullptr) return;
  const Result<BlockVerdict> noted = block.allocator_id == id_ ? note_use(block, stream) : Result<BlockVerdict>(BlockVerdict::foreign);
  if (!noted) throw std::bad_alloc();
  if (*noted != BlockVerdict::ok)
    report_refused(block, *noted);
  else if (is_detecting_races())
    race_detector::used_on(block, stream);
}

std::optional<Block> Allocator::block_at(const void* data) {
  if (data == nullptr) return std::nullopt;
  Block block = block_at(const_cast<void*>(data), 0);
  const Result<bool> found = locate(block);
  if (found) return *found ? std::optional(block) : std::nullopt;
  throw DeviceError(found.failure().code,
                    {text::join("looking for the block at ", text::pointer(data), " in ", name()), std::string(found.failure().why),
                     "keep the block, or its size for block_at(data, bytes)"},
                    {{"allocator", name()}});
}

Block Allocator::block_at(void* data, std::size_t bytes) const noexcept {
  return {.data = data, .bytes = bytes, .device = device(), .allocator_id = id_};
}

Hold Allocator::hold() { return Hold(shared_from_this()); }

Hold::Hold(std::shared_ptr<Allocator> allocator) : allocator_(std::move(allocator)) { allocator_->begin_hold(); }
Hold::Hold(Hold&& other) noexcept : allocator_(std::move(other.allocator_)) {}
Hold::~Hold() { end(); }

Hold& Hold::operator=(Hold&& other) noexcept {
  if (this != &other) {
    end();
    allocator_ = std::move(other.allocator_);
  }
  return *this;
}

void Hold::end() noexcept {
  if (allocator_ != nullptr) std::exchange(allocator_, nullptr)->end_hold();
}

}  // namespace berth
