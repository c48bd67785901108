// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "berth/export.h"
#include "html/address_map.h"

// Bytes over time by group, as plain data: what the areas of a page start from. A long story is told in fewer moments, but none of its peaks
// is lost or rounded:
//
//     TimelineMaker maker(0, events, {"weights", "kv"});
//     maker.add(12, 1, 4096);         // at step 12 the second group has 4 KiB more
//     maker.remove(13, 1, 4096);
//     Timeline line = maker.take();
namespace berth::internal::html {

struct TimelineGroup {
  std::string name;
  std::uint8_t tone = 0;  // below kTones
};

// One more figure that changes over time, drawn as a line. Each point holds until the next.
struct TimelineLine {
  std::string label;
  std::vector<LivePoint> points;
};

// A moment with a name.
struct TimelineLabel {
  std::uint64_t step = 0;
  std::string text = {};
};

struct Timeline {
  std::string title = {};
  std::string step = "step";  // what the time counts, for people
  enum class Clock : std::uint8_t { none, since, before };
  Clock clock = Clock::none;  // steps are nanoseconds, and are told by how long since the beginning, or before the end, they are
  std::uint64_t begin = 0;    // the steps that are shown
  std::uint64_t end = 0;
  std::vector<TimelineGroup> groups = {};  // the first is drawn lowest
  std::vector<TimelineLine> lines = {};
  std::vector<MapMark> marks = {};
  std::vector<TimelineLabel> labels = {};  // ascending

  // From steps[i] on, until the next, group g has bytes[i * groups.size() + g]. The first step is `begin`.
  std::vector<std::uint64_t> steps = {};
  std::vector<std::uint64_t> bytes = {};
  bool is_coarse = false;  // there were more moments
};

// Keeps everything when there are few steps. Else time is cut into equal parts, and of each the moments stay at which all groups together had
// the most and the fewest bytes, and the last one: at every moment that is kept, and about the most and least of each part, the
// timeline is exact. A sum that 64 bits do not hold has no meaning here: callers have addresses for all of it.
class BERTH_EXPORT TimelineMaker {
 public:
  // Three moments for each at most: with eight groups about a megabyte in a page.
  static constexpr std::uint64_t kMostParts = 16'384;

  TimelineMaker(std::uint64_t begin, std::uint64_t end, std::vector<TimelineGroup> groups, std::uint64_t most_parts = kMostParts);

  // Several changes of one step are one moment. REQUIRES: steps do not descend and are in [begin, end); what is removed was added.
  void add(std::uint64_t step, std::size_t group, std::uint64_t bytes) { change(step, group, bytes); }
  void remove(std::uint64_t step, std::size_t group, std::uint64_t bytes) { change(step, group, 0 - bytes); }

  Timeline take();

 private:
  struct Moment {
    std::uint64_t step = 0;
    std::uint64_t total = 0;
    std::vector<std::uint64_t> bytes = {};
  };

  void change(std::uint64_t step, std::size_t group, std::uint64_t bytes);
  void settle();  // the present moment is over
  void close_part();
  void keep(const Moment& moment);

  Timeline line_;
  const std::uint64_t part_steps_;  // how long a part is
  Moment now_;
  std::uint64_t part_ = 0;
  bool part_empty_ = true;
  Moment most_;  // of the moments of this part, while it is not empty
  Moment least_;
  Moment last_;
};

// What a map's boxes hold together, with its marks.
BERTH_EXPORT Timeline live_timeline(const AddressMap& map, std::string title);

// The timeline for the script of a page, as one compact object.
BERTH_EXPORT std::string timeline_json(const Timeline& line);

}  // namespace berth::internal::html
