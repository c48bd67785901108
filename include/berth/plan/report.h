// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string>

#include "berth/export.h"
#include "berth/plan/plan.h"

// Drawings of a plan: time from left to right, addresses from bottom to top, a rectangle for each buffer.
// Values of one buffer are one rectangle. Pure functions: safe to call from any thread.
namespace berth {

// A small picture of one device's arena for a terminal: `columns` × `rows` characters in block elements, with
// the live bytes over time above and labels of both axes, all within `columns`. Plain text, without colour;
// empty when the plan has no bytes there. Throws ArgumentError(out_of_bounds) for a device that is not in the
// graph.
BERTH_EXPORT std::string plan_picture(const Plan& plan, std::uint32_t device = 0, std::size_t columns = 72, std::size_t rows = 12);

// One drawing, a panel for each device that has bytes.
BERTH_EXPORT std::string plan_svg(const Plan& plan);

// A self-contained HTML report: the drawing with zoom; name, size, lifetime and producer of the buffer under
// the pointer; tables of the figures, the strategies and the buffers that are live at the peak. Light and dark,
// usable with the keyboard.
BERTH_EXPORT std::string plan_html(const Plan& plan, const std::string& title);

}  // namespace berth
