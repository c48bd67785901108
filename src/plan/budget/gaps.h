// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "berth/plan/budget.h"

// Gaps in which values are idle: between two uses that are not adjacent, while no other value of their buffer
// is needed.
namespace berth::internal::plan {

// One way to close a gap.
struct Gap {
  BudgetItem item;
  double cost = 0;  // of doing it, in bytes read and written; bytes moved between devices count more
};

// The gaps of values on the device, by value and time. A gap that can be closed in both ways is listed twice.
std::vector<Gap> find_gaps(const Plan& plan, const BudgetOptions& options);

// A lower bound of every plan for the device: what one node reads and writes, or all outputs at the end,
// without values that may reuse other bytes.
std::size_t least_of_nodes(const Plan& plan, std::uint32_t device);

}  // namespace berth::internal::plan
