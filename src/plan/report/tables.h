// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "berth/plan/plan.h"
#include "html/html.h"

// The figures and tables of a plan's report.
namespace berth::internal::plan {

// Limit on the rows of a table; the largest buffers are kept.
inline constexpr std::size_t kMostRows = 500;

std::vector<html::Figure> plan_figures(const Plan& plan);
html::Table attempts_table(const Plan& plan);
html::Table peak_table(const Plan& plan, std::uint32_t device);
html::Table unplanned_table(const Plan& plan);

// What edges buy in a parallel plan: bars of bytes that become shorter, and of the longest path that become longer.
html::Table trades_table(const Plan& plan);

}  // namespace berth::internal::plan
