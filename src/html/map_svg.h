// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>

#include "berth/export.h"
#include "html/address_map.h"

// Address maps as one SVG drawing: a panel for each, with the live bytes over time above it. Pure functions;
// any thread.
namespace berth::internal::html {

// A panel with more boxes than this draws only the visible ones, and the others together as a shadow, with a
// caption that says so.
inline constexpr std::size_t kDrawAll = 5000;

BERTH_EXPORT std::string maps_svg(std::span<const AddressMap> maps, std::string_view label);

}  // namespace berth::internal::html
