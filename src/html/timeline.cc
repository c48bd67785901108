// SPDX-License-Identifier: Apache-2.0
#include "html/timeline.h"

#include <algorithm>
#include <utility>

#include "base/text.h"
#include "berth/base/json.h"
#include "html/packed.h"

namespace berth::internal::html {

namespace {

// The length of a part, so that at most `most` parts cover the steps; 1 if three moments per part would not be
// fewer than all.
std::uint64_t part_length(std::uint64_t steps, std::uint64_t most) {
  if (steps / 3 <= most) return 1;
  return steps / most + (steps % most != 0 ? 1 : 0);
}

std::string packed_steps(const std::vector<std::uint64_t>& steps) {
  Packed packed;
  std::uint64_t before = 0;
  for (const std::uint64_t step : steps) packed.add(step - std::exchange(before, step));
  return packed.take();
}

std::string packed_column(const Timeline& line, std::size_t group) {
  Packed packed;
  std::uint64_t before = 0;
  for (std::size_t at = group; at < line.bytes.size(); at += line.groups.size())
    packed.add_signed(line.bytes[at] - std::exchange(before, line.bytes[at]));
  return packed.take();
}

void write_line(JsonWriter& json, const TimelineLine& line) {
  Packed steps;
  Packed bytes;
  LivePoint before{};
  for (const LivePoint& point : line.points) {
    steps.add(point.step - before.step);
    bytes.add_signed(point.bytes - before.bytes);
    before = point;
  }
  json.begin_object().member("label", text::printable(line.label)).member("steps", steps.take()).member("bytes", bytes.take()).end_object();
}

void write_groups(JsonWriter& json, const Timeline& line) {
  json.key("groups").begin_array();
  for (const TimelineGroup& group : line.groups) json.value(text::printable(group.name));
  json.end_array().key("tones").begin_array();
  for (const TimelineGroup& group : line.groups) json.value(group.tone);
  json.end_array().key("columns").begin_array();
  for (std::size_t g = 0; g < line.groups.size(); ++g) json.value(packed_column(line, g));
  json.end_array();
}

}  // namespace

TimelineMaker::TimelineMaker(std::uint64_t begin, std::uint64_t end, std::vector<TimelineGroup> groups, std::uint64_t most_parts)
    : part_steps_(part_length(end - begin, most_parts)) {
  line_.begin = begin;
  line_.end = end;
  line_.groups = std::move(groups);
  line_.is_coarse = part_steps_ > 1;
  now_ = {begin, 0, std::vector<std::uint64_t>(line_.groups.size())};
}

void TimelineMaker::change(std::uint64_t step, std::size_t group, std::uint64_t bytes) {
  if (step != now_.step) settle();
  now_.step = step;
  now_.total += bytes;  // wraps around for removals, and so does the next line
  now_.bytes[group] += bytes;
}

void TimelineMaker::settle() {
  const std::uint64_t part = (now_.step - line_.begin) / part_steps_;
  if (line_.steps.empty()) keep(now_);  // the state at the beginning
  if (!part_empty_ && part != part_) close_part();
  if (part_empty_ || now_.total > most_.total) most_ = now_;
  if (part_empty_ || now_.total < least_.total) least_ = now_;
  last_ = now_;
  part_ = part;
  part_empty_ = false;
}

void TimelineMaker::close_part() {
  const Moment* kept[] = {&most_, &least_, &last_};
  std::ranges::sort(kept, {}, [](const Moment* moment) { return moment->step; });
  for (const Moment* moment : kept)
    if (moment->step != line_.steps.back()) keep(*moment);
  part_empty_ = true;
}

void TimelineMaker::keep(const Moment& moment) {
  line_.steps.push_back(moment.step);
  line_.bytes.insert(line_.bytes.end(), moment.bytes.begin(), moment.bytes.end());
}

Timeline TimelineMaker::take() {
  settle();
  close_part();
  return std::move(line_);
}

Timeline live_timeline(const AddressMap& map, std::string title) {
  TimelineMaker maker(map.begin, map.end, {{"live", 0}});
  std::uint64_t before = 0;
  for (const LivePoint& point : live_bytes(map.boxes)) {
    if (point.step >= map.end) break;  // nothing is live after the end
    maker.add(point.step, 0, point.bytes - std::exchange(before, point.bytes));
  }
  Timeline line = maker.take();
  line.title = std::move(title);
  line.step = map.step;
  line.marks = map.marks;
  return line;
}

std::string timeline_json(const Timeline& line) {
  JsonWriter json;
  json.begin_object().member("from", line.begin).member("to", line.end).member("step", text::printable(line.step));
  json.member("clock", line.clock == Timeline::Clock::none ? "" : line.clock == Timeline::Clock::since ? "since" : "before");
  json.member("coarse", line.is_coarse).key("labels").begin_array();
  for (const TimelineLabel& label : line.labels) json.begin_array().value(label.step).value(text::printable(label.text)).end_array();
  json.end_array();
  write_marks(json, line.marks);
  write_groups(json, line);
  json.member("steps", packed_steps(line.steps)).key("lines").begin_array();
  for (const TimelineLine& one : line.lines) write_line(json, one);
  return json.end_array().end_object().take();
}

}  // namespace berth::internal::html
