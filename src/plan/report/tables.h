// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "berth/plan/plan.h"
#include "page/html.h"

// What a page says of a plan beside the drawing.
namespace berth::planning {

// A table names no more buffers than this: the largest.
inline constexpr std::size_t kMostRows = 500;

std::vector<page::Figure> plan_figures(const Plan& plan);
page::Table attempts_table(const Plan& plan);
page::Table peak_table(const Plan& plan, std::uint32_t device);
page::Table unplanned_table(const Plan& plan);

}  // namespace berth::planning
