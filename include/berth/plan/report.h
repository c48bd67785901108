// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string>

#include "berth/export.h"
#include "berth/plan/plan.h"

// A plan to look at: time from left to right, addresses from below, a rectangle for each buffer. Values that share bytes are one rectangle.
namespace berth {

// A small picture for a terminal, of one device's arena: `columns` × `rows` characters in block elements, with the live bytes over time above
// and labels of both axes, all of it within `columns`. Plain text, without colour; empty when the plan has no bytes there. Throws
// ArgumentError(out_of_bounds) for a device that the graph has not.
BERTH_EXPORT std::string plan_picture(const Plan& plan, std::uint32_t device = 0, std::size_t columns = 72, std::size_t rows = 12);

// One drawing, a panel for each device that has bytes.
BERTH_EXPORT std::string plan_svg(const Plan& plan);

// One file that needs no network: the drawing with zoom, and for each buffer under the pointer its name, size, life and producer; the
// figures, the strategies and who stands at the peak as tables. Light and dark, usable with the keyboard.
BERTH_EXPORT std::string plan_html(const Plan& plan, const std::string& title);

}  // namespace berth
