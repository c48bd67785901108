// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "plan/pack/packer.h"

// Orders in which to pack buffers. In all of them the fixed ones come first, and ties go to the larger area,
// then to the earlier begin, then by number: the same on every machine.
namespace berth::internal::plan {

enum class Order : std::uint8_t {
  size,       // largest first, ties by begin
  area,       // bytes × steps
  life,       // longest first
  load,       // by the peak of live bytes during its lifetime
  conflicts,  // by the number of buffers with overlapping lifetimes
  time,       // by begin, the largest first
};

std::vector<std::uint32_t> order_buffers(const Part& part, Order order);

}  // namespace berth::internal::plan
