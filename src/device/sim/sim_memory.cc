// SPDX-License-Identifier: Apache-2.0
#include "device/sim/sim_memory.h"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <new>

#include "berth/base/checked.h"
#include "device/host_bytes.h"
#include "os/memory.h"

namespace berth {

namespace {

// Fresh memory is never zero here, so that a program that counts on zeros is found out.
constexpr int kFresh = 0xcb;

constexpr Failure kIllegal{ErrorCode::out_of_bounds, 0, "an address is not committed memory of the device"};
constexpr Failure kNotPages{ErrorCode::invalid_argument, 0, "the range is not whole pages of one reserved range"};
constexpr Failure kWrongState{ErrorCode::invalid_argument, 0, "a page is committed that should not be, or the other way round"};

std::size_t number(const void* address) noexcept { return reinterpret_cast<std::uintptr_t>(address); }

}  // namespace

SimMemory::~SimMemory() { clear(); }

void SimMemory::clear() noexcept {
  for (auto& [base, range] : ranges_) (void)os::release(reinterpret_cast<void*>(base), range.bytes).ok();
  ranges_.clear();
  committed_bytes_ = 0;
  reserved_bytes_ = 0;
}

Result<void*> SimMemory::reserve(std::size_t bytes, std::size_t alignment) {
  const auto length = try_align_up(bytes, page_bytes_);
  if (!length || *length == 0) return Failure{ErrorCode::out_of_memory, 0, "the range is larger than the address space"};
  const Result<void*> range = os::reserve(*length, std::max(alignment, page_bytes_));
  if (!range) return range;
  try {
    ranges_.emplace(number(*range), Range{*length, std::vector<Frame>(*length / page_bytes_)});
  } catch (const std::bad_alloc&) {
    (void)os::release(*range, *length).ok();
    return Failure{ErrorCode::out_of_memory, 0, "no heap for the page table"};
  }
  reserved_bytes_ += *length;
  return range;
}

Status SimMemory::release(void* address, std::size_t bytes) {
  const auto found = ranges_.find(number(address));
  const auto length = try_align_up(bytes, page_bytes_);
  if (found == ranges_.end() || !length || found->second.bytes != *length) return kNotPages;
  for (const Frame& frame : found->second.pages) committed_bytes_ -= frame ? page_bytes_ : 0;
  reserved_bytes_ -= *length;
  ranges_.erase(found);
  return os::release(address, *length);
}

Status SimMemory::commit(void* address, std::size_t bytes) {
  const Result<std::span<Frame>> range = pages(address, bytes);
  if (!range) return range.failure();
  if (!std::ranges::none_of(*range, [](const Frame& f) { return bool{f}; })) return kWrongState;
  if (bytes > capacity_bytes_ - committed_bytes_) return Failure{ErrorCode::out_of_memory, 0, "the simulated device is full"};
  for (Frame& frame : *range) {
    frame.reset(new (std::nothrow) std::byte[page_bytes_]);
    if (!frame) {
      for (Frame& made : *range) made.reset();
      return Failure{ErrorCode::out_of_memory, 0, "no heap for a simulated page"};
    }
    std::memset(frame.get(), kFresh, page_bytes_);
  }
  committed_bytes_ += bytes;
  return {};
}

Status SimMemory::decommit(void* address, std::size_t bytes) {
  const Result<std::span<Frame>> range = pages(address, bytes);
  if (!range) return range.failure();
  if (!std::ranges::all_of(*range, [](const Frame& f) { return bool{f}; })) return kWrongState;
  for (Frame& frame : *range) frame.reset();
  committed_bytes_ -= bytes;
  return {};
}

Status SimMemory::move(void* from, void* to, std::size_t bytes) {
  const Result<std::span<Frame>> source = pages(from, bytes);
  const Result<std::span<Frame>> target = pages(to, bytes);
  if (!source || !target) return kNotPages;
  if (!std::ranges::all_of(*source, [](const Frame& f) { return bool{f}; })) return kWrongState;
  if (!std::ranges::none_of(*target, [](const Frame& f) { return bool{f}; })) return kWrongState;
  std::ranges::swap_ranges(*source, *target);
  return {};
}

Status SimMemory::read(void* host, const void* device, std::size_t bytes) const {
  return for_each_piece(device, bytes, [&](std::span<std::byte> piece, std::size_t offset) {
    std::memcpy(static_cast<std::byte*>(host) + offset, piece.data(), piece.size());
  });
}

Status SimMemory::write(void* device, const void* host, std::size_t bytes) {
  return for_each_piece(device, bytes, [&](std::span<std::byte> piece, std::size_t offset) {
    std::memcpy(piece.data(), static_cast<const std::byte*>(host) + offset, piece.size());
  });
}

Status SimMemory::copy(void* target, const void* source, std::size_t bytes) {
  // Through a copy of its own: overlaps are right, and speed is not what this device is for.
  const std::unique_ptr<std::byte[]> through(new (std::nothrow) std::byte[bytes]);
  if (!through) return Failure{ErrorCode::out_of_memory, 0, "no heap for a simulated copy"};
  Status done = read(through.get(), source, bytes);
  return done ? write(target, through.get(), bytes) : done;
}

Status SimMemory::fill(void* device, std::size_t bytes, std::span<const std::byte> pattern) {
  return for_each_piece(device, bytes, [&](std::span<std::byte> piece, std::size_t offset) {
    for (std::size_t i = 0; i < piece.size(); ++i) piece[i] = pattern[(offset + i) % pattern.size()];
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
    if (!range->pages[page]) return kIllegal;
  }
  for (std::size_t at = begin; at < end;) {
    const std::size_t in_page = at % page_bytes_;
    const std::size_t piece = std::min(page_bytes_ - in_page, end - at);
    visit(std::span(range->pages[at / page_bytes_].get() + in_page, piece), at - begin);
    at += piece;
  }
  return {};
}

Result<std::span<SimMemory::Frame>> SimMemory::pages(void* address, std::size_t bytes) {
  std::size_t base = 0;
  const Range* const range = find(number(address), bytes, base);
  const std::size_t offset = number(address) - base;
  if (range == nullptr || bytes == 0 || offset % page_bytes_ != 0 || bytes % page_bytes_ != 0) return kNotPages;
  return std::span(ranges_.find(base)->second.pages).subspan(offset / page_bytes_, bytes / page_bytes_);
}

const SimMemory::Range* SimMemory::find(std::size_t address, std::size_t bytes, std::size_t& base) const noexcept {
  auto after = ranges_.upper_bound(address);
  if (after == ranges_.begin()) return nullptr;
  const auto& [first, range] = *--after;
  if (!fits(address - first, bytes, range.bytes)) return nullptr;
  base = first;
  return &range;
}

}  // namespace berth
