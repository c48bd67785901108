// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>

// What a CUDA driver's calls for one physical handle take, by the handle's size: medians on an H200 with driver 580.
// Between the lengths that were
// measured, lines are drawn.
namespace berth::bench {

enum class DriverCall : std::uint8_t { create, map, access, unmap, release };

double driver_call_us(DriverCall call, std::size_t handle_bytes) noexcept;

// Calls on handles, and their time.
struct DriverCalls {
  std::uint64_t made = 0;
  std::uint64_t moved = 0;  // mapped at another address, and unmapped at the old one
  std::uint64_t given_back = 0;
  double us = 0;

  void make(std::size_t handle_bytes) noexcept;
  void map_again(std::size_t handle_bytes) noexcept;
  void unmap_echo(std::size_t handle_bytes) noexcept;
  void give_back(std::size_t handle_bytes) noexcept;
};

}  // namespace berth::bench
