// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <optional>

#include "berth/device/backend.h"

// Filling memory with one byte, and finding who wrote over it. Where the host may not touch the memory, its backend does both.
namespace berth {

constexpr unsigned char kCanary = 0xfb;  // behind a block
constexpr unsigned char kPoison = 0xdb;  // in a freed one

// With a stream it happens in the stream's order.
Status write_pattern(Backend& backend, void* target, std::size_t bytes, unsigned char value, StreamRef stream) noexcept;

// The offset of the first byte that is another; nothing when there is none, or the backend cannot read them.
std::optional<std::size_t> find_change(Backend& backend, const void* source, std::size_t bytes, unsigned char value) noexcept;

}  // namespace berth
