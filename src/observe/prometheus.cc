// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "base/text.h"
#include "berth/observe/export.h"
#include "memory/process_budget.h"

// Prometheus' text format: for each metric its help and type, then a line for each set of labels.
namespace berth {

using namespace internal;
using namespace internal::memory;

namespace {

struct Metric {
  std::string_view name;
  std::string_view type;
  std::string_view help;
  std::uint64_t (*value)(const Stats& stats);
};

constexpr Metric kMetrics[] = {
    {"berth_in_use_bytes", "gauge", "Bytes requested by live blocks.", [](const Stats& s) { return std::uint64_t{s.in_use_bytes}; }},
    {"berth_cached_bytes", "gauge", "Committed bytes beyond those in use: free memory and rounding.",
     [](const Stats& s) { return std::uint64_t{s.cached_bytes}; }},
    {"berth_committed_bytes", "gauge", "Bytes committed on the device.", [](const Stats& s) { return std::uint64_t{s.committed_bytes}; }},
    {"berth_peak_in_use_bytes", "gauge", "The most bytes in use so far.",
     [](const Stats& s) { return std::uint64_t{s.peak_in_use_bytes}; }},
    {"berth_peak_committed_bytes", "gauge", "The most bytes committed so far.",
     [](const Stats& s) { return std::uint64_t{s.peak_committed_bytes}; }},
    {"berth_table_bytes", "gauge", "Host memory of the allocator's own tables.",
     [](const Stats& s) { return std::uint64_t{s.table_bytes}; }},
    {"berth_live_blocks", "gauge", "Live blocks.", [](const Stats& s) { return s.live_blocks; }},
    {"berth_allocations_total", "counter", "Requests that succeeded.", [](const Stats& s) { return s.allocations; }},
    {"berth_frees_total", "counter", "Blocks freed.", [](const Stats& s) { return s.frees; }},
    {"berth_failures_total", "counter", "Requests refused.", [](const Stats& s) { return s.failures; }},
    {"berth_commits_total", "counter", "Times memory was committed.", [](const Stats& s) { return s.commits; }},
    {"berth_decommits_total", "counter", "Times memory was decommitted or moved.", [](const Stats& s) { return s.decommits; }},
};

// Escapes a label value. Bytes that are not UTF-8 become U+FFFD: a server would reject the whole response for
// one of them.
std::string escaped(std::string_view text) {
  std::string out;
  while (!text.empty()) {
    const std::size_t length = text::utf8_length(text);
    const char c = text.front();
    if (c == '\\' || c == '"') out += '\\';
    out += length == 0 ? "\xef\xbf\xbd" : c == '\n' ? "\\n" : text.substr(0, length);
    text.remove_prefix(std::max<std::size_t>(length, 1));
  }
  return out;
}

std::string labels_of(const Allocator& allocator) {
  return text::join("device=\"", escaped(allocator.device().to_string()), "\",allocator=\"", escaped(allocator.name()), "\",id=\"",
                    allocator.id(), '"');
}

void begin_metric(std::string& out, std::string_view name, std::string_view type, std::string_view help) {
  out += text::join("# HELP ", name, ' ', help, "\n# TYPE ", name, ' ', type, '\n');
}

}  // namespace

std::string to_prometheus() { return to_prometheus(memory::strategies_of_process()); }

std::string to_prometheus(const std::vector<std::shared_ptr<Allocator>>& allocators) {
  struct Row {
    std::string labels;
    Stats stats;
    std::vector<Holder> holders;
  };
  std::vector<Row> rows;
  for (const std::shared_ptr<Allocator>& one : allocators) rows.push_back({labels_of(*one), one->stats(), one->holders()});
  std::string out;
  for (const Metric& metric : kMetrics) {
    begin_metric(out, metric.name, metric.type, metric.help);
    for (const Row& row : rows) out += text::join(metric.name, '{', row.labels, "} ", metric.value(row.stats), '\n');
  }
  const auto held = [&](std::string_view name, std::string_view help, auto value) {
    begin_metric(out, name, "gauge", help);
    for (const Row& row : rows) {
      for (const Holder& holder : row.holders)
        out += text::join(name, '{', row.labels, ",tag=\"", escaped(holder.tag.word()), "\"} ", value(holder), '\n');
    }
  };
  held("berth_held_bytes", "Bytes in use by tag.", [](const Holder& holder) { return std::uint64_t{holder.bytes}; });
  held("berth_held_blocks", "Blocks by tag.", [](const Holder& holder) { return holder.blocks; });
  return out;
}

}  // namespace berth
