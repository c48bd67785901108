// SPDX-License-Identifier: Apache-2.0
#include "html/address_map.h"

#include <algorithm>
#include <limits>
#include <map>
#include <numeric>

#include "base/text.h"

namespace berth::internal::html {

namespace {

using Wide = unsigned __int128;  // holds the sum of any boxes that fit in memory

std::uint64_t clamped(Wide bytes) {
  constexpr std::uint64_t kMost = std::numeric_limits<std::uint64_t>::max();
  return bytes > kMost ? kMost : static_cast<std::uint64_t>(bytes);
}

std::uint64_t top_of(const MapBox& box) { return clamped(Wide{box.offset} + box.bytes); }

struct Change {
  std::uint64_t step;
  std::uint64_t bytes;
};

// What begins, or what ends, by step. Boxes are mostly sorted by begin already, so that each list is sorted apart.
std::vector<Change> changes(std::span<const MapBox> boxes, std::uint64_t MapBox::*step) {
  std::vector<Change> all;
  all.reserve(boxes.size());
  for (const MapBox& box : boxes)
    if (box.begin < box.end) all.push_back({box.*step, box.bytes});
  if (!std::ranges::is_sorted(all, {}, &Change::step)) std::ranges::sort(all, {}, &Change::step);
  return all;
}

// Assigns tones to boxes in the order in which they begin (greedy colouring). `last_` maps each address to the
// last box there, so that a box can differ from its neighbours and from the boxes whose addresses it reuses.
class ToneGiver {
 public:
  ToneGiver(std::span<const MapBox> boxes, std::size_t tones) : boxes_(boxes), given_(boxes.size()), taken_(tones) {}

  std::vector<std::uint8_t> give() {
    std::vector<std::size_t> order(boxes_.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::ranges::stable_sort(order, {}, [&](std::size_t i) { return boxes_[i].begin; });
    for (const std::size_t i : order) give_one(i);
    return std::move(given_);
  }

 private:
  void give_one(std::size_t i) {
    std::ranges::fill(taken_, 0);
    auto at = last_.lower_bound(boxes_[i].offset);
    if (at != last_.begin()) avoid(*std::prev(at));
    while (at != last_.end() && at->first < top_of(boxes_[i])) {
      avoid(*at);
      at = last_.erase(at);
    }
    if (at != last_.end()) avoid(*at);
    given_[i] = least_taken();
    last_.insert_or_assign(boxes_[i].offset, i);
  }

  void avoid(const std::pair<const std::uint64_t, std::size_t>& neighbour) { ++taken_[given_[neighbour.second]]; }

  // Round robin among equals, so that all tones are used.
  std::uint8_t least_taken() {
    std::size_t best = turn_ % taken_.size();
    for (std::size_t k = 0; k < taken_.size(); ++k) {
      const std::size_t tone = (turn_ + k) % taken_.size();
      if (taken_[tone] < taken_[best]) best = tone;
    }
    ++turn_;
    return static_cast<std::uint8_t>(best);
  }

  std::span<const MapBox> boxes_;
  std::vector<std::uint8_t> given_;
  std::vector<std::size_t> taken_;  // by tone: how many neighbours of the current box have it
  std::map<std::uint64_t, std::size_t> last_;
  std::size_t turn_ = 0;
};

}  // namespace

std::vector<LivePoint> live_bytes(std::span<const MapBox> boxes) {
  const std::vector<Change> begins = changes(boxes, &MapBox::begin);
  const std::vector<Change> ends = changes(boxes, &MapBox::end);
  std::vector<LivePoint> points;
  Wide live = 0;
  auto begun = begins.begin();
  for (auto ended = ends.begin(); ended != ends.end();) {  // the last change is an end
    const std::uint64_t step = begun == begins.end() ? ended->step : std::min(begun->step, ended->step);
    for (; begun != begins.end() && begun->step == step; ++begun) live += begun->bytes;
    for (; ended != ends.end() && ended->step == step; ++ended) live -= ended->bytes;
    points.push_back({step, clamped(live)});
  }
  return points;
}

void fold_addresses(AddressMap& map) {
  Folded folded = fold_offsets(std::span(map.boxes));
  map.bytes = folded.bytes;
  map.folds = std::move(folded.folds);
}

std::vector<std::uint8_t> box_tones(std::span<const MapBox> boxes, std::size_t tones) { return ToneGiver(boxes, tones).give(); }

std::string name_of(const AddressMap& map, const MapBox& box) { return box.name.empty() ? text::join(map.one, " ", box.id) : box.name; }

std::string life_text(const AddressMap& map, const MapBox& box) {
  if (box.end <= box.begin + 1) return text::join(map.step, " ", box.begin);
  return text::join(map.step, "s ", box.begin, " to ", box.end - 1);
}

std::string box_text(const AddressMap& map, const MapBox& box) {
  std::string out = text::join(text::printable(name_of(map, box)), "\n", text::bytes(box.bytes), " (", box.bytes, " bytes) at ", box.offset,
                               "\n", life_text(map, box));
  const std::uint64_t step = box.begin - map.begin;
  if (step < map.steps.size()) out += text::join("\nmade by ", text::printable(map.steps[step]));
  if (!box.note.empty()) out += text::join("\n", text::printable(box.note));
  return out;
}

}  // namespace berth::internal::html
