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

// A map of memory as plain data: time from left to right, addresses from below, a box for everything that held bytes for a while. The
// terminal, SVG and HTML drawings all start from it.
namespace berth::internal::html {

// Half open in both directions.
struct MapBox {
  std::uint64_t begin = 0;  // steps
  std::uint64_t end = 0;
  std::uint64_t offset = 0;
  std::uint64_t bytes = 0;
  std::string name = {};
  std::string note = {};  // one more line about it
  std::uint64_t id = 0;   // its name where that is empty
  std::uint16_t tag = 0;  // in AddressMap::tags, where there are any
};

// A level that is drawn across the whole map.
struct MapMark {
  std::string label;
  std::uint64_t bytes = 0;
};

// What boxes are for, and the tone of all that are for it.
struct MapTag {
  std::string name;
  std::uint8_t tone = 0;  // below kTones
};

struct AddressMap {
  std::string title = {};
  std::string noun = "boxes";  // what they are, in captions
  std::string one = "box";     // what one is called that has no name
  std::string step = "step";   // what the time counts
  std::string kind = "tag";    // what a tag is called; empty: it is not said of each
  std::uint64_t begin = 0;     // the steps that are shown
  std::uint64_t end = 0;
  std::uint64_t bytes = 0;  // the addresses that are shown begin at 0
  std::vector<MapBox> boxes = {};
  bool is_complete = true;  // these are all
  std::vector<MapMark> marks = {};
  std::vector<MapFold> folds = {};      // ascending
  std::vector<std::string> steps = {};  // what happens at each step, from `begin` on; may be empty
  std::vector<MapTag> tags = {};        // by MapBox::tag; empty: tones tell neighbours apart and mean nothing else
};

// From `step` on so many bytes are live, until the next point.
struct LivePoint {
  std::uint64_t step = 0;
  std::uint64_t bytes = 0;
  friend bool operator==(const LivePoint&, const LivePoint&) = default;
};

// Ascending, one for each step at which something begins or ends. More than 64 bits hold is shown as the most that they do.
BERTH_EXPORT std::vector<LivePoint> live_bytes(std::span<const MapBox> boxes);

// Leaves out what no box ever has (html/fold.h), and says so in `bytes` and `folds`.
BERTH_EXPORT void fold_addresses(AddressMap& map);

// A tone below `tones` for each box, so that boxes that touch differ wherever so few tones allow it. O(boxes log boxes).
BERTH_EXPORT std::vector<std::uint8_t> box_tones(std::span<const MapBox> boxes, std::size_t tones);

// Its name, or what it is called and its id.
BERTH_EXPORT std::string name_of(const AddressMap& map, const MapBox& box);

// "steps 3 to 7", "step 3": the last one counts.
BERTH_EXPORT std::string life_text(const AddressMap& map, const MapBox& box);

// All that is known of a box, in lines.
BERTH_EXPORT std::string box_text(const AddressMap& map, const MapBox& box);

// The map for the script of a page (assets/map.js), as one compact object: packed numbers (html/packed.h), one for each box in the order in
// which they begin. Equal places are written once. Numbers that a double cannot hold are in `exact` too, as text.
BERTH_EXPORT std::string map_json(const AddressMap& map);

// Parts that other drawings have too.
void write_marks(JsonWriter& json, std::span<const MapMark> marks);
void write_folds(JsonWriter& json, std::span<const MapFold> folds);

}  // namespace berth::internal::html
