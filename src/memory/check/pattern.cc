// SPDX-License-Identifier: Apache-2.0
#include "memory/check/pattern.h"

#include <algorithm>
#include <cstring>

namespace berth {

namespace {

std::optional<std::size_t> find_on_host(const unsigned char* source, std::size_t bytes, unsigned char value) noexcept {
  // Each byte against the next one is a comparison that the C library does in large steps.
  if (bytes == 0 || (source[0] == value && std::memcmp(source, source + 1, bytes - 1) == 0)) return std::nullopt;
  const auto* const found = std::find_if(source, source + bytes, [value](unsigned char byte) { return byte != value; });
  return static_cast<std::size_t>(found - source);
}

}  // namespace

Status write_pattern(Backend& backend, void* target, std::size_t bytes, unsigned char value, StreamRef stream) noexcept {
  if (backend.properties().abilities.host_access && !stream) {
    std::memset(target, value, bytes);
    return {};
  }
  const std::byte pattern[] = {std::byte{value}};
  return backend.fill(target, bytes, pattern, stream);
}

std::optional<std::size_t> find_change(Backend& backend, const void* source, std::size_t bytes, unsigned char value) noexcept {
  const auto* const from = static_cast<const unsigned char*>(source);
  if (backend.properties().abilities.host_access) return find_on_host(from, bytes, value);
  unsigned char piece[4096];
  for (std::size_t at = 0; at < bytes; at += sizeof piece) {
    const std::size_t length = std::min(sizeof piece, bytes - at);
    const Transfer transfer{
        .target = piece, .target_device = Device(), .source = from + at, .source_device = backend.device(), .bytes = length};
    if (!backend.copy(transfer, {})) return std::nullopt;
    if (const auto found = find_on_host(piece, length, value)) return at + *found;
  }
  return std::nullopt;
}

}  // namespace berth
