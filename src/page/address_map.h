// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "berth/export.h"

// A map of memory as plain data: time from left to right, addresses from below, a box for everything that held bytes for a while. The
// terminal, SVG and HTML drawings all start from it.
namespace berth::page {

// Half open in both directions.
struct MapBox {
  std::uint64_t begin = 0;  // steps
  std::uint64_t end = 0;
  std::uint64_t offset = 0;
  std::uint64_t bytes = 0;
  std::string name = {};
  std::string note = {};  // one more line about it
};

// A level that is drawn across the whole map.
struct MapMark {
  std::string label;
  std::uint64_t bytes = 0;
};

struct AddressMap {
  std::string title = {};
  std::string noun = "boxes";  // what they are, in captions
  std::uint64_t begin = 0;     // the steps that are shown
  std::uint64_t end = 0;
  std::uint64_t bytes = 0;  // the addresses that are shown begin at 0
  std::vector<MapBox> boxes = {};
  std::vector<MapMark> marks = {};
  std::vector<std::string> steps = {};  // what happens at each step, from `begin` on; may be empty
};

// From `step` on so many bytes are live, until the next point.
struct LivePoint {
  std::uint64_t step = 0;
  std::uint64_t bytes = 0;
  friend bool operator==(const LivePoint&, const LivePoint&) = default;
};

// Ascending, one for each step at which something begins or ends. More than 64 bits hold is shown as the most that they do.
BERTH_EXPORT std::vector<LivePoint> live_bytes(std::span<const MapBox> boxes);

// A tone below `tones` for each box, so that boxes that touch differ wherever so few tones allow it. O(boxes log boxes).
BERTH_EXPORT std::vector<std::uint8_t> box_tones(std::span<const MapBox> boxes, std::size_t tones);

// "steps 3 to 7", "step 3": the last one counts.
BERTH_EXPORT std::string life_text(const MapBox& box);

// All that is known of a box, in lines.
BERTH_EXPORT std::string box_text(const AddressMap& map, const MapBox& box);

// The map for the script of a page (page/script.h), as one compact object of arrays: one entry for each box in `begin`, `end`, `offset`,
// `size`, `tone` and `names`; notes by index. Numbers that a double cannot hold are strings.
BERTH_EXPORT std::string map_json(const AddressMap& map);

}  // namespace berth::page
