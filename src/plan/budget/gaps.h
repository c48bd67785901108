// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "berth/plan/budget.h"

// Where values lie idle: between two uses with steps in between, in which nothing else needs their bytes.
namespace berth::internal::plan {

// What could be done about one of them.
struct Gap {
  BudgetItem item;
  double cost = 0;  // of doing it, in bytes read and written; those that go over to another device count more
};

// Of the values on the device, in the order of values and time. A gap that can be closed in both ways is there twice.
std::vector<Gap> find_gaps(const Plan& plan, const BudgetOptions& options);

// The most that one node needs at once on the device, in every plan: what it reads and writes; or that all outputs need in the end. Without
// what may share bytes.
std::size_t least_of_nodes(const Plan& plan, std::uint32_t device);

}  // namespace berth::internal::plan
