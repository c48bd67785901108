// SPDX-License-Identifier: Apache-2.0
#include "cli/tour_profile.h"

#include <fmt/core.h>

#include <algorithm>
#include <vector>

#include "base/text.h"
#include "cli/output.h"

namespace berth::internal::cli {

namespace {

constexpr std::size_t kMostRows = 6;

std::string bytes(std::int64_t count) { return text::bytes(static_cast<std::uint64_t>(std::max<std::int64_t>(count, 0))); }

}  // namespace

std::string TourProfile::lines() const {
  const Profile profile = profiler_.profile();
  std::vector<TagProfile> tags = profile.tags;
  std::ranges::stable_sort(tags, std::ranges::greater(), [](const TagProfile& row) { return row.counts.peak_bytes; });
  std::string out;
  for (const TagProfile& row : std::span(tags).first(std::min(tags.size(), kMostRows)))
    out += fmt::format("{:<9} {:<14} {:>9} at the peak, {} allocations\n", row.device.to_string(),
                       row.tag ? text::printable(row.tag.word()) : "(no tag)", bytes(row.counts.peak_bytes), row.counts.allocations);
  std::vector<CopyProfile> copies = profile.copies;
  std::ranges::stable_sort(copies, std::ranges::greater(), &CopyProfile::time_ns);
  for (const CopyProfile& way : std::span(copies).first(std::min<std::size_t>(copies.size(), 3)))
    out += fmt::format("{:<9} {:<14} {:>9} in {} copies, {:.1f} ms, via {}\n", way.target.to_string(),
                       way.source_dtype == way.target_dtype
                           ? std::string(to_string(way.target_dtype))
                           : fmt::format("{} to {}", to_string(way.source_dtype), to_string(way.target_dtype)),
                       text::bytes(way.bytes), way.copies, static_cast<double>(way.time_ns) / 1e6, way.route);
  return out;
}

bool TourProfile::is_settled() const {
  const Profile profile = profiler_.profile();
  return std::ranges::all_of(profile.tags, [](const TagProfile& row) { return row.counts.bytes == 0 && row.counts.blocks == 0; });
}

}  // namespace berth::internal::cli
