// SPDX-License-Identifier: Apache-2.0
#include "plan/pack/exact/instance.h"

#include <algorithm>
#include <numeric>

namespace berth::internal::plan::pack::exact {

namespace {

// The greatest common divisor of all sizes and fixed offsets. Alignments that divide it hold by themselves; if
// some do not, its largest power of two, which divides them.
std::size_t unit_of(const Part& part) {
  std::size_t unit = 0;
  for (const PackBuffer& buffer : part.buffers) unit = std::gcd(unit, std::gcd(buffer.bytes, buffer.fixed.value_or(0)));
  const std::size_t power = unit & (~unit + 1);  // the largest power of two in it
  const auto is_coarse = [&](const PackBuffer& buffer) { return buffer.alignment > power; };
  return std::any_of(part.buffers.begin(), part.buffers.end(), is_coarse) ? power : unit;
}

// For each step, the section that it belongs to or that comes next. A section ends at an end that follows a
// begin.
std::vector<std::uint16_t> number_sections(const Part& part, std::size_t& count) {
  std::vector<bool> begins(part.steps + 1);
  std::vector<bool> ends(part.steps + 1);
  for (const PackBuffer& buffer : part.buffers) {
    begins[buffer.begin] = true;
    ends[buffer.end] = true;
  }
  std::vector<std::uint16_t> section_of(part.steps + 1);
  bool begun = false;
  count = 0;
  for (std::uint32_t step = 0; step < part.steps; ++step) {
    begun = begun || begins[step];
    section_of[step] = static_cast<std::uint16_t>(count);
    if (!begun || !ends[step + 1]) continue;
    ++count;
    begun = false;
  }
  section_of[part.steps] = static_cast<std::uint16_t>(count);
  return section_of;
}

}  // namespace

std::optional<Instance> make_instance(const Part& part) {
  constexpr std::size_t kMostUnits = std::size_t{1} << 29;  // sums of twice as many do not overflow
  if (part.buffers.empty() || part.buffers.size() > kMostBuffers) return std::nullopt;
  Instance out;
  out.unit_bytes = unit_of(part);
  std::size_t sum = 0;
  for (const PackBuffer& buffer : part.buffers) sum += buffer.bytes + buffer.alignment + buffer.fixed.value_or(0);
  if (sum / out.unit_bytes >= kMostUnits) return std::nullopt;
  const auto units = [&](std::size_t bytes) { return static_cast<Units>(bytes / out.unit_bytes); };
  const std::vector<std::uint16_t> section_of = number_sections(part, out.sections);
  for (const PackBuffer& buffer : part.buffers) {
    ExactBuffer& one = out.buffers.emplace_back();
    one.size = units(buffer.bytes);
    one.alignment = std::max(units(buffer.alignment), 1);
    if (buffer.fixed) one.fixed = units(*buffer.fixed);
    one.begin = section_of[buffer.begin];
    one.end = section_of[buffer.end];
    const double steps = buffer.end - buffer.begin;
    const double time = part.times[buffer.end] - part.times[buffer.begin];
    one.widths = {steps, time, static_cast<double>(one.end - one.begin)};
    out.aligned = out.aligned || one.alignment > 1;
  }
  out.lower_bound = units(part.lower_bound_bytes);
  out.together.resize(out.buffers.size());
  for (std::size_t i = 0; i < out.buffers.size(); ++i)
    for (std::size_t k = 0; k < i; ++k) {
      if (out.buffers[i].begin >= out.buffers[k].end || out.buffers[k].begin >= out.buffers[i].end) continue;
      out.together[i].add(k);
      out.together[k].add(i);
    }
  return out;
}

}  // namespace berth::internal::plan::pack::exact
