// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string>

#include "html/address_map.h"

namespace berth::internal::plan {

// An address map in characters: `rows` lines for the addresses and a few more for the live bytes and the
// labels; no line is wider than `columns`. A cell has the shade of the box that covers most of it, or a dot
// when less than half of it is covered.
std::string draw_picture(const html::AddressMap& map, std::size_t columns, std::size_t rows);

}  // namespace berth::internal::plan
