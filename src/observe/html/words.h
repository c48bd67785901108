// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "html/html.h"

// What the pages of this folder say in the same words.
namespace berth::internal::observe {

inline constexpr std::string_view kUntagged = "no tag";
inline constexpr std::string_view kUnknown = "unknown";

// 0 when there is no whole.
double share(std::uint64_t part, std::uint64_t whole);

std::string percent(double share);
html::TableCell percent_cell(double share);

// A bar as long as the part is of the whole.
html::TableCell bar_cell(std::uint64_t part, std::uint64_t whole, std::string_view colour);

// "3.2 s": three digits that matter, as the script of a page has it.
std::string duration_text(std::uint64_t ns);

}  // namespace berth::internal::observe
