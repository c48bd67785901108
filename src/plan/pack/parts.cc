// SPDX-License-Identifier: Apache-2.0
#include "plan/pack/parts.h"

#include <algorithm>

namespace berth::planning {

namespace {

// REQUIRES: sorted by begin.
std::vector<std::vector<std::uint32_t>> split(const std::vector<PackBuffer>& buffers, const std::vector<std::uint32_t>& sorted) {
  std::vector<std::vector<std::uint32_t>> groups;
  std::uint32_t reach = 0;
  for (const std::uint32_t index : sorted) {
    if (groups.empty() || buffers[index].begin >= reach) groups.emplace_back();
    groups.back().push_back(index);
    reach = std::max(reach, buffers[index].end);
  }
  return groups;
}

void rank_times(Part& part) {
  std::vector<std::uint32_t> times;
  times.reserve(2 * part.buffers.size());
  for (const PackBuffer& buffer : part.buffers) {
    times.push_back(buffer.begin);
    times.push_back(buffer.end);
  }
  std::sort(times.begin(), times.end());
  times.erase(std::unique(times.begin(), times.end()), times.end());
  const auto rank = [&](std::uint32_t time) {
    return static_cast<std::uint32_t>(std::lower_bound(times.begin(), times.end(), time) - times.begin());
  };
  for (PackBuffer& buffer : part.buffers) {
    buffer.begin = rank(buffer.begin);
    buffer.end = rank(buffer.end);
  }
  part.steps = static_cast<std::uint32_t>(times.size() - 1);
}

void measure(Part& part) {
  std::vector<std::size_t> changes(part.steps + 1);  // differences: they may wrap, their sums do not
  for (const PackBuffer& buffer : part.buffers) {
    changes[buffer.begin] += buffer.bytes;
    changes[buffer.end] -= buffer.bytes;
    if (buffer.fixed) part.lower_bound_bytes = std::max(part.lower_bound_bytes, *buffer.fixed + buffer.bytes);
  }
  std::size_t live = 0;
  for (const std::size_t change : changes) {
    live += change;
    part.lower_bound_bytes = std::max(part.lower_bound_bytes, live);
  }
}

}  // namespace

std::vector<CutPart> cut_into_parts(const std::vector<PackBuffer>& buffers) {
  std::vector<std::uint32_t> sorted;
  for (std::uint32_t i = 0; i < buffers.size(); ++i)
    if (buffers[i].bytes != 0) sorted.push_back(i);
  std::sort(sorted.begin(), sorted.end(), [&](std::uint32_t a, std::uint32_t b) {
    return buffers[a].begin != buffers[b].begin ? buffers[a].begin < buffers[b].begin : a < b;
  });
  std::vector<CutPart> parts;
  for (std::vector<std::uint32_t>& group : split(buffers, sorted)) {
    CutPart& cut = parts.emplace_back();
    const auto middle = std::stable_partition(group.begin(), group.end(), [&](std::uint32_t i) { return buffers[i].fixed.has_value(); });
    cut.part.fixed = static_cast<std::size_t>(middle - group.begin());
    cut.indices = std::move(group);
    for (const std::uint32_t index : cut.indices) cut.part.buffers.push_back(buffers[index]);
    rank_times(cut.part);
    measure(cut.part);
  }
  return parts;
}

}  // namespace berth::planning
