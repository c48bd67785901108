// SPDX-License-Identifier: Apache-2.0
#include "plan/portfolio.h"

#include <algorithm>
#include <chrono>
#include <numeric>

#include "plan/pack/fit.h"
#include "plan/pack/orders.h"

namespace berth::planning {

namespace {

// By falling alignment, so that there are no gaps between them.
Packing lay_side_by_side(const Part& part) {
  std::vector<std::uint32_t> order(part.buffers.size());
  std::iota(order.begin(), order.end(), 0U);
  std::stable_sort(order.begin(), order.end(),
                   [&](std::uint32_t a, std::uint32_t b) { return part.buffers[a].alignment > part.buffers[b].alignment; });
  Packing packing;
  packing.offsets.resize(order.size());
  for (const std::uint32_t index : order) {
    packing.offsets[index] = packing.peak_bytes;
    packing.peak_bytes += part.buffers[index].bytes;
  }
  return packing;
}

double milliseconds_since(Patience::Clock::time_point start) {
  return std::chrono::duration<double, std::milli>(Patience::Clock::now() - start).count();
}

}  // namespace

Portfolio::Portfolio(const std::vector<SharedBuffer>& buffers, std::size_t devices) : count_(buffers.size()), devices_(devices) {
  std::vector<std::vector<PackBuffer>> packs(devices);
  for (std::uint32_t i = 0; i < buffers.size(); ++i) {
    devices_[buffers[i].device].indices.push_back(i);
    packs[buffers[i].device].push_back(buffers[i].pack);
  }
  for (std::size_t device = 0; device < devices; ++device) {
    for (CutPart& cut : cut_into_parts(packs[device])) {
      devices_[device].bound = std::max(devices_[device].bound, cut.part.lower_bound_bytes);
      devices_[device].parts.push_back({std::move(cut)});
    }
  }
}

std::optional<Portfolio::Clash> Portfolio::fixed_clash() const {
  for (const DeviceState& device : devices_) {
    for (const PartState& state : device.parts) {
      const std::vector<PackBuffer>& buffers = state.cut.part.buffers;
      for (std::size_t a = 0; a < state.cut.part.fixed; ++a)
        for (std::size_t b = 0; b < a; ++b) {
          const PackBuffer& x = buffers[a];
          const PackBuffer& y = buffers[b];
          const bool together = x.begin < y.end && y.begin < x.end;
          if (together && *x.fixed < *y.fixed + y.bytes && *y.fixed < *x.fixed + x.bytes)
            return Clash{device.indices[state.cut.indices[b]], device.indices[state.cut.indices[a]]};
        }
    }
  }
  return std::nullopt;
}

void Portfolio::start_without_reuse() {
  const Patience endless({}, {});
  for (DeviceState& device : devices_)
    for (PartState& state : device.parts) {
      const Part& part = state.cut.part;
      state.best = part.fixed == 0 ? lay_side_by_side(part)
                                   : pack_in_order({part, SIZE_MAX, endless}, order_buffers(part, Order::size), Fit::first).packing;
    }
}

bool Portfolio::run(const OffsetStrategy& strategy, const Patience& patience, bool to_the_end) {
  const auto start = Patience::Clock::now();
  const std::size_t before = total_bytes();
  PackEnd end = PackEnd::done;
  std::size_t total = 0;  // of this strategy alone
  for (DeviceState& device : devices_) {
    std::size_t peak = 0;
    for (PartState& state : device.parts) {
      std::size_t reached = state.best.peak_bytes;
      if (to_the_end || reached > device.bound) {
        PackAnswer answer = strategy.pack({state.cut.part, to_the_end ? SIZE_MAX : reached, patience});
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
  if (end == PackEnd::done) attempt.peak_bytes = total;
  attempt.note = to_note(end);
  attempt.time_ms = milliseconds_since(start);
  return total_bytes() < before;
}

bool Portfolio::at_bound() const {
  for (std::size_t device = 0; device < devices_.size(); ++device)
    if (peak_bytes(device) > devices_[device].bound) return false;
  return true;
}

std::size_t Portfolio::peak_bytes(std::size_t device) const {
  std::size_t peak = 0;
  for (const PartState& state : devices_[device].parts) peak = std::max(peak, state.best.peak_bytes);
  return peak;
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
      for (std::size_t i = 0; i < state.cut.indices.size(); ++i) out[device.indices[state.cut.indices[i]]] = state.best.offsets[i];
  return out;
}

}  // namespace berth::planning
