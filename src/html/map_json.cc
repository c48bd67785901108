// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <numeric>
#include <utility>

#include "base/text.h"
#include "berth/base/json.h"
#include "html/address_map.h"
#include "html/packed.h"
#include "html/palette.h"

namespace berth::internal::html {

namespace {

constexpr std::uint64_t kMostExact = std::uint64_t{1} << 53;  // up to this value every integer is exact in
                                                              // JavaScript

void write_number(JsonWriter& json, std::uint64_t number) {
  if (number <= kMostExact)
    json.value(number);
  else
    json.value(std::to_string(number));
}

// Writes the map column by column, its boxes in `order_`.
class MapWriter {
 public:
  MapWriter(JsonWriter& json, const AddressMap& map) : json_(json), map_(map), order_(map.boxes.size()) {
    std::iota(order_.begin(), order_.end(), std::size_t{0});
    std::ranges::stable_sort(order_, {}, [&](std::size_t i) { return map.boxes[i].begin; });
  }

  void write() {
    write_lives();
    write_positions();
    write_tones();
    write_names();
    write_exact();
  }

 private:
  using Position = std::pair<std::uint64_t, std::uint64_t>;  // offset and bytes

  const MapBox& box(std::size_t at) const { return map_.boxes[order_[at]]; }

  template <class Value>
  void pack(std::string_view name, const Value& value) {
    Packed packed;
    for (std::size_t at = 0; at < order_.size(); ++at) packed.add(value(box(at)));
    json_.member(name, packed.take());
  }

  void write_lives() {
    std::uint64_t before = 0;
    pack("begin", [&](const MapBox& one) { return one.begin - std::exchange(before, one.begin); });
    pack("lives", [](const MapBox& one) { return one.end - std::min(one.begin, one.end); });
  }

  // Repetitive programs use the same positions many times, so each is written once.
  void write_positions() {
    std::vector<Position> positions;
    positions.reserve(order_.size());
    for (const MapBox& one : map_.boxes) positions.emplace_back(one.offset, one.bytes);
    std::ranges::sort(positions);
    positions.erase(std::unique(positions.begin(), positions.end()), positions.end());
    Packed offsets;
    Packed bytes;
    std::uint64_t before = 0;
    for (const Position& position : positions) {
      offsets.add(position.first - std::exchange(before, position.first));
      bytes.add(position.second);
    }
    json_.member("place_offsets", offsets.take()).member("place_bytes", bytes.take());
    pack("places", [&](const MapBox& one) {
      return static_cast<std::uint64_t>(std::ranges::lower_bound(positions, Position(one.offset, one.bytes)) - positions.begin());
    });
  }

  void write_tones() {
    if (map_.tags.empty()) {
      const std::vector<std::uint8_t> tones = box_tones(map_.boxes, kTones);
      pack("tone", [&](const MapBox& one) { return tones[static_cast<std::size_t>(&one - map_.boxes.data())]; });
      return;
    }
    pack("tag", [](const MapBox& one) { return one.tag; });
    json_.key("tags").begin_array();
    for (const MapTag& tag : map_.tags) json_.value(text::printable(tag.name));
    json_.end_array().key("tag_tones").begin_array();
    for (const MapTag& tag : map_.tags) json_.value(tag.tone);
    json_.end_array();
  }

  void write_names() {
    if (std::ranges::all_of(map_.boxes, [](const MapBox& one) { return one.name.empty() && one.id <= kMostExact; })) {
      write_ids();
    } else {
      json_.key("names").begin_array();
      for (std::size_t at = 0; at < order_.size(); ++at) json_.value(text::printable(name_of(map_, box(at))));
      json_.end_array();
    }
    json_.key("notes").begin_object();
    for (std::size_t at = 0; at < order_.size(); ++at)
      if (!box(at).note.empty()) json_.member(std::to_string(at), text::printable(box(at).note));
    json_.end_object().key("steps").begin_array();
    for (const std::string& step : map_.steps) json_.value(text::printable(step));
    json_.end_array();
  }

  void write_ids() {
    Packed ids;
    std::uint64_t before = 0;
    for (std::size_t at = 0; at < order_.size(); ++at) ids.add_signed(box(at).id - std::exchange(before, box(at).id));
    json_.member("ids", ids.take());
  }

  void write_exact() {
    json_.key("exact").begin_object();
    for (std::size_t at = 0; at < order_.size(); ++at) {
      if (box(at).offset > kMostExact) json_.member(text::join("offset ", at), std::to_string(box(at).offset));
      if (box(at).bytes > kMostExact) json_.member(text::join("size ", at), std::to_string(box(at).bytes));
    }
    json_.end_object();
  }

  JsonWriter& json_;
  const AddressMap& map_;
  std::vector<std::size_t> order_;
};

}  // namespace

void write_marks(JsonWriter& json, std::span<const MapMark> marks) {
  json.key("marks").begin_array();
  for (const MapMark& mark : marks) {
    json.begin_array().value(text::printable(mark.label));
    write_number(json, mark.bytes);
    json.end_array();
  }
  json.end_array();
}

void write_folds(JsonWriter& json, std::span<const MapFold> folds) {
  json.key("folds").begin_array();
  for (const MapFold& fold : folds) json.begin_array().value(fold.offset).value(fold.bytes).value(fold.moved).end_array();
  json.end_array();
}

std::string map_json(const AddressMap& map) {
  JsonWriter json;
  json.begin_object().member("noun", text::printable(map.one)).member("step", text::printable(map.step));
  json.member("tag_noun", text::printable(map.kind)).member("from", map.begin).member("to", map.end).key("bytes");
  write_number(json, map.bytes);
  json.member("complete", map.is_complete);
  write_marks(json, map.marks);
  write_folds(json, map.folds);
  MapWriter(json, map).write();
  return json.end_object().take();
}

}  // namespace berth::internal::html
