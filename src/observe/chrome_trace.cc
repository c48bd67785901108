// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <map>
#include <unordered_map>

#include "base/text.h"
#include "berth/base/json.h"
#include "berth/observe/export.h"

// Chrome's trace event format: an object with a list of events, times in microseconds. Perfetto reads it too.
namespace berth {

using namespace internal;

namespace {

class ChromeEvents {
 public:
  ChromeEvents() { json_.begin_object().member("displayTimeUnit", "ms").key("traceEvents").begin_array(); }

  void name_process(int process, std::string_view name) {
    begin("M", "process_name", process, 0).key("args").begin_object().member("name", name).end_object();
    json_.end_object();
  }
  // `values` writes the members of one object.
  template <class Values>
  void counter(int process, std::string_view name, std::uint64_t time_ns, Values values) {
    begin("C", name, process, 0);
    time("ts", time_ns).key("args").begin_object();
    values(json_);
    json_.end_object().end_object();
  }
  void instant(int process, std::string_view name, std::uint64_t time_ns) {
    begin("i", name, process, 0);
    time("ts", time_ns).member("s", "g").end_object();
  }
  void slice(int process, std::uint64_t thread, std::string_view name, std::uint64_t begin_ns, std::uint64_t took_ns, std::uint64_t bytes) {
    begin("X", name, process, thread);
    time("ts", begin_ns);
    time("dur", took_ns).key("args").begin_object().member("bytes", bytes).end_object().end_object();
  }

  std::string take() {
    json_.end_array().end_object();
    return json_.take();
  }

 private:
  JsonWriter& begin(std::string_view phase, std::string_view name, int process, std::uint64_t thread) {
    return json_.begin_object().member("ph", phase).member("name", name).member("pid", process).member("tid", thread);
  }
  // Fractional: whole microseconds are too coarse, and a double would round late times.
  JsonWriter& time(std::string_view key, std::uint64_t ns) {
    const std::string part = std::to_string(ns % 1000);
    return json_.key(key).number(text::join(ns / 1000, '.', std::string(3 - part.size(), '0'), part));
  }

  JsonWriter json_;
};

constexpr int kMemory = 1;  // tracks: Chrome calls them processes
constexpr int kCopies = 2;

std::string track_of(const TagProfile& row) { return text::join(row.device.to_string(), " by tag"); }

void add_samples(const Profile& profile, ChromeEvents& events) {
  for (const ProfileSample& sample : profile.samples) {
    if (!sample.label.empty()) events.instant(kMemory, sample.label, sample.time_ns);
    for (const TagProfile& device : profile.devices) {
      events.counter(kMemory, track_of(device), sample.time_ns, [&](JsonWriter& json) {
        for (std::size_t i = 0; i < std::min(sample.bytes.size(), profile.tags.size()); ++i) {
          const TagProfile& row = profile.tags[i];
          if (row.device == device.device) json.member(row.tag ? row.tag.word() : std::string_view("(no tag)"), sample.bytes[i]);
        }
      });
    }
  }
}

void add_copies(const Profile& profile, ChromeEvents& events) {
  for (const CopyEvent& copy : profile.copy_events) {
    if (copy.way >= profile.copies.size()) continue;
    const CopyProfile& way = profile.copies[copy.way];
    events.slice(kCopies, copy.thread,
                 text::join(way.source.to_string(), " > ", way.target.to_string(), " ", to_string(way.target_dtype), " (", way.route, ')'),
                 copy.begin_ns, copy.took_ns, copy.bytes);
  }
}

// Bytes in use, by allocator; of each interval of events the maximum and the last value.
class InUse {
 public:
  void take(const TraceEvent& event, std::uint64_t now_ns) {
    Counter& counter = counters_[event.allocator_id];
    // The bytes of a free are meaningless.
    if (event.operation == TraceEvent::Operation::allocate) {
      counter.live[event.serial] = event.bytes;
      counter.bytes += event.bytes;
    } else if (const auto found = counter.live.find(event.serial); found != counter.live.end()) {
      counter.bytes -= found->second;
      counter.live.erase(found);
    }
    if (counter.changed && counter.bytes < counter.highest) return;
    counter.highest = counter.bytes;
    counter.highest_ns = now_ns;
    counter.changed = true;
  }

  void write(ChromeEvents& events, std::uint64_t now_ns) {
    for (auto& entry : counters_) {
      Counter& counter = entry.second;
      if (!counter.changed) continue;
      counter.changed = false;
      const std::string name = text::join("allocator ", entry.first);
      events.counter(kMemory, name, counter.highest_ns, [&](JsonWriter& json) { json.member("in use", counter.highest); });
      if (counter.highest_ns != now_ns)
        events.counter(kMemory, name, now_ns, [&](JsonWriter& json) { json.member("in use", counter.bytes); });
    }
  }

 private:
  struct Counter {
    std::uint64_t bytes = 0;
    std::uint64_t highest = 0;
    std::uint64_t highest_ns = 0;
    bool changed = false;  // since the last write
    std::unordered_map<std::uint64_t, std::uint64_t> live = {};
  };
  std::map<std::uint64_t, Counter> counters_;
};

}  // namespace

std::string to_chrome_trace(const Profile& profile) {
  ChromeEvents events;
  events.name_process(kMemory, "memory");
  events.name_process(kCopies, "copies");
  add_samples(profile, events);
  add_copies(profile, events);
  return events.take();
}

std::string to_chrome_trace(const Trace& trace, std::size_t most_points) {
  ChromeEvents events;
  events.name_process(kMemory, "memory");
  // A text trace has no times: then events are a microsecond apart.
  const bool timed = std::ranges::any_of(trace.events, [](const TraceEvent& event) { return event.time_ns != 0; });
  const std::uint64_t start = timed ? trace.events.front().time_ns : 0;
  const std::size_t stretch = std::max<std::size_t>(trace.events.size() / std::max<std::size_t>(most_points, 1), 1);
  InUse in_use;
  for (std::size_t i = 0; i < trace.events.size(); ++i) {
    const TraceEvent& event = trace.events[i];
    const std::uint64_t now = timed ? event.time_ns - std::min(event.time_ns, start) : i * 1000;
    in_use.take(event, now);
    if ((i + 1) % stretch == 0 || i + 1 == trace.events.size()) in_use.write(events, now);
  }
  return events.take();
}

}  // namespace berth
