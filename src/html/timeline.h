// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "berth/export.h"
#include "html/address_map.h"

// Bytes over time by group, as plain data: input of the area charts of a report. A long timeline is
// downsampled, but none of its peaks is lost or rounded. A maker is for one thread at a time:
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

// Another quantity over time, drawn as a line. Each point holds until the next.
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
  std::string step = "step";  // unit of the time axis
  enum class Clock : std::uint8_t { none, since, before };
  Clock clock = Clock::none;  // if not `none`: steps are nanoseconds, shown relative to the beginning, or to
                              // the end
  std::uint64_t begin = 0;    // the range of steps shown
  std::uint64_t end = 0;
  std::vector<TimelineGroup> groups = {};  // the first is drawn lowest
  std::vector<TimelineLine> lines = {};
  std::vector<MapMark> marks = {};
  std::vector<TimelineLabel> labels = {};  // ascending

  // From steps[i] until steps[i + 1], group g has bytes[i * groups.size() + g] bytes. The first step is
  // `begin`.
  std::vector<std::uint64_t> steps = {};
  std::vector<std::uint64_t> bytes = {};
  bool is_coarse = false;  // it was downsampled
};

// Keeps everything if there are few steps. Otherwise it splits the time into equal parts and keeps three
// moments of each: those at which all groups together had the most and the fewest bytes, and the last one. So
// the timeline is exact at every kept moment, and in the maximum and minimum of each part. Sums fit in 64 bits,
// because callers have addresses for all of the bytes.
class BERTH_EXPORT TimelineMaker {
 public:
  // At most three moments each: about a megabyte in a report with eight groups.
  static constexpr std::uint64_t kMostParts = 16'384;

  TimelineMaker(std::uint64_t begin, std::uint64_t end, std::vector<TimelineGroup> groups, std::uint64_t most_parts = kMostParts);

  // Several changes in one step are one moment. REQUIRES: steps are ascending or equal, and in [begin, end);
  // what is removed was added.
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
  void settle();  // the current moment is complete
  void close_part();
  void keep(const Moment& moment);

  Timeline line_;
  const std::uint64_t part_steps_;  // length of a part
  Moment now_;
  std::uint64_t part_ = 0;
  bool part_empty_ = true;
  Moment most_;  // among the moments of this part, unless it is empty
  Moment least_;
  Moment last_;
};

// The live bytes of all boxes of a map, with its marks.
BERTH_EXPORT Timeline live_timeline(const AddressMap& map, std::string title);

// The timeline for the script of a report (assets/timeline.js), as one compact JSON object.
BERTH_EXPORT std::string timeline_json(const Timeline& line);

}  // namespace berth::internal::html
