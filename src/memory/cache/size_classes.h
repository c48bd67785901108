// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>

// The size classes of small blocks: eight to each doubling, so that internal fragmentation is at most an
// eighth. Used by the pool, its slabs and its thread caches. Immutable after construction.
//
//     64 128 192 … 1024 | 1152 1280 … 2048 | 2304 … 4096 | … | … 128 KiB
//
// A device with a coarser alignment uses the classes that are multiples of it; above eight times the alignment,
// all of them are.
namespace berth::internal::memory {

inline constexpr std::size_t kSmallLimit = std::size_t{128} << 10;  // larger blocks get an extent of their own
inline constexpr std::size_t kSlabGrain = std::size_t{16} << 10;    // slabs begin and end at multiples of it

using SizeClass = std::uint32_t;

struct ClassInfo {
  std::uint32_t bytes = 0;       // of a block
  std::uint32_t slab_bytes = 0;  // a multiple of kSlabGrain
  std::uint32_t blocks = 0;      // in a slab
};

class SizeClasses {
 public:
  static constexpr SizeClass kMost = 72;

  explicit SizeClasses(std::size_t alignment) noexcept;

  SizeClass count() const noexcept { return count_; }
  const ClassInfo& operator[](SizeClass c) const noexcept { return info_[c]; }

  // The smallest class that holds that many bytes. REQUIRES: 0 < bytes <= kSmallLimit.
  SizeClass find(std::size_t bytes) const noexcept { return of_last_byte((bytes - 1) | (alignment_ - 1)); }
  // From the offset of the block's last byte. The look-up depends on no earlier load of a table's address or of
  // a shift.
  static SizeClass of_last_byte(std::size_t last) noexcept { return kByUnits[last / kUnit]; }

  // The smallest class whose blocks all have the alignment; count() when there is none. REQUIRES: as find;
  // alignment is a power of two.
  SizeClass find_aligned(std::size_t bytes, std::size_t alignment) const noexcept;

  static constexpr std::size_t kUnit = 64;

 private:
  // Indexed by units, less one. Up to 15 each is its own class; above, the three bits behind the leading one
  // choose among eight.
  static constexpr auto kByUnits = [] {
    std::array<std::uint8_t, kSmallLimit / kUnit> classes{};
    for (std::size_t units = 0; units < classes.size(); ++units) {
      const auto doubling = static_cast<unsigned>(std::bit_width(units | 15)) - 4;
      classes[units] = static_cast<std::uint8_t>(8 * doubling + (units >> doubling));
    }
    return classes;
  }();

  std::size_t alignment_;
  SizeClass count_ = 0;
  std::array<ClassInfo, kMost> info_{};
};

}  // namespace berth::internal::memory
