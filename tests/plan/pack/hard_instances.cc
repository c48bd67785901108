// SPDX-License-Identifier: Apache-2.0
#include "plan/pack/hard_instances.h"

#include <algorithm>

#include "base/random.h"
#include "plan/pack/parts.h"
#include "plan/pack/strategies.h"

namespace berth::testing {

using namespace internal::base;
using namespace internal::plan;

namespace {

constexpr std::size_t kUnitBytes = 1024;
constexpr std::size_t kLeastBuffers = 150;
constexpr std::size_t kMostBuffers = 450;  // the search is for up to 512

constexpr HardShape kShapes[] = {
    {"slices", Cut::slices, 1024, 400},
    {"slices of any size", Cut::slices, 1 << 20, 100'000},
    {"slices of few sizes", Cut::slices, 48, 300},
    {"short slices", Cut::slices, 1024, 1000, 8},
    {"long slices", Cut::slices, 1024, 200, 3},
    {"shortened slices", Cut::slices, 1024, 400, 5, Noise::shortened},
    {"slices with gaps", Cut::slices, 1024, 400, 5, Noise::dropped},
    {"pinwheels", Cut::pinwheels, 1024, 400},
    {"pinwheels with noise", Cut::pinwheels, 4096, 1000, 5, Noise::both},
    {"tracks", Cut::tracks, 1024},
    {"tracks of few sizes", Cut::tracks, 64},
    {"tracks with gaps", Cut::tracks, 256, 0, 5, Noise::dropped},
};

struct Rectangle {
  std::uint32_t begin, end;  // steps
  std::size_t low, high;     // units

  std::uint64_t steps() const noexcept { return end - begin; }
  std::uint64_t units() const noexcept { return high - low; }
};

// A number strictly between the bounds, in the middle three fifths. REQUIRES: there is one.
std::uint64_t between(Random& random, std::uint64_t low, std::uint64_t high) {
  const std::uint64_t margin = std::max<std::uint64_t>(1, (high - low) / 5);
  return low + margin + random.below(high - low - 2 * margin + 1);
}

bool can_turn(const Rectangle& one) { return one.steps() >= 5 && one.units() >= 5; }

// Five around a middle:
//
//     ^   +---+-----------+
//     |   |   |  above    |
//     |   |   +-------+---+
//  offset | left      |   |
//     |   |   | middle| right
//     |   +---+-------+   |
//     |   |  below    |   |
//     |   +-----------+---+
void turn(Random& random, const Rectangle& one, std::vector<Rectangle>& out) {
  const auto half = static_cast<std::uint32_t>(one.begin + one.steps() / 2);
  const std::size_t middle = one.low + one.units() / 2;
  const auto left = static_cast<std::uint32_t>(between(random, one.begin, half));
  const auto right = static_cast<std::uint32_t>(between(random, half, one.end));
  const std::size_t below = between(random, one.low, middle);
  const std::size_t above = between(random, middle, one.high);
  out.push_back({one.begin, right, one.low, below});
  out.push_back({right, one.end, one.low, above});
  out.push_back({left, one.end, above, one.high});
  out.push_back({one.begin, left, below, one.high});
  out.push_back({left, right, below, above});
}

// REQUIRES: it has two steps or two units.
void slice(Random& random, const HardShape& shape, const Rectangle& one, std::vector<Rectangle>& out) {
  const bool in_time = one.units() < 2 || (one.steps() >= 2 && random.below(10) < shape.time_cuts);
  if (in_time) {
    const auto at = static_cast<std::uint32_t>(between(random, one.begin, one.end));
    out.push_back({one.begin, at, one.low, one.high});
    out.push_back({at, one.end, one.low, one.high});
  } else {
    const std::size_t at = between(random, one.low, one.high);
    out.push_back({one.begin, one.end, one.low, at});
    out.push_back({one.begin, one.end, at, one.high});
  }
}

// Cuts a large one at a time. A little chance, so that not all come to be as large.
std::vector<Rectangle> cut(Random& random, const HardShape& shape, std::size_t count) {
  std::vector<Rectangle> out = {{0, shape.steps, 0, shape.height}};
  while (out.size() < count) {
    std::size_t most = 0;
    std::uint64_t area = 0;
    for (std::size_t i = 0; i < out.size(); ++i) {
      const std::uint64_t its = out[i].steps() * out[i].units() * (3 + random.below(8));
      if (out[i].steps() * out[i].units() < 2 || its <= area) continue;
      most = i;
      area = its;
    }
    const Rectangle one = out[most];
    out.erase(out.begin() + static_cast<std::ptrdiff_t>(most));
    if (shape.cut == Cut::pinwheels && can_turn(one) && random.one_in(2))
      turn(random, one, out);
    else
      slice(random, shape, one, out);
  }
  return out;
}

// Up to three neighbours end at each step. What begins in their place has other bounds.
std::vector<Rectangle> run_tracks(Random& random, const HardShape& shape, std::size_t count) {
  std::vector<Rectangle> live;  // by offset
  for (std::size_t low = 0; low < shape.height;) {
    const std::size_t high = std::min(shape.height, low + 1 + random.below(shape.height / 4));
    live.push_back({0, 0, low, high});
    low = high;
  }
  std::vector<Rectangle> out;
  std::uint32_t now = 1;
  for (; out.size() + live.size() < count; ++now) {
    const std::size_t ends = std::min<std::size_t>(live.size(), 1 + random.below(3));
    const auto first = live.begin() + static_cast<std::ptrdiff_t>(random.below(live.size() - ends + 1));
    const auto last = first + static_cast<std::ptrdiff_t>(ends);
    const std::size_t low = first->low;
    const std::size_t high = last[-1].high;
    for (auto one = first; one != last; ++one) {
      one->end = now;
      out.push_back(*one);
    }
    std::vector<Rectangle> begun = {{now, 0, low, high}};
    for (std::uint64_t cuts = random.below(3); cuts > 0 && begun.back().units() >= 2; --cuts) {
      const std::size_t at = between(random, begun.back().low, high);
      begun.back().high = at;
      begun.push_back({now, 0, at, high});
    }
    live.insert(live.erase(first, last), begun.begin(), begun.end());
  }
  for (Rectangle& one : live) {
    one.end = now;
    out.push_back(one);
  }
  return out;
}

void shorten(Random& random, std::uint32_t full, Rectangle& one) {
  const auto less = static_cast<std::uint32_t>(random.below(one.steps() / 5 + 1));
  const bool early = random.one_in(2);
  const bool before = one.end - less <= full && full < one.end;
  const bool after = one.begin <= full && full < one.begin + less;
  if (early && !after) one.begin += less;
  if (!early && !before) one.end -= less;
}

void disturb(Random& random, const HardShape& shape, std::vector<Rectangle>& cuts) {
  if (shape.noise == Noise::none) return;
  std::uint32_t end = 0;
  std::uint64_t area = 0;
  for (const Rectangle& one : cuts) {
    end = std::max(end, one.end);
    area += one.steps() * one.units();
  }
  const auto full = static_cast<std::uint32_t>(between(random, 0, end));
  if (shape.noise != Noise::dropped)
    for (Rectangle& one : cuts)
      if (random.one_in(3)) shorten(random, full, one);
  if (shape.noise == Noise::shortened) return;
  const std::uint64_t mean = area / cuts.size();
  std::erase_if(cuts, [&](const Rectangle& one) {
    const bool small = one.steps() * one.units() < mean;
    return small && (full < one.begin || one.end <= full) && random.one_in(5);
  });
}

HardInstance make_instance(const HardShape& shape, Random& random) {
  const std::size_t count = kLeastBuffers + random.below(kMostBuffers - kLeastBuffers + 1);
  std::vector<Rectangle> cuts = shape.cut == Cut::tracks ? run_tracks(random, shape, count) : cut(random, shape, count);
  disturb(random, shape, cuts);
  HardInstance out;
  out.answer = shape.height * kUnitBytes;
  for (std::size_t i = cuts.size(); i > 1; --i) std::swap(cuts[i - 1], cuts[random.below(i)]);
  for (const Rectangle& one : cuts) {
    out.buffers.push_back({.bytes = one.units() * kUnitBytes, .begin = one.begin, .end = one.end});
    out.offsets.push_back(one.low * kUnitBytes);
  }
  return out;
}

bool packs_once(const OffsetStrategy& strategy) {
  constexpr std::string_view kPackAgain[] = {"every_order", "promote", "lowest_noise", "exact"};
  return std::find(std::begin(kPackAgain), std::end(kPackAgain), strategy.name) == std::end(kPackAgain);
}

std::size_t simple_peak(const std::vector<PackBuffer>& buffers) {
  const Patience endless{std::nullopt, {}};
  std::size_t best = SIZE_MAX;
  for (const OffsetStrategy& strategy : offset_strategies()) {
    if (!packs_once(strategy)) continue;
    std::size_t peak = 0;
    for (const CutPart& one : cut_into_parts(buffers)) {
      const PackAnswer answer = strategy.pack({one.part, SIZE_MAX / 4, endless});
      peak = std::max(peak, answer.end == PackEnd::done ? answer.packing.peak_bytes : SIZE_MAX);
    }
    best = std::min(best, peak);
  }
  return best;
}

}  // namespace

std::span<const HardShape> hard_shapes() noexcept { return kShapes; }

// Tries until one is hard: most are.
HardInstance hard_instance(const HardShape& shape, std::uint64_t number) {
  const auto at = static_cast<std::uint64_t>(&shape - kShapes);
  for (std::uint64_t again = 0;; ++again) {
    Random random((number << 16 | at << 8) + again);
    HardInstance out = make_instance(shape, random);
    if (out.buffers.size() < kLeastBuffers) continue;
    out.simple = simple_peak(out.buffers);
    if (out.simple >= out.answer + out.answer * 15 / 100) return out;
  }
}

}  // namespace berth::testing
