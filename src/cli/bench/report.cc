// SPDX-License-Identifier: Apache-2.0
#include "cli/bench/report.h"

#include <fmt/core.h>

#include <algorithm>
#include <vector>

#include "base/text.h"
#include "berth/base/json.h"
#include "cli/output.h"
#include "cli/table.h"

namespace berth::internal::cli {

namespace {

constexpr double kLeast = 0.25;  // of memcpy, the lower limit for every case

std::string time_text(double seconds) {
  if (seconds < 1e-6) return fmt::format("{:.1f} ns", seconds * 1e9);
  return seconds < 1e-3 ? fmt::format("{:.1f} µs", seconds * 1e6) : fmt::format("{:.2f} ms", seconds * 1e3);
}

std::string rate_text(double bytes_per_second) { return fmt::format("{:.2f} GB/s", bytes_per_second * 1e-9); }

std::string ratio_text(const std::optional<double>& ratio) {
  return ratio ? fmt::format("{:.{}f}", *ratio, *ratio < 10 ? 3 : 1) : kUnknown;
}

// What the other columns do not show.
std::string remark(const BenchResult& r) {
  if (r.large_copy_ratio) return fmt::format("{:.2f} times the time of one copy of {}", *r.large_copy_ratio, text::bytes(r.bytes / 2));
  if (r.memcpy_ratio || !r.torch_ratio) return {};
  return fmt::format("{:.3f} times PyTorch's time", 1 / *r.torch_ratio);
}

void write_number(JsonWriter& json, std::string_view name, const auto& number) {
  json.key(name);
  if (number)
    json.value(*number);
  else
    json.null();
}

Table make_table(const char* peer) {
  using enum Table::Align;
  return Table({{"copy"}, {"moved", right}, {"time", right}, {"rate", right}, {peer, right}, {"by PyTorch", right}, {""}});
}

void add_row(Table& table, const BenchResult& r) {
  if (r.failed) {
    table.add({paint(Mood::strong, r.name), kUnknown, kUnknown, kUnknown, kUnknown, kUnknown, paint(Mood::bad, *r.failed)});
    return;
  }
  table.add({paint(Mood::strong, r.name), text::bytes(r.bytes), time_text(r.seconds), rate_text(r.bytes_per_second()),
             ratio_text(r.memcpy_ratio), ratio_text(r.torch_ratio), paint(Mood::quiet, remark(r))});
}

}  // namespace

std::string bench_json(std::span<const BenchResult> results, int threads) {
  JsonWriter json(JsonWriter::Style::pretty);
  json.begin_array();
  for (const BenchResult& r : results) {
    json.begin_object().member("name", r.name).member("threads", threads);
    if (r.failed) {
      json.member("error", *r.failed).end_object();
      continue;
    }
    json.member("bytes", r.bytes).member("seconds", r.seconds).member("bytes_per_second", r.bytes_per_second());
    write_number(json, "memcpy_ratio", r.memcpy_ratio);
    write_number(json, "torch_ratio", r.torch_ratio);
    write_number(json, "large_copy_ratio", r.large_copy_ratio);
    write_number(json, "memcpy_seconds", r.memcpy_seconds);
    write_number(json, "memcpy_chunk_bytes", r.memcpy_chunk_bytes);
    write_number(json, "torch_seconds", r.torch_seconds);
    json.end_object();
  }
  json.end_array();
  return json.take() + "\n";
}

std::string bench_table(std::span<const BenchResult> results, int threads, const std::optional<Device>& device) {
  Table table = make_table(device ? "by a plain copy" : "by memcpy");
  for (const BenchResult& r : results) add_row(table, r);
  if (device)
    return fmt::format(
               "copies on, from and to {}; bytes read and written per second, and the ratio to a peer: above 1, berth is faster\n"
               "(a plain copy: the device's own of as many bytes, between the host and the device from or to page-locked memory)\n",
               device->to_string()) +
           table.to_string();
  return fmt::format("copies of host memory, {} {}; bytes read and written per second, and the ratio to a peer: above 1, berth is faster\n",
                     threads, threads == 1 ? "thread" : "threads") +
         table.to_string();
}

std::string lowest_table(std::span<const BenchResult> results) {
  constexpr std::size_t kMost = 12;
  std::vector<BenchResult> sorted(results.begin(), results.end());
  // Failed cases have no ratio, and come first.
  std::stable_sort(sorted.begin(), sorted.end(), [](const auto& a, const auto& b) { return a.memcpy_ratio < b.memcpy_ratio; });
  const auto under = std::count_if(sorted.begin(), sorted.end(), [](const auto& r) { return r.memcpy_ratio < kLeast; });
  Table table = make_table("by memcpy");
  for (std::size_t i = 0; i < std::min(sorted.size(), kMost); ++i) add_row(table, sorted[i]);
  const std::string verdict = under == 0
                                  ? paint(Mood::good, fmt::format("✔ none of {} is under {} of memcpy", sorted.size(), kLeast))
                                  : paint(Mood::warning, fmt::format("✘ {} of {} are under {} of memcpy", under, sorted.size(), kLeast));
  return fmt::format("\nthe lowest of {} more, by memcpy (--json has all)\n", sorted.size()) + table.to_string() + verdict + "\n";
}

}  // namespace berth::internal::cli
