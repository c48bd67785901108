// SPDX-License-Identifier: Apache-2.0
#include "html/range_map.h"

#include <algorithm>
#include <utility>

#include "base/text.h"
#include "berth/base/json.h"
#include "html/packed.h"

namespace berth::internal::html {

namespace {

template <class Value>
void pack(JsonWriter& json, std::string_view name, const std::vector<const RangePiece*>& pieces, const Value& value) {
  Packed packed;
  for (const RangePiece* piece : pieces) packed.add(value(*piece));
  json.member(name, packed.take());
}

std::vector<const RangePiece*> by_offset(const RangeMap& map) {
  std::vector<const RangePiece*> order;
  for (const RangePiece& piece : map.pieces) order.push_back(&piece);
  std::ranges::stable_sort(order, {}, &RangePiece::offset);
  return order;
}

void write_pieces(JsonWriter& json, const std::vector<const RangePiece*>& pieces) {
  std::uint64_t before = 0;
  pack(json, "offsets", pieces, [&](const RangePiece& piece) { return piece.offset - std::exchange(before, piece.offset); });
  pack(json, "bytes_of", pieces, [](const RangePiece& piece) { return piece.bytes; });
  pack(json, "slack", pieces, [](const RangePiece& piece) { return piece.bytes - std::min(piece.bytes, piece.asked_bytes); });
  pack(json, "ages", pieces, [](const RangePiece& piece) { return piece.age_ns; });
  pack(json, "streams", pieces, [](const RangePiece& piece) { return piece.stream_id; });
  pack(json, "tag", pieces, [](const RangePiece& piece) { return piece.tag; });
  pack(json, "site", pieces, [](const RangePiece& piece) { return piece.site; });
  pack(json, "kinds", pieces, [](const RangePiece& piece) { return static_cast<std::uint64_t>(piece.kind); });
}

}  // namespace

void fold_addresses(RangeMap& map) {
  Folded folded = fold_offsets(std::span(map.pieces));
  map.base += folded.first;
  map.bytes = folded.bytes;
  map.folds = std::move(folded.folds);
}

std::string range_json(const RangeMap& map) {
  JsonWriter json;
  json.begin_object().member("bytes", map.bytes).member("base", map.base);
  write_folds(json, map.folds);
  write_pieces(json, by_offset(map));
  json.key("tags").begin_array();
  for (const MapTag& tag : map.tags) json.value(text::printable(tag.name));
  json.end_array().key("tag_tones").begin_array();
  for (const MapTag& tag : map.tags) json.value(tag.tone);
  json.end_array().key("sites").begin_array();
  for (const std::string& site : map.sites) json.value(text::printable(site));
  return json.end_array().end_object().take();
}

}  // namespace berth::internal::html
