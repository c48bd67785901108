// SPDX-License-Identifier: Apache-2.0
#include "memory/check/marks.h"

#include <algorithm>
#include <cstring>

#include "berth/base/checked.h"
#include "berth/device/backend.h"
#include "memory/inherited.h"

namespace berth::internal::memory {

namespace {

constexpr unsigned char kCanary = 0xfb;
constexpr unsigned char kPoison = 0xdb;

std::optional<std::size_t> find_on_host(const unsigned char* source, std::size_t bytes, unsigned char value) noexcept {
  // Comparing each byte with the next one is a memcmp, which the C library vectorizes.
  if (bytes == 0 || (source[0] == value && std::memcmp(source, source + 1, bytes - 1) == 0)) return std::nullopt;
  const auto* const found = std::find_if(source, source + bytes, [value](unsigned char byte) { return byte != value; });
  return static_cast<std::size_t>(found - source);
}

std::byte* end_of(const Block& block) noexcept { return static_cast<std::byte*>(block.data) + block.bytes; }

// From the block's end to the end of its memory.
std::size_t room_behind(const LedgerEntry& entry, const Block& block) noexcept {
  const std::byte* const last = entry.guard ? entry.guard.end() : end_of(entry.below);
  return static_cast<std::size_t>(last - end_of(block));
}

}  // namespace

Marks::Marks(Backend& backend, std::size_t canary_bytes) noexcept
    : backend_(backend), canary_bytes_(canary_bytes), host_access_(backend.properties().abilities.host_access) {}

std::optional<std::size_t> Marks::with_canary(const Request& request) const noexcept {
  if (canary_bytes_ == 0) return request.bytes;
  const auto bytes = try_add(request.bytes, canary_bytes_);
  const auto rounded = bytes ? try_align_up(*bytes, std::min(request.alignment, backend_.properties().alignment)) : std::nullopt;
  return rounded && *rounded <= kMaxBytes ? rounded : std::nullopt;
}

// A forked child does not touch what it inherited of a device that does not survive fork.
bool Marks::can_touch(bool held) const noexcept { return !is_inherited(origin_, backend_) && (host_access_ || !held); }

bool Marks::is_idle(const LedgerEntry& entry, bool held) noexcept {
  if (entry.has_other_streams) return false;
  if (!entry.stream) return true;
  if (held) return false;
  try {
    return entry.stream.record().query();
  } catch (...) {  // a lost device, a stream from before fork; a third party's may throw anything
    return false;
  }
}

void Marks::finish(const LedgerEntry& entry) noexcept {
  if (!entry.was_written) return;
  try {
    entry.stream.record().wait();
  } catch (...) {  // an exception of the work stays in the stream, for its owner
  }
}

Status Marks::clear(LedgerEntry& entry, void* data, std::size_t bytes, bool held) const noexcept {
  return write(entry, data, bytes, 0, held);
}

void Marks::add_canary(LedgerEntry& entry, const Block& block, bool held) const noexcept {
  if (canary_bytes_ == 0 || !can_touch(held)) return;
  entry.has_canary = write(entry, end_of(block), room_behind(entry, block), kCanary, held).ok();
}

void Marks::poison(LedgerEntry& entry, bool held) const noexcept {
  if (!can_touch(held) || !is_idle(entry, held)) return;
  entry.has_poison = write_now(entry.block.data, entry.block.bytes, kPoison).ok();
}

std::optional<std::size_t> Marks::change_of_canary(LedgerEntry& entry, bool held) const noexcept {
  if (!entry.has_canary || !can_touch(held) || !is_idle(entry, held)) return std::nullopt;
  entry.has_canary = false;
  const auto found = find_other(end_of(entry.block), room_behind(entry, entry.block), kCanary);
  return found ? std::optional(entry.block.bytes + *found) : std::nullopt;
}

std::optional<std::size_t> Marks::change_of_poison(LedgerEntry& entry, bool held) const noexcept {
  if (!entry.has_poison || !can_touch(held)) return std::nullopt;
  entry.has_poison = false;
  return find_other(entry.block.data, entry.block.bytes, kPoison);
}

Status Marks::write(LedgerEntry& entry, void* target, std::size_t bytes, unsigned char value, bool held) const noexcept {
  if (is_idle(entry, held)) return write_now(target, bytes, value);
  entry.was_written = true;
  return write_in_order(target, bytes, value, entry.stream);
}

Status Marks::write_now(void* target, std::size_t bytes, unsigned char value) const noexcept {
  if (!host_access_) return write_in_order(target, bytes, value, {});
  std::memset(target, value, bytes);
  return {};
}

Status Marks::write_in_order(void* target, std::size_t bytes, unsigned char value, StreamRef stream) const noexcept {
  const std::byte pattern[] = {std::byte{value}};
  return backend_.fill(target, bytes, pattern, stream);
}

std::optional<std::size_t> Marks::find_other(const void* source, std::size_t bytes, unsigned char value) const noexcept {
  const auto* const from = static_cast<const unsigned char*>(source);
  if (host_access_) return find_on_host(from, bytes, value);
  unsigned char piece[4096];
  for (std::size_t at = 0; at < bytes; at += sizeof piece) {
    const std::size_t length = std::min(sizeof piece, bytes - at);
    const Transfer transfer{
        .target = piece, .target_device = Device(), .source = from + at, .source_device = backend_.device(), .bytes = length};
    if (!backend_.copy(transfer, {})) return std::nullopt;
    if (const auto found = find_on_host(piece, length, value)) return at + *found;
  }
  return std::nullopt;
}

}  // namespace berth::internal::memory
