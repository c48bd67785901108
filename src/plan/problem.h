// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

// The packing problem and its solution: rectangles with fixed lifetimes that are to be given offsets. There may
// be millions of buffers, so each is small.
namespace berth::internal::plan {

// A power of two, stored as its logarithm in one byte. Converts to and from the number.
class Alignment {
 public:
  constexpr Alignment() = default;
  // REQUIRES: a power of two.
  constexpr Alignment(std::size_t bytes) : shift_(static_cast<std::uint8_t>(std::countr_zero(bytes))) {}
  constexpr operator std::size_t() const noexcept { return std::size_t{1} << shift_; }

 private:
  std::uint8_t shift_ = 0;
};

// An optional offset in eight bytes. SIZE_MAX stands for none; the planner refuses offsets that large.
class MaybeOffset {
 public:
  constexpr MaybeOffset() = default;
  constexpr MaybeOffset(std::size_t offset) : offset_(offset) {}
  constexpr MaybeOffset(const std::optional<std::size_t>& offset) : offset_(offset.value_or(kNone)) {}

  constexpr bool has_value() const noexcept { return offset_ != kNone; }
  constexpr explicit operator bool() const noexcept { return has_value(); }
  constexpr std::size_t operator*() const noexcept { return offset_; }  // REQUIRES: there is one
  constexpr std::size_t value_or(std::size_t other) const noexcept { return has_value() ? offset_ : other; }
  constexpr operator std::optional<std::size_t>() const { return has_value() ? std::optional(offset_) : std::nullopt; }

 private:
  static constexpr std::size_t kNone = SIZE_MAX;
  std::size_t offset_ = kNone;
};

// A buffer with the lifetime [begin, end), in steps.
struct PackBuffer {
  std::size_t bytes = 0;  // a multiple of the alignment
  std::uint32_t begin = 0;
  std::uint32_t end = 0;
  Alignment alignment = {};
  std::uint16_t device = 0;  // a packer sees the buffers of one device only
  MaybeOffset fixed = {};
};
static_assert(sizeof(PackBuffer) == 32);

// The offsets of buffers, in their order, and the end of the highest.
struct Packing {
  std::vector<std::size_t> offsets = {};
  std::size_t peak_bytes = 0;
};

}  // namespace berth::internal::plan
