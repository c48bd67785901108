// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

// The script of page/html.h, in parts that stand in one scope in this order. It loads nothing, keeps nothing, and puts text from data into
// the page only as text.
namespace berth::page {

extern const std::string_view kPageScript;  // bytes for people, light and dark, tables that sort
extern const std::string_view kViewScript;  // what of a map is seen, and its pixels: functions of data alone
extern const std::string_view kMapScript;   // the map on its canvas: drawing, pointer, keys

}  // namespace berth::page
