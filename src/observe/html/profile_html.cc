// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <functional>

#include "base/text.h"
#include "berth/observe/html.h"
#include "html/html.h"
#include "html/palette.h"
#include "observe/html/kinds.h"
#include "observe/html/words.h"

namespace berth {

using namespace internal;

namespace {

using namespace internal::observe;

constexpr std::size_t kMostRows = 1'000;  // that a browser sorts without delay

// Counts are negative when blocks older than the profile were freed.
std::uint64_t positive(std::int64_t count) { return count < 0 ? 0 : static_cast<std::uint64_t>(count); }

class ProfileReport {
 public:
  explicit ProfileReport(const Profile& profile) : profile_(profile) { find_kinds(); }

  std::string write(const std::string& title) {
    html::HtmlReport report(title, text::join("a profile of ", duration_text(profile_.duration_ns)));
    report.figures(figures());
    if (!profile_.samples.empty()) report.timeline(timeline());
    report.table(tags());
    if (!profile_.sites.empty()) report.table(sites());
    if (!profile_.copies.empty()) report.table(copies());
    report.table(sizes());
    return report.take();
  }

 private:
  void find_kinds() {
    std::vector<Kind> kinds;
    for (const TagProfile& row : profile_.tags) kinds.push_back({.name = name_of(row), .most = positive(row.counts.peak_bytes)});
    for (const ProfileSample& sample : profile_.samples)
      for (std::size_t i = 0; i < sample.bytes.size(); ++i) kinds[i].area += static_cast<double>(positive(sample.bytes[i]));
    kinds_ = group_kinds("tag", std::move(kinds));
  }

  std::string name_of(const TagProfile& row) const {
    const std::string_view word = row.tag ? row.tag.word() : kUntagged;
    return profile_.devices.size() <= 1 ? std::string(word) : text::join(row.device.to_string(), " ", word);
  }

  std::vector<html::Figure> figures() const {
    std::vector<html::Figure> all;
    for (const TagProfile& row : profile_.devices)
      all.push_back({text::join("peak on ", row.device.to_string()), text::bytes(positive(row.counts.peak_bytes)),
                     text::join(html::grouped(row.counts.allocations), " allocations")});
    return all;
  }

  html::Timeline timeline() const {
    html::Timeline line{.title = "Bytes in use by tag",
                        .step = "",
                        .clock = html::Timeline::Clock::since,
                        .end = std::max<std::uint64_t>(profile_.duration_ns, 1),
                        .groups = kinds_.groups,
                        .steps = {0},
                        .bytes = std::vector<std::uint64_t>(kinds_.groups.size())};
    for (const ProfileSample& sample : profile_.samples) add_sample(line, sample);
    return line;
  }

  void add_sample(html::Timeline& line, const ProfileSample& sample) const {
    if (sample.time_ns >= line.end) return;
    if (!sample.label.empty()) line.labels.push_back({sample.time_ns, sample.label});
    std::vector<std::uint64_t> bytes(kinds_.groups.size());
    for (std::size_t i = 0; i < sample.bytes.size(); ++i)
      if (kinds_.all[i].most != 0) bytes[kinds_.all[i].group] += positive(sample.bytes[i]);
    if (sample.time_ns == line.steps.back()) return;
    line.steps.push_back(sample.time_ns);
    line.bytes.insert(line.bytes.end(), bytes.begin(), bytes.end());
  }

  html::Table tags() const {
    html::Table table{.heading = "By device and tag",
                      .columns = {{"device"},
                                  {"tag"},
                                  {"at the peak", true},
                                  {"share of the largest"},
                                  {"in use", true},
                                  {"allocations", true},
                                  {"allocated in all", true}},
                      .searchable = profile_.tags.size() > 20};
    std::uint64_t most = 0;
    std::vector<std::size_t> order(profile_.tags.size());
    for (std::size_t i = 0; i < order.size(); ++i) {
      order[i] = i;
      most = std::max(most, kinds_.all[i].most);
    }
    std::ranges::stable_sort(order, std::greater(), [&](std::size_t i) { return kinds_.all[i].most; });
    for (const std::size_t i : order) {
      const TagProfile& row = profile_.tags[i];
      table.rows.push_back({{row.device.to_string()},
                            {std::string(row.tag ? row.tag.word() : kUntagged)},
                            html::bytes_cell(kinds_.all[i].most),
                            bar_cell(kinds_.all[i].most, most, html::tone_name(kinds_.all[i].tone)),
                            html::bytes_cell(positive(row.counts.bytes)),
                            html::count_cell(row.counts.allocations),
                            html::bytes_cell(row.counts.allocated_bytes)});
    }
    return table;
  }

  html::Table sites() const {
    html::Table table{.heading = "By call site",
                      .columns = {{"site"}, {"tag"}, {"device"}, {"at the peak", true}, {"in use", true}, {"allocations", true}},
                      .searchable = true};
    for (const SiteProfile& row : profile_.sites) {
      if (table.rows.size() == kMostRows) break;
      table.rows.push_back({{to_string(row.site)},
                            {std::string(row.tag ? row.tag.word() : kUntagged)},
                            {row.device.to_string()},
                            html::bytes_cell(positive(row.counts.peak_bytes)),
                            html::bytes_cell(positive(row.counts.bytes)),
                            html::count_cell(row.counts.allocations)});
    }
    return table;
  }

  html::Table copies() const {
    html::Table table{.heading = "Copies and conversions",
                      .columns = {{"from"}, {"to"}, {"dtype"}, {"via"}, {"copies", true}, {"bytes", true}, {"time waited", true}}};
    for (const CopyProfile& row : profile_.copies) {
      const bool same = row.source_dtype == row.target_dtype;
      table.rows.push_back(
          {{row.source.to_string()},
           {row.target.to_string()},
           {same ? std::string(to_string(row.target_dtype)) : text::join(to_string(row.source_dtype), " to ", to_string(row.target_dtype))},
           {row.route},
           html::count_cell(row.copies),
           html::bytes_cell(row.bytes),
           {row.waited == 0 ? "" : duration_text(row.time_ns), row.waited == 0 ? "" : std::to_string(row.time_ns)}});
    }
    return table;
  }

  html::Table sizes() const {
    html::Table table{.heading = "Requests by size", .columns = {{"up to", true}, {"requests", true}, {"share"}}};
    std::uint64_t most = 0;
    for (const std::uint64_t count : profile_.sizes) most = std::max(most, count);
    for (std::size_t i = 0; i < profile_.sizes.size(); ++i)
      if (profile_.sizes[i] != 0)
        table.rows.push_back(
            {html::bytes_cell(std::uint64_t{1} << i), html::count_cell(profile_.sizes[i]), bar_cell(profile_.sizes[i], most, "area")});
    return table;
  }

  const Profile& profile_;
  Kinds kinds_;
};

}  // namespace

std::string profile_html(const Profile& profile, const std::string& title) { return ProfileReport(profile).write(title); }

}  // namespace berth
