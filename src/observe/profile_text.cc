// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <chrono>
#include <functional>
#include <span>

#include "base/text.h"
#include "berth/base/json.h"
#include "berth/observe/profiler.h"
#include "memory/live_blocks.h"

// A profile as text and as JSON.
namespace berth {

using namespace internal;
using namespace internal::memory;

namespace {

std::string signed_bytes(std::int64_t bytes) {
  return bytes < 0 ? text::join('-', text::bytes(static_cast<std::uint64_t>(-bytes))) : text::bytes(static_cast<std::uint64_t>(bytes));
}

std::string word_of(Tag tag) { return tag ? text::printable(tag.word()) : std::string("(no tag)"); }

std::string line(std::string_view what, const ProfileCounts& counts) {
  return text::join("  ", what, ": ", signed_bytes(counts.peak_bytes), " at the peak, ", signed_bytes(counts.bytes), " in ", counts.blocks,
                    " blocks now; ", counts.allocations, " allocations of ", text::bytes(counts.allocated_bytes), ", ", counts.frees,
                    " frees\n");
}

template <class Row>
std::vector<const Row*> by_peak(const std::vector<Row>& rows) {
  std::vector<const Row*> sorted;
  for (const Row& row : rows) sorted.push_back(&row);
  std::ranges::stable_sort(sorted, std::ranges::greater(), [](const Row* row) { return row->counts.peak_bytes; });
  return sorted;
}

std::string way_in_words(const CopyProfile& way) {
  const std::string devices =
      way.source == way.target ? way.target.to_string() : text::join(way.source.to_string(), " to ", way.target.to_string());
  const std::string dtypes = way.source_dtype == way.target_dtype
                                 ? std::string(to_string(way.target_dtype))
                                 : text::join(to_string(way.source_dtype), " to ", to_string(way.target_dtype));
  return text::join(devices, ", ", dtypes, ", ", way.route);
}

void write_counts(JsonWriter& json, const ProfileCounts& counts) {
  json.member("bytes", counts.bytes).member("peak_bytes", counts.peak_bytes).member("blocks", counts.blocks);
  json.member("allocations", counts.allocations).member("frees", counts.frees);
  json.member("allocated_bytes", counts.allocated_bytes).member("freed_bytes", counts.freed_bytes);
}

void write_copies(JsonWriter& json, const Profile& profile) {
  json.key("copies").begin_array();
  for (const CopyProfile& way : profile.copies) {
    json.begin_object().member("source", way.source.to_string()).member("target", way.target.to_string());
    json.member("source_dtype", to_string(way.source_dtype)).member("target_dtype", to_string(way.target_dtype));
    json.member("route", way.route).member("copies", way.copies).member("bytes", way.bytes);
    json.member("waited", way.waited).member("time_ns", way.time_ns).end_object();
  }
  json.end_array();
}

void write_samples(JsonWriter& json, const Profile& profile) {
  json.key("samples").begin_array();
  for (const ProfileSample& sample : profile.samples) {
    json.begin_object().member("time_ns", sample.time_ns);
    if (!sample.label.empty()) json.member("label", sample.label);
    json.key("bytes").begin_array();
    for (const std::int64_t bytes : sample.bytes) json.value(bytes);
    json.end_array().end_object();
  }
  json.end_array();
}

// Up to the largest requested size.
void write_sizes(JsonWriter& json, const Profile& profile) {
  std::size_t count = profile.sizes.size();
  while (count > 0 && profile.sizes[count - 1] == 0) --count;
  json.key("sizes").begin_array();
  for (std::size_t i = 0; i < count; ++i) {
    if (profile.sizes[i] != 0)
      json.begin_object().member("up_to_bytes", std::uint64_t{1} << i).member("allocations", profile.sizes[i]).end_object();
  }
  json.end_array();
}

}  // namespace

std::string Profile::to_string() const {
  std::string out = text::join("profile of ", text::duration(std::chrono::milliseconds(duration_ns / 1'000'000)), '\n');
  for (const TagProfile& row : devices) {
    out += line(row.device.to_string(), row.counts);
    for (const TagProfile* const tag : by_peak(tags)) {
      if (tag->device == row.device) out += text::join("  ", line(word_of(tag->tag), tag->counts));
    }
  }
  for (const SiteProfile& row : std::span(sites).first(std::min<std::size_t>(sites.size(), 20))) {
    const std::string at = site_in_words(row.site, row.stack);
    out += line(text::join(at.empty() ? "(unknown site)" : at, ", ", word_of(row.tag)), row.counts);
  }
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    if (sizes[i] != 0) out += text::join("  of at most ", text::bytes(std::uint64_t{1} << i), ": ", sizes[i], " allocations\n");
  }
  for (const CopyProfile& way : copies) {
    out += text::join("  ", way_in_words(way), ": ", way.copies, way.copies == 1 ? " time, " : " times, ", text::bytes(way.bytes));
    if (way.waited != 0) out += text::join(", ", way.time_ns / 1000, " us");
    out += '\n';
  }
  return out;
}

void Profile::write_json(JsonWriter& json) const {
  json.begin_object().member("format", "berth profile").member("version", 1).member("duration_ns", duration_ns);
  json.key("devices").begin_array();
  for (const TagProfile& row : devices) {
    json.begin_object().member("device", row.device.to_string());
    write_counts(json, row.counts);
    json.end_object();
  }
  json.end_array().key("tags").begin_array();
  for (const TagProfile& row : tags) {
    json.begin_object().member("device", row.device.to_string()).member("tag", row.tag.word());
    write_counts(json, row.counts);
    json.end_object();
  }
  json.end_array().key("sites").begin_array();
  for (const SiteProfile& row : sites) {
    json.begin_object().member("device", row.device.to_string()).member("tag", row.tag.word());
    json.member("site", site_in_words(row.site, row.stack));
    write_counts(json, row.counts);
    json.end_object();
  }
  json.end_array();
  write_copies(json, *this);
  write_sizes(json, *this);
  write_samples(json, *this);
  json.end_object();
}

}  // namespace berth
