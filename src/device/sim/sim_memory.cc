// SPDX-License-Identifier: Apache-2.0
#include "device/sim/sim_memory.h"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <iterator>
#include <new>

#include "berth/base/checked.h"
#include "device/address_number.h"
#include "device/host_bytes.h"
#include "os/memory/memory.h"

namespace berth::internal::device {

namespace {

// Fresh memory is never zero here, so that programs that rely on zeros fail.
constexpr int kFresh = 0xcb;

constexpr Failure kIllegal{ErrorCode::out_of_bounds, 0, "an address is not committed memory of the device"};
constexpr Failure kNotPages{ErrorCode::invalid_argument, 0, "the range is not whole pages of one reserved range"};
constexpr Failure kPartOfPiece{ErrorCode::invalid_argument, 0, "memory is committed in pieces, and this is part of one"};
constexpr Failure kNoPageTable{ErrorCode::out_of_memory, 0, "no heap for the page table"};
constexpr Failure kWrongPageState{ErrorCode::invalid_argument, 0, "a page is committed already, or is not committed and must be"};

// The frame pointer of a page that was never written.
std::byte g_untouched;
std::byte* const kUntouched = &g_untouched;

bool is_committed(const std::byte* frame) noexcept { return frame != nullptr; }

}  // namespace

SimMemory::~SimMemory() { clear(); }

void SimMemory::clear() noexcept {
  for (auto& [base, range] : ranges_) {
    drop_frames(range);
    (void)os::release(reinterpret_cast<void*>(base), range.bytes).ok();
  }
  ranges_.clear();
  echoes_.clear();
  committed_bytes_ = 0;
  reserved_bytes_ = 0;
}

Result<void*> SimMemory::reserve(std::size_t bytes, std::size_t alignment) {
  const auto length = try_align_up(bytes, page_bytes_);
  if (!length || *length == 0) return Failure{ErrorCode::out_of_memory, 0, "the range is larger than the address space"};
  const Result<void*> addresses = os::reserve(*length, std::max(alignment, page_bytes_));
  if (!addresses) return addresses;
  if (!add_range(number(*addresses), *length)) {
    (void)os::release(*addresses, *length).ok();
    return kNoPageTable;
  }
  reserved_bytes_ += *length;
  return addresses;
}

bool SimMemory::add_range(std::size_t base, std::size_t bytes) noexcept {
  Range range{.bytes = bytes};
  range.pages.reset(static_cast<Frame*>(std::calloc(bytes / page_bytes_, sizeof(Frame))));
  if (range.pages == nullptr) return false;
  try {
    if (piece_bytes_ != 0) range.begins.assign(bytes / page_bytes_ + 1, true);
    ranges_.emplace(base, std::move(range));
    return true;
  } catch (const std::bad_alloc&) {
    return false;
  }
}

Status SimMemory::release(void* address, std::size_t bytes) {
  const auto found = ranges_.find(number(address));
  const auto length = try_align_up(bytes, page_bytes_);
  if (found == ranges_.end() || !length || found->second.bytes != *length) return kNotPages;
  committed_bytes_ -= found->second.committed_bytes;
  reserved_bytes_ -= *length;
  drop_frames(found->second);
  echoes_.erase(echoes_.lower_bound(found->first), echoes_.lower_bound(found->first + *length));
  ranges_.erase(found);
  return os::release(address, *length);
}

Status SimMemory::commit(void* address, std::size_t bytes) {
  const Result<Pages> found = pages(address, bytes);
  if (!found) return found.failure();
  if (!std::ranges::none_of(found->frames, is_committed)) return kWrongPageState;
  if (bytes > capacity_bytes_ - committed_bytes_) return Failure{ErrorCode::out_of_memory, 0, "the simulated device is full"};
  std::ranges::fill(found->frames, kUntouched);
  note_pieces(*found);
  found->range->committed_bytes += bytes;
  committed_bytes_ += bytes;
  return {};
}

Status SimMemory::decommit(void* address, std::size_t bytes) {
  const Result<Pages> found = pages(address, bytes);
  if (!found) return found.failure();
  if (!std::ranges::all_of(found->frames, is_committed) || has_echo(address, bytes)) return kWrongPageState;
  if (!is_whole(*found)) return kPartOfPiece;
  for (Frame& frame : found->frames) drop_frame(*found->range, frame);
  found->range->committed_bytes -= bytes;
  committed_bytes_ -= bytes;
  return {};
}

Result<SimMemory::Move> SimMemory::look_at_move(void* from, void* to, std::size_t bytes) {
  const Result<Pages> source = pages(from, bytes);
  const Result<Pages> target = pages(to, bytes);
  if (!source || !target) return kNotPages;
  if (!std::ranges::all_of(source->frames, is_committed) || has_echo(from, bytes)) return kWrongPageState;
  if (!std::ranges::none_of(target->frames, is_committed)) return kWrongPageState;
  if (!is_whole(*source)) return kPartOfPiece;
  return Move{*source, *target};
}

void SimMemory::copy_borders(const Move& move) const noexcept {
  if (piece_bytes_ == 0) return;
  const auto& [source, target] = move;
  const auto first = static_cast<std::size_t>(source.frames.data() - source.range->pages.get());
  const auto place = static_cast<std::size_t>(target.frames.data() - target.range->pages.get());
  for (std::size_t i = 0; i < source.frames.size(); ++i) target.range->begins[place + i] = source.range->begins[first + i];
  target.range->begins[place + target.frames.size()] = true;
}

Status SimMemory::move(void* from, void* to, std::size_t bytes) {
  const Result<Move> move = look_at_move(from, to, bytes);
  if (!move) return move.failure();
  const auto& [source, target] = *move;
  copy_borders(*move);
  const auto on_heap = static_cast<std::size_t>(std::ranges::count_if(source.frames, [](Frame f) { return f != kUntouched; }));
  std::ranges::swap_ranges(source.frames, target.frames);
  source.range->committed_bytes -= bytes;
  target.range->committed_bytes += bytes;
  source.range->frames -= on_heap;
  target.range->frames += on_heap;
  return {};
}

// ---- pages with two addresses

Status SimMemory::begin_move(void* from, void* to, std::size_t bytes) {
  const Result<Move> move = look_at_move(from, to, bytes);
  if (!move) return move.failure();
  const auto& [source, target] = *move;
  if (const Status backed = back(from, bytes); !backed) return backed;
  if (!share_frames(source.frames)) return kNoPageTable;
  try {
    echoes_.emplace(number(from), bytes);
  } catch (const std::bad_alloc&) {
    for (const Frame frame : source.frames) give_up_share(frame);
    return kNoPageTable;
  }
  copy_borders(*move);
  std::ranges::copy(source.frames, target.frames.begin());
  source.range->committed_bytes -= bytes;
  target.range->committed_bytes += bytes;
  target.range->frames += target.frames.size();
  return {};
}

Status SimMemory::end_move(void* from, std::size_t bytes) {
  const auto echo = echoes_.find(number(from));
  if (echo == echoes_.end() || echo->second != bytes) return Failure{ErrorCode::invalid_argument, 0, "no move was begun there"};
  const Result<Pages> found = pages(from, bytes);
  if (!found) return found.failure();
  for (Frame& frame : found->frames) drop_frame(*found->range, frame);
  echoes_.erase(echo);
  return {};
}

bool SimMemory::has_echo(const void* address, std::size_t bytes) const noexcept {
  const auto after = echoes_.lower_bound(number(address) + bytes);
  if (after == echoes_.begin()) return false;
  const auto& [first, length] = *std::prev(after);
  return first + length > number(address);
}

bool SimMemory::share_frames(std::span<const Frame> frames) noexcept {
  std::size_t shared = 0;
  try {
    for (; shared < frames.size(); ++shared) ++more_addresses_[frames[shared]];
    return true;
  } catch (const std::bad_alloc&) {
    for (const Frame frame : frames.first(shared)) give_up_share(frame);
    return false;
  }
}

bool SimMemory::give_up_share(Frame frame) noexcept {
  const auto found = more_addresses_.find(frame);
  if (found == more_addresses_.end()) return false;
  if (--found->second == 0) more_addresses_.erase(found);
  return true;
}

// ---- pieces and frames

bool SimMemory::is_whole(const Pages& found) const noexcept {
  if (piece_bytes_ == 0) return true;
  const auto first = static_cast<std::size_t>(found.frames.data() - found.range->pages.get());
  return found.range->begins[first] && found.range->begins[first + found.frames.size()];
}

void SimMemory::note_pieces(const Pages& found) const noexcept {
  if (piece_bytes_ == 0) return;
  const auto first = static_cast<std::size_t>(found.frames.data() - found.range->pages.get());
  for (std::size_t i = 0; i < found.frames.size(); ++i) found.range->begins[first + i] = i * page_bytes_ % piece_bytes_ == 0;
  found.range->begins[first + found.frames.size()] = true;
}

void SimMemory::drop_frame(Range& range, Frame& frame) noexcept {
  if (frame != nullptr && frame != kUntouched) {
    if (!give_up_share(frame)) delete[] frame;
    --range.frames;
  }
  frame = nullptr;
}

void SimMemory::drop_frames(Range& range) noexcept {
  for (Frame* frame = range.pages.get(); range.frames != 0; ++frame) drop_frame(range, *frame);
}

Status SimMemory::back(void* address, std::size_t bytes) {
  std::size_t base = 0;
  if (bytes == 0) return {};
  if (find(number(address), bytes, base) == nullptr) return kIllegal;
  Range& range = ranges_.find(base)->second;
  bool all = true;
  Status committed = for_each_piece(address, bytes, [&](Frame& frame, std::size_t, std::size_t, std::size_t) {
    if (frame != kUntouched) return;
    auto* const made = new (std::nothrow) std::byte[page_bytes_];
    all = all && made != nullptr;
    if (made == nullptr) return;
    std::memset(made, kFresh, page_bytes_);
    frame = made;
    ++range.frames;
  });
  if (!committed || all) return committed;
  return Failure{ErrorCode::out_of_memory, 0, "no heap for a simulated page"};
}

Status SimMemory::read(void* host, const void* device, std::size_t bytes) const {
  return for_each_piece(device, bytes, [&](Frame frame, std::size_t first, std::size_t count, std::size_t offset) {
    auto* const target = static_cast<std::byte*>(host) + offset;
    if (frame == kUntouched)
      std::memset(target, kFresh, count);
    else
      std::memcpy(target, frame + first, count);
  });
}

Status SimMemory::write(void* device, const void* host, std::size_t bytes) {
  if (Status backed = back(device, bytes); !backed) return backed;
  return for_each_piece(device, bytes, [&](Frame frame, std::size_t first, std::size_t count, std::size_t offset) {
    std::memcpy(frame + first, static_cast<const std::byte*>(host) + offset, count);
  });
}

Status SimMemory::copy(void* target, const void* source, std::size_t bytes) {
  // Through a temporary: this handles overlaps, and speed does not matter here.
  const std::unique_ptr<std::byte[]> through(new (std::nothrow) std::byte[bytes]);
  if (!through) return Failure{ErrorCode::out_of_memory, 0, "no heap for a simulated copy"};
  Status done = read(through.get(), source, bytes);
  return done ? write(target, through.get(), bytes) : done;
}

Status SimMemory::fill(void* device, std::size_t bytes, std::span<const std::byte> pattern) {
  if (Status backed = back(device, bytes); !backed) return backed;
  return for_each_piece(device, bytes, [&](Frame frame, std::size_t first, std::size_t count, std::size_t offset) {
    for (std::size_t i = 0; i < count; ++i) frame[first + i] = pattern[(offset + i) % pattern.size()];
  });
}

template <class Visit>
Status SimMemory::for_each_piece(const void* address, std::size_t bytes, Visit visit) const {
  if (bytes == 0) return {};
  std::size_t base = 0;
  const Range* const range = find(number(address), bytes, base);
  if (range == nullptr) return kIllegal;
  const std::size_t begin = number(address) - base;
  const std::size_t end = begin + bytes;
  for (std::size_t page = begin / page_bytes_; page * page_bytes_ < end; ++page) {
    if (!is_committed(range->pages[page])) return kIllegal;
  }
  for (std::size_t at = begin; at < end;) {
    const std::size_t first = at % page_bytes_;
    const std::size_t count = std::min(page_bytes_ - first, end - at);
    visit(range->pages[at / page_bytes_], first, count, at - begin);
    at += count;
  }
  return {};
}

Result<SimMemory::Pages> SimMemory::pages(void* address, std::size_t bytes) {
  std::size_t base = 0;
  if (find(number(address), bytes, base) == nullptr) return kNotPages;
  const std::size_t offset = number(address) - base;
  if (bytes == 0 || offset % page_bytes_ != 0 || bytes % page_bytes_ != 0) return kNotPages;
  Range& range = ranges_.find(base)->second;
  return Pages{&range, std::span(range.pages.get() + offset / page_bytes_, bytes / page_bytes_)};
}

const SimMemory::Range* SimMemory::find(std::size_t address, std::size_t bytes, std::size_t& base) const noexcept {
  auto after = ranges_.upper_bound(address);
  if (after == ranges_.begin()) return nullptr;
  const auto& [first, range] = *--after;
  if (!fits(address - first, bytes, range.bytes)) return nullptr;
  base = first;
  return &range;
}

}  // namespace berth::internal::device
