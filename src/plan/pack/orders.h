// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "plan/pack/packer.h"

// Orders in which to place buffers. In all of them the fixed ones come first, and ties go to what is larger in area, then to what begins
// earlier, then by number: the same on every machine.
namespace berth::internal::plan {

enum class Order : std::uint8_t {
  size,       // largest first, of equal ones the earliest
  area,       // bytes × steps
  life,       // longest first
  load,       // by the most bytes that are live at once during its life
  conflicts,  // by how many others live with it
  time,       // as they begin, the largest first
};

std::vector<std::uint32_t> order_buffers(const Part& part, Order order);

}  // namespace berth::internal::plan
