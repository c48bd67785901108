// SPDX-License-Identifier: Apache-2.0
#include "plan/portfolio.h"

#include <algorithm>
#include <chrono>
#include <map>
#include <numeric>
#include <utility>

namespace berth::internal::plan {

namespace {

// Fixed buffers at their offsets, all others above them; by falling alignment, so that there are no gaps
// between them.
Packing lay_side_by_side(const Part& part) {
  std::vector<std::uint32_t> order(part.buffers.size() - part.fixed);
  std::iota(order.begin(), order.end(), static_cast<std::uint32_t>(part.fixed));
  std::stable_sort(order.begin(), order.end(),
                   [&](std::uint32_t a, std::uint32_t b) { return part.buffers[a].alignment > part.buffers[b].alignment; });
  Packing packing;
  packing.offsets.resize(part.buffers.size());
  for (std::uint32_t index = 0; index < part.fixed; ++index) {
    packing.offsets[index] = *part.buffers[index].fixed;
    packing.peak_bytes = std::max(packing.peak_bytes, packing.offsets[index] + part.buffers[index].bytes);
  }
  for (const std::uint32_t index : order) {
    packing.offsets[index] = align_offset(packing.peak_bytes, part.buffers[index].alignment);
    packing.peak_bytes = packing.offsets[index] + part.buffers[index].bytes;
  }
  return packing;
}

// Sweeps over time with the live fixed buffers ordered by offset: a new one can only clash with its neighbours.
bool has_clash(const Part& part) {
  std::vector<std::uint32_t> births(part.fixed);
  std::iota(births.begin(), births.end(), 0U);
  std::vector<std::uint32_t> deaths = births;
  const std::vector<PackBuffer>& buffers = part.buffers;
  std::sort(births.begin(), births.end(), [&](std::uint32_t a, std::uint32_t b) { return buffers[a].begin < buffers[b].begin; });
  std::sort(deaths.begin(), deaths.end(), [&](std::uint32_t a, std::uint32_t b) { return buffers[a].end < buffers[b].end; });
  std::map<std::size_t, std::size_t> alive;  // begin → end of each
  auto dead = deaths.begin();
  for (const std::uint32_t index : births) {
    const PackBuffer& one = buffers[index];
    for (; buffers[*dead].end <= one.begin; ++dead) alive.erase(*buffers[*dead].fixed);
    const auto above = alive.lower_bound(*one.fixed);
    if (above != alive.end() && above->first < *one.fixed + one.bytes) return true;
    if (above != alive.begin() && std::prev(above)->second > *one.fixed) return true;
    alive.emplace(*one.fixed, *one.fixed + one.bytes);
  }
  return false;
}

// Limits on steps are for a part; of more parts than these, all share as many steps.
constexpr std::size_t kPartsOfFullEffort = 8;

double milliseconds_since(Patience::Clock::time_point start) {
  return std::chrono::duration<double, std::milli>(Patience::Clock::now() - start).count();
}

}  // namespace

Portfolio::Portfolio(const std::vector<PackBuffer>& buffers, std::size_t devices) : count_(buffers.size()), devices_(devices) {
  for (std::uint32_t device = 0; device < devices; ++device) {
    DeviceState& state = devices_[device];
    for (CutPart& cut : cut_into_parts(buffers, device)) {
      state.bound = std::max(state.bound, cut.part.lower_bound_bytes);
      NodeRange steps{UINT32_MAX, 0};
      for (const std::uint32_t index : cut.indices) {
        steps.begin = std::min(steps.begin, buffers[index].begin);
        steps.end = std::max(steps.end, buffers[index].end);
      }
      state.parts.push_back({std::move(cut), steps});
    }
    state.proved = state.bound;
  }
}

bool Portfolio::fixed_clash() const {
  for (const DeviceState& device : devices_)
    if (std::any_of(device.parts.begin(), device.parts.end(), [](const PartState& state) { return has_clash(state.cut.part); }))
      return true;
  return false;
}

void Portfolio::start_without_reuse() {
  for (DeviceState& device : devices_)
    for (PartState& state : device.parts) state.best = lay_side_by_side(state.cut.part);
}

// `left` parts, this one included, are still to be packed by this strategy, of `sharing` in all.
PackAnswer Portfolio::pack(const OffsetStrategy& strategy, const Effort& effort, const DeviceState& device, PartState& state,
                           std::size_t left, std::size_t sharing) const {
  const Part& part = state.cut.part;
  bool& gave_up = state.gave_up[static_cast<std::size_t>(strategy.family)];
  if (gave_up && !effort.to_the_end && part.buffers.size() > kVeryMany) return {PackEnd::too_much_live};
  const Patience share = effort.patience.share(left);
  const std::size_t enough = effort.capacity == SIZE_MAX ? device.proved : std::max(device.proved, effort.capacity);
  const std::size_t below = effort.to_the_end ? SIZE_MAX : state.best.peak_bytes;
  PackAnswer answer =
      strategy.pack({part, below, share, enough, effort.seed, effort.capacity, effort.threads, 1 + sharing / (kPartsOfFullEffort + 1)});
  gave_up = strategy.family != Family::other && answer.end == PackEnd::too_much_live;
  return answer;
}

bool Portfolio::run(const OffsetStrategy& strategy, const Effort& effort) {
  const auto start = Patience::Clock::now();
  const std::size_t before = total_bytes();
  PackEnd end = PackEnd::done;
  std::size_t total = 0;  // of this strategy alone
  const std::size_t lowerable = count_lowerable();
  std::size_t left = lowerable;
  for (DeviceState& device : devices_) {
    std::size_t peak = 0;
    for (PartState& state : device.parts) {
      std::size_t reached = state.best.peak_bytes;
      if (effort.to_the_end || can_be_lowered(device, state)) {
        PackAnswer answer = pack(strategy, effort, device, state, left == 0 ? 1 : left--, lowerable);
        if (answer.proved_bytes > device.proved) {
          device.proved = answer.proved_bytes;
          device.proved_steps = state.steps;
        }
        if (answer.end != PackEnd::done) {
          if (end == PackEnd::done) end = answer.end;
        } else {
          reached = answer.packing.peak_bytes;
          if (reached < state.best.peak_bytes) state.best = std::move(answer.packing);
        }
      }
      peak = std::max(peak, reached);
    }
    total += peak;
  }
  PlanAttempt& attempt = attempts_.emplace_back(PlanAttempt{std::string(strategy.name)});
  const bool better = total_bytes() < before;
  if (better)
    attempt.peak_bytes = total_bytes();  // with the best packings of the parts that it did not improve
  else if (end == PackEnd::done)
    attempt.peak_bytes = total;
  if (!better) attempt.note = to_note(end);
  attempt.time_ms = milliseconds_since(start);
  return better;
}

std::size_t Portfolio::count_lowerable() const {
  std::size_t count = 0;
  for (const DeviceState& device : devices_)
    for (const PartState& state : device.parts) count += can_be_lowered(device, state) ? 1 : 0;
  return count;
}

bool Portfolio::at_bound() const {
  for (std::size_t device = 0; device < devices_.size(); ++device)
    if (peak_bytes(device) > devices_[device].proved) return false;
  return true;
}

std::size_t Portfolio::peak_bytes(std::size_t device) const {
  std::size_t peak = 0;
  for (const PartState& state : devices_[device].parts) peak = std::max(peak, state.best.peak_bytes);
  return peak;
}

std::size_t Portfolio::used_bytes(std::size_t device) const {
  std::size_t used = 0;
  for (const PartState& state : devices_[device].parts)
    for (std::size_t i = 0; i < state.best.offsets.size(); ++i)
      used = std::max(used, state.best.offsets[i] + state.cut.part.buffers[i].bytes);
  return used;
}

std::size_t Portfolio::total_bytes() const {
  std::size_t total = 0;
  for (std::size_t device = 0; device < devices_.size(); ++device) total += peak_bytes(device);
  return total;
}

std::vector<std::size_t> Portfolio::offsets() const {
  std::vector<std::size_t> out(count_, 0);
  for (const DeviceState& device : devices_)
    for (const PartState& state : device.parts)
      for (std::size_t i = 0; i < state.cut.indices.size(); ++i) out[state.cut.indices[i]] = state.best.offsets[i];
  return out;
}

std::vector<PackBuffer> Portfolio::take_buffers() {
  for (DeviceState& device : devices_)
    for (PartState& state : device.parts) state.best = {};
  std::vector<PackBuffer> out(count_);
  for (DeviceState& device : devices_)
    for (const PartState& state : std::exchange(device.parts, {}))
      for (std::size_t i = 0; i < state.cut.indices.size(); ++i)
        out[state.cut.indices[i]] = uncut(state.cut.part, state.cut.part.buffers[i]);
  return out;
}

}  // namespace berth::internal::plan
