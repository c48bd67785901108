// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "berth/plan/plan.h"
#include "html/html.h"

// What a page says of a plan beside the drawing.
namespace berth::internal::plan {

// A table names no more buffers than this: the largest.
inline constexpr std::size_t kMostRows = 500;

std::vector<html::Figure> plan_figures(const Plan& plan);
html::Table attempts_table(const Plan& plan);
html::Table peak_table(const Plan& plan, std::uint32_t device);
html::Table unplanned_table(const Plan& plan);

}  // namespace berth::internal::plan
