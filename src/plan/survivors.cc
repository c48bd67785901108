// SPDX-License-Identifier: Apache-2.0
#include "plan/survivors.h"

#include <algorithm>
#include <tuple>
#include <utility>

#include "plan/portfolio.h"

namespace berth::internal::plan {

namespace {

constexpr std::size_t kMostLooks = std::size_t{1} << 26;  // pairs of buffers that are compared: some tenths of a second

struct Survivor {
  std::uint32_t buffer;
  NodeId last;  // the last node that reads it; past them all where it is an output
};

// The buffers that survive and have no offset yet, what is needed longest first, then the largest.
std::vector<Survivor> find_survivors(const SurvivorsTask& task) {
  std::vector<NodeId> last(task.reuse.buffers.size(), 0);
  const auto see = [&](ValueId v, NodeId n) {
    if (const std::uint32_t buffer = task.reuse.values[v].buffer; buffer != kNoBuffer) last[buffer] = std::max(last[buffer], n);
  };
  for (NodeId n = task.nodes.end; n < task.graph.nodes.size(); ++n) {
    const GraphNode& node = task.graph.nodes[n];
    for (std::size_t i = 0; i < node.inputs.size(); ++i)
      if (node.inputs[i] != kNoValue && !is_ignored(node, i)) see(node.inputs[i], n);
  }
  for (ValueId v = 0; v < task.lives.size(); ++v)
    if (task.graph.values[v].output) see(v, UINT32_MAX);
  std::vector<Survivor> out;
  for (std::uint32_t i = 0; i < last.size(); ++i)
    if (last[i] != 0 && task.reuse.buffers[i].bytes != 0 && !task.reuse.buffers[i].fixed) out.push_back({i, last[i]});
  std::stable_sort(out.begin(), out.end(), [&](const Survivor& a, const Survivor& b) {
    return a.last != b.last ? a.last > b.last : task.reuse.buffers[a.buffer].bytes > task.reuse.buffers[b.buffer].bytes;
  });
  return out;
}

// The lowest offset at which a buffer meets none of the fixed ones that live with it.
std::size_t lowest_offset(const PackBuffer& one, const std::vector<PackBuffer>& fixed) {
  std::vector<std::pair<std::size_t, std::size_t>> taken;
  for (const PackBuffer& other : fixed)
    if (other.device == one.device && other.begin < one.end && one.begin < other.end)
      taken.emplace_back(*other.fixed, *other.fixed + other.bytes);
  std::sort(taken.begin(), taken.end());
  std::size_t offset = 0;
  for (const auto& [begin, end] : taken) {
    if (begin >= offset && begin - offset >= one.bytes) break;
    offset = std::max(offset, align_offset(end, one.alignment));
  }
  return offset;
}

// The buffers, with survivors fixed at the bottom.
std::optional<std::vector<PackBuffer>> settled(const SurvivorsTask& task) {
  const std::vector<Survivor> survivors = find_survivors(task);
  std::vector<PackBuffer> buffers = task.reuse.buffers;
  std::vector<PackBuffer> fixed;
  for (const PackBuffer& one : buffers)
    if (one.fixed && one.bytes != 0) fixed.push_back(one);
  if (survivors.empty() || survivors.size() > kMostLooks / (survivors.size() + fixed.size())) return std::nullopt;
  for (const Survivor& survivor : survivors) {
    PackBuffer& one = buffers[survivor.buffer];
    one.fixed = lowest_offset(one, fixed);
    fixed.push_back(one);
  }
  return buffers;
}

bool are_within(const std::vector<std::size_t>& bytes, const std::vector<std::size_t>& most) {
  return std::equal(bytes.begin(), bytes.end(), most.begin(), [](std::size_t a, std::size_t b) { return a <= b; });
}

}  // namespace

std::optional<SurvivorsPacking> pack_survivors_low(const SurvivorsTask& task) {
  if (!task.reuse.preferences.empty()) return std::nullopt;  // these lie where they are wanted
  const std::optional<std::vector<PackBuffer>> buffers = settled(task);
  if (!buffers) return std::nullopt;
  const std::size_t devices = task.peaks.size();
  Portfolio portfolio(*buffers, devices);
  std::vector<std::size_t> bytes(devices);
  for (std::size_t device = 0; device < devices; ++device) bytes[device] = portfolio.lower_bound_bytes(device);
  if (!are_within(bytes, task.peaks)) return std::nullopt;
  portfolio.start_without_reuse();
  for (const OffsetStrategy* strategy : task.strategies) {
    // Of the others, some cannot go around fixed offsets, and some search for long.
    if (strategy->family != Family::gaps || task.patience.over()) continue;
    (void)portfolio.run(*strategy, {task.patience});
    for (std::size_t device = 0; device < devices; ++device) bytes[device] = portfolio.used_bytes(device);
    if (are_within(bytes, task.peaks)) return SurvivorsPacking{portfolio.offsets(), std::move(bytes)};
  }
  return std::nullopt;
}

}  // namespace berth::internal::plan
