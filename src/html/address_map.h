// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "berth/base/json.h"
#include "berth/export.h"
#include "html/fold.h"

// A map of memory as plain data: time from left to right, addresses from bottom to top, a box for everything
// that held bytes for some time. Input of the terminal, SVG and HTML drawings. Pure functions; any thread.
namespace berth::internal::html {

// Half open in both directions.
struct MapBox {
  std::uint64_t begin = 0;  // steps
  std::uint64_t end = 0;
  std::uint64_t offset = 0;
  std::uint64_t bytes = 0;
  std::string name = {};
  std::string note = {};  // one more line about it
  std::uint64_t id = 0;   // identifies it if the name is empty
  std::uint16_t tag = 0;  // index into AddressMap::tags, if not empty
};

// A horizontal line across the whole map.
struct MapMark {
  std::string label;
  std::uint64_t bytes = 0;
};

// A category of boxes, and the tone of its boxes.
struct MapTag {
  std::string name;
  std::uint8_t tone = 0;  // below kTones
};

struct AddressMap {
  std::string title = {};
  std::string noun = "boxes";  // plural, for captions
  std::string one = "box";     // a box without a name is called this
  std::string step = "step";   // unit of the time axis
  std::string kind = "tag";    // what a tag is called; empty: tooltips do not show it
  std::uint64_t begin = 0;     // the range of steps shown
  std::uint64_t end = 0;
  std::uint64_t bytes = 0;  // the addresses [0, bytes) are shown
  std::vector<MapBox> boxes = {};
  bool is_complete = true;  // no boxes were left out
  std::vector<MapMark> marks = {};
  std::vector<MapFold> folds = {};      // ascending
  std::vector<std::string> steps = {};  // what happens at each step, from `begin` on; may be empty
  std::vector<MapTag> tags = {};        // by MapBox::tag; empty: tones only distinguish neighbours
};

// From `step` until the next point, `bytes` bytes are live.
struct LivePoint {
  std::uint64_t step = 0;
  std::uint64_t bytes = 0;
  friend bool operator==(const LivePoint&, const LivePoint&) = default;
};

// Ascending, one for each step at which a box begins or ends. Sums saturate at 64 bits.
BERTH_EXPORT std::vector<LivePoint> live_bytes(std::span<const MapBox> boxes);

// Removes addresses that no box ever uses (html/fold.h), and updates `bytes` and `folds`.
BERTH_EXPORT void fold_addresses(AddressMap& map);

// A tone below `tones` for each box, so that touching boxes differ where that many tones allow it. O(boxes log
// boxes).
BERTH_EXPORT std::vector<std::uint8_t> box_tones(std::span<const MapBox> boxes, std::size_t tones);

// Its name, or `one` and its id.
BERTH_EXPORT std::string name_of(const AddressMap& map, const MapBox& box);

// "steps 3 to 7", "step 3": inclusive.
BERTH_EXPORT std::string life_text(const AddressMap& map, const MapBox& box);

// Everything known about a box, as several lines.
BERTH_EXPORT std::string box_text(const AddressMap& map, const MapBox& box);

// The map for the script of a report (assets/map.js), as one compact JSON object: columns of packed numbers
// (html/packed.h), one number for each box, ordered by begin. Equal pairs of offset and bytes are written once.
// Numbers that a double cannot hold are also in `exact`, as text.
BERTH_EXPORT std::string map_json(const AddressMap& map);

// Parts that other drawings use too.
void write_marks(JsonWriter& json, std::span<const MapMark> marks);
void write_folds(JsonWriter& json, std::span<const MapFold> folds);

}  // namespace berth::internal::html
