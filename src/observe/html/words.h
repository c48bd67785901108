// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "html/html.h"

// Wording and table cells that the reports of this directory have in common.
namespace berth::internal::observe {

inline constexpr std::string_view kUntagged = "no tag";
inline constexpr std::string_view kUnknown = "unknown";

// part / whole; 0 when the whole is 0.
double share(std::uint64_t part, std::uint64_t whole);

std::string percent(double share);
html::TableCell percent_cell(double share);

// The cells of a row, whose text is counted in the thread's allowance: a name from a file may be long, and in many rows.
std::vector<html::TableCell> counted(std::vector<html::TableCell> cells);

// A bar whose length is part / whole.
html::TableCell bar_cell(std::uint64_t part, std::uint64_t whole, std::string_view colour);

// "3.20 s": three significant digits, as the script of a report formats it.
std::string duration_text(std::uint64_t ns);

}  // namespace berth::internal::observe
