// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>

// Identifies a block in a trace: its allocator and its serial number.
namespace berth::internal::observe {

struct BlockName {
  std::uint64_t allocator_id;
  std::uint64_t serial;

  friend bool operator==(const BlockName&, const BlockName&) = default;
};

struct BlockNameHash {
  std::size_t operator()(const BlockName& name) const noexcept { return (name.allocator_id * 0x9e3779b97f4a7c15ULL) ^ name.serial; }
};

}  // namespace berth::internal::observe
