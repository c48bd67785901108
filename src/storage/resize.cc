// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <string>
#include <utility>

#include "base/text.h"
#include "berth/base/checked.h"
#include "berth/base/error.h"
#include "berth/copy/copy.h"
#include "berth/storage/create.h"
#include "berth/storage/storage.h"
#include "storage/make.h"

// Storages that grow.
namespace berth {

using namespace internal;
using namespace internal::storage;

namespace {

[[noreturn]] void throw_not_resizable(const Storage& storage, std::string why, std::string help) {
  throw DeviceError(ErrorCode::unsupported,
                    {text::join("resizing a storage of shape ", storage.shape().to_string()), std::move(why), std::move(help)},
                    {{"owner", to_string(storage.buffer().owner())}});
}

// What a buffer grows to: by a half at least. With a factor below the golden ratio, the blocks that it has left
// together come to be as long as the one that it needs next, if they are neighbours.
std::size_t room_for(std::size_t need, std::size_t have) noexcept {
  return std::max(need, std::min(try_add(have, have / 2).value_or(need), kMaxBytes));
}

// A block of that many bytes, rather with room than without. Throws OutOfMemory.
Buffer larger_block(const Buffer& old, std::size_t need, StreamRef stream, const Site& site) {
  const Block block = old.block();
  const AllocationOptions options{.alignment = block.alignment, .tag = block.tag, .stream = stream};
  Allocator& allocator = *old.allocator();
  const std::size_t room = room_for(need, block.bytes);
  if (block.bytes != 0 && room != need) {
    if (auto made = BufferMaker::try_make(request_of(room, options, allocator, site), allocator, allocator.shared_from_this()))
      return *std::move(made);
  }
  return BufferMaker::make(request_of(need, options, allocator, site), allocator, allocator.shared_from_this());
}

void grow_buffer(const Buffer& buffer, std::size_t need, StreamRef stream, const Site& site) {
  const std::size_t have = buffer.size_bytes();
  if (BufferMaker::grow_in_place(buffer, room_for(need, have)) || BufferMaker::grow_in_place(buffer, need)) return;
  const Buffer moved = larger_block(buffer, need, stream, site);
  // As bare bytes: a copy that holds the buffer would have its old block when that has become the other buffer's.
  BufferMaker::set_used_bytes(moved, BufferMaker::used_bytes(buffer));
  if (have != 0) copy_bytes(moved.data(), moved.device(), buffer.data(), buffer.device(), have, {.stream = stream}, site);
  BufferMaker::exchange(buffer, moved);
}

}  // namespace

// Throws before anything changes.
void Storage::require_resizable(const Shape& wanted) const {
  require_writable("resizing");
  if (is_shared() || (buffer_ && BufferMaker::guard(buffer_) != nullptr && !is_mapped()))
    throw_not_resizable(*this, "other processes can have its bytes", "to(\"cpu\") gives a copy that can grow");
  if (buffer_.allocator() == nullptr)
    throw_not_resizable(*this, "its bytes are not those of an allocator", "clone() gives a copy that can grow");
  if (offset_ != 0 || !is_contiguous() || size_bytes() < BufferMaker::used_bytes(buffer_)) {
    throw ArgumentError(ErrorCode::not_viewable,
                        {text::join("resizing a storage of shape ", shape_.to_string(), " to ", wanted.to_string()),
                         "it is a view of a part of its buffer, or in another order, and what lies behind it belongs to others",
                         "clone() gives a copy of these elements alone, which can grow"},
                        {{"have", size_bytes()}, {"buffer", buffer_.size_bytes()}});
  }
  if (BufferMaker::is_pinned_down(buffer_)) {
    throw AccessError(ErrorCode::busy, {text::join("resizing a storage of shape ", shape_.to_string()),
                                        "a DLPack export, a copy that is under way, or keep_alive() has its address",
                                        "wait until nobody else has the address, or resize a clone()"});
  }
}

void Storage::resize(const Shape& wanted, StreamRef stream, Site site) {
  const std::size_t need = wanted.size_bytes(dtype_);
  require_resizable(wanted);
  if (need > buffer_.size_bytes()) grow_buffer(buffer_, need, stream, site);
  Storage made = StorageMaker::make(buffer_, dtype_, wanted, Strides::contiguous(wanted), 0, need / berth::size_bytes(dtype_));
  BufferMaker::set_used_bytes(buffer_, need);
  *this = std::move(made);
}

}  // namespace berth
