// SPDX-License-Identifier: Apache-2.0
#include "berth/storage/buffer.h"

#include <utility>

#include "base/text.h"
#include "berth/base/checked.h"
#include "berth/base/error.h"
#include "berth/device/backend.h"
#include "berth/device/registry.h"
#include "storage/buffer_state.h"
#include "storage/make.h"

namespace berth {

using namespace internal;
using namespace internal::storage;

namespace {

struct OwnerFacts {
  bool shared = false;
  bool mapped = false;
};

constexpr OwnerFacts facts_of(Owner owner) noexcept {
  switch (owner) {  // no default: the compiler reports an enumerator without a case
    case Owner::none:
    case Owner::allocator:
    case Owner::external:
    case Owner::dlpack: return {.shared = false, .mapped = false};
    case Owner::shared: return {.shared = true, .mapped = false};
    case Owner::file: return {.shared = false, .mapped = true};
  }
  return {};
}

}  // namespace

std::string_view to_string(Owner owner) noexcept {
  constexpr std::string_view kNames[] = {"none", "allocator", "external", "dlpack", "shared", "file"};
  return kNames[static_cast<std::size_t>(owner)];
}

void* Buffer::data() const noexcept { return state_ == nullptr ? nullptr : state_->block.data; }
std::size_t Buffer::size_bytes() const noexcept { return state_ == nullptr ? 0 : state_->block.bytes; }
Device Buffer::device() const noexcept { return state_ == nullptr ? Device() : state_->block.device; }
Owner Buffer::owner() const noexcept { return state_ == nullptr ? Owner::none : state_->owner; }
bool Buffer::is_shared() const noexcept {
  return facts_of(owner()).shared || (allocator() != nullptr && allocator()->backend().properties().abilities.shared);
}
bool Buffer::is_mapped() const noexcept { return facts_of(owner()).mapped; }
bool Buffer::is_read_only() const noexcept { return read_only_ || (state_ != nullptr && state_->read_only); }

Buffer Buffer::read_only() const noexcept {
  Buffer made = *this;
  made.read_only_ = true;
  return made;
}

long Buffer::use_count() const noexcept {
  if (state_ == nullptr || !state_->watched.load(std::memory_order_relaxed)) [[likely]]
    return state_.use_count();
  return BufferMaker::count_handles(*this);
}

Block Buffer::block() const noexcept { return allocator() == nullptr ? Block() : state_->block; }
Allocator* Buffer::allocator() const noexcept { return state_ == nullptr ? nullptr : state_->allocator; }

std::shared_ptr<const void> Buffer::keep_alive() const {
  if (state_ == nullptr) return nullptr;
  // release: a thread that sees that the pin is gone also sees what was done through the address.
  auto unpin = [state = state_](const void*) { state->pins.fetch_sub(1, std::memory_order_release); };
  state_->pins.fetch_add(1, std::memory_order_relaxed);
  return {static_cast<const void*>(state_.get()), std::move(unpin)};  // if this throws, it calls the deleter
}

void Buffer::used_on(StreamRef stream) const {
  if (allocator() != nullptr) allocator()->used_on(state_->block, stream);
}

StridedSpan Buffer::span() const {
  return {data(), DType::u8, {static_cast<std::int64_t>(size_bytes())}, {1}, device(), keep_alive(), is_read_only()};
}

Event Buffer::copy_from(const Buffer& source, const CopyOptions& options, Site site) const {
  if (source.size_bytes() != size_bytes()) {
    throw ArgumentError(ErrorCode::size_mismatch,
                        {text::join("copying a buffer of ", source.size_bytes(), " bytes into one of ", size_bytes()), "the sizes differ",
                         "make the target as large as the source"},
                        {{"need", source.size_bytes()}, {"have", size_bytes()}});
  }
  BufferMaker::before_touch(source, 0, source.size_bytes(), false);
  if (!is_read_only()) BufferMaker::before_touch(*this, 0, size_bytes(), true);
  return berth::copy(source.span(), span(), options, site);
}

Event Buffer::fill(unsigned char value, const CopyOptions& options, Site site) const {
  if (!is_read_only()) BufferMaker::before_touch(*this, 0, size_bytes(), true);
  return berth::fill(span(), value, options, site);
}

Allocator& require_allocator(Allocator* allocator) {
  if (allocator != nullptr) return *allocator;
  throw ArgumentError(ErrorCode::invalid_argument, {"allocating from an allocator", "there is none: the pointer is null",
                                                    "pass one, such as direct(\"cpu\"), or a device"});
}

Request internal::storage::request_of(std::size_t bytes, const AllocationOptions& options, const Allocator& allocator,
                                      const Site& site) noexcept {
  if (options.padded) {
    const std::size_t alignment = options.alignment != 0 ? options.alignment : allocator.backend().properties().alignment;
    if (is_power_of_two(alignment)) bytes = try_align_up(bytes, alignment).value_or(bytes);  // others are refused later
  }
  return {
      .bytes = bytes, .alignment = options.alignment, .stream = options.stream, .tag = options.tag, .site = site, .zeroed = options.zeroed};
}

Buffer make_buffer(std::size_t bytes, const std::shared_ptr<Allocator>& allocator, const AllocationOptions& options, Site site) {
  return BufferMaker::make(request_of(bytes, options, require_allocator(allocator.get()), site), *allocator, allocator);
}

Buffer make_buffer(std::size_t bytes, Device device, const AllocationOptions& options, Site site) {
  Allocator& allocator = *default_allocator(device);
  return BufferMaker::make(request_of(bytes, options, allocator, site), allocator, nullptr);
}

Buffer wrap_buffer(void* data, std::size_t bytes, Device device, Deleter deleter, const WrapOptions& options, Site site) {
  Adoption adoption(data, std::move(deleter));
  backend(device);
  if (bytes > kMaxBytes) {
    throw ArgumentError(ErrorCode::size_overflow,
                        {text::join("wrapping ", bytes, " bytes"), "no address space is that large", "check the size"}, {{"bytes", bytes}});
  }
  if (data == nullptr && bytes != 0) {
    throw ArgumentError(
        ErrorCode::invalid_argument,
        {text::join("wrapping ", bytes, " bytes at a null pointer"), "there is no memory at it", "pass an address, or 0 bytes"},
        {{"bytes", bytes}});
  }
  return BufferMaker::wrap(data, bytes, device, adoption.deleter, options.read_only, Owner::external, site);
}

bool BufferMaker::is_pinned_down(const Buffer& buffer) noexcept {
  // acquire: what was done through the pinned address is visible.
  return buffer.state_->pins.load(std::memory_order_acquire) != 0;
}

std::unique_ptr<BufferGuard>& BufferMaker::guard(const Buffer& buffer) noexcept { return buffer.state_->guard; }

void BufferMaker::ask_guard(const Buffer& buffer, std::size_t offset, std::size_t bytes, bool write) {
  const BufferGuard* const guard = buffer.state_->guard.get();
  if (guard != nullptr && bytes != 0) guard->before_touch(offset, bytes, write);
}

bool BufferMaker::is_borrowed(const Buffer& buffer) noexcept {
  return buffer.owner() == Owner::external && buffer.state_->deleter == nullptr;
}

void BufferMaker::set_page_lock(const Buffer& buffer, std::shared_ptr<const void> lock) noexcept {
  buffer.state_->page_lock = std::move(lock);
}

bool BufferMaker::is_page_locked(const Buffer& buffer) noexcept { return buffer && buffer.state_->page_lock != nullptr; }

std::size_t BufferMaker::used_bytes(const Buffer& buffer) noexcept { return buffer.state_->block.bytes - buffer.state_->spare_bytes; }

void BufferMaker::set_used_bytes(const Buffer& buffer, std::size_t bytes) noexcept {
  buffer.state_->spare_bytes = buffer.state_->block.bytes - bytes;
}

bool BufferMaker::grow_in_place(const Buffer& buffer, std::size_t bytes) noexcept {
  Buffer::State& state = *buffer.state_;
  const std::size_t before = state.block.bytes;
  if (!state.allocator->try_grow(state.block, bytes)) return false;
  state.spare_bytes += bytes - before;
  return true;
}

void BufferMaker::exchange(const Buffer& a, const Buffer& b) noexcept {
  Buffer::State& one = *a.state_;
  Buffer::State& other = *b.state_;
  std::swap(one.block, other.block);
  std::swap(one.spare_bytes, other.spare_bytes);
  std::swap(one.owner, other.owner);
  one.deleter.swap(other.deleter);
  one.page_lock.swap(other.page_lock);
  std::swap(one.allocator, other.allocator);
  one.kept_alive.swap(other.kept_alive);
}

}  // namespace berth
