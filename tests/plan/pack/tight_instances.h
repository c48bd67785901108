// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <vector>

#include "base/random.h"
#include "plan/problem.h"

// Small instances that are hard to pack, and a slow and obvious computation of their optimum.
namespace berth::testing {

using namespace internal::base;
using namespace internal::plan;

// At every time, all of `height` is live. At each turn either two or three buffers end and one with all their
// bytes begins at their offsets, so that they should be adjacent; or one ends and two replace it. Soon not all
// of them can be adjacent, and the optimum is above the lower bound. (Next to no random instances are like
// that.)
inline std::vector<internal::plan::PackBuffer> tight_instance(Random& random, std::size_t height, std::uint32_t turns) {
  std::vector<internal::plan::PackBuffer> out;
  std::vector<std::size_t> alive;
  const auto bear = [&](std::size_t bytes, std::uint32_t begin) {
    alive.push_back(out.size());
    out.push_back({.bytes = bytes, .begin = begin, .end = turns + 1});
  };
  const auto kill = [&](std::uint32_t now) {
    const std::size_t at = random.below(alive.size());
    const std::size_t dead = alive[at];
    alive.erase(alive.begin() + static_cast<std::ptrdiff_t>(at));
    out[dead].end = now;
    return out[dead].bytes;
  };
  for (std::size_t left = height; left != 0;) {
    const std::size_t bytes = std::min<std::size_t>(left, 1 + random.below(2));
    bear(bytes, 0);
    left -= bytes;
  }
  for (std::uint32_t now = 1; now <= turns; ++now) {
    if (alive.size() > 3 && !random.one_in(3)) {
      std::size_t bytes = kill(now);
      for (std::uint64_t more = 1 + random.below(2); more > 0; --more) bytes += kill(now);
      bear(bytes, now);
    } else {
      const std::size_t bytes = kill(now);
      const std::size_t first = bytes == 1 ? 1 : 1 + random.below(bytes - 1);
      bear(first, now);
      if (bytes != first) bear(bytes - first, now);
    }
  }
  return out;
}

// Whether the buffers can be packed below `height`, by a walk through time with every set of offsets that the
// live ones can have. Exponential in the number of live buffers.
inline bool fits_by_force(const std::vector<internal::plan::PackBuffer>& buffers, std::size_t height) {
  using Locations = std::map<std::size_t, std::size_t>;  // of the live ones: offset by buffer
  std::vector<std::size_t> births(buffers.size());
  for (std::size_t i = 0; i < births.size(); ++i) births[i] = i;
  std::sort(births.begin(), births.end(), [&](std::size_t a, std::size_t b) { return buffers[a].begin < buffers[b].begin; });
  std::map<Locations, bool> states = {{{}, true}};
  for (const std::size_t born : births) {
    std::map<Locations, bool> next;
    const internal::plan::PackBuffer& one = buffers[born];
    for (const auto& [old, unused] : states) {
      Locations locations = old;
      std::erase_if(locations, [&](const auto& location) { return buffers[location.first].end <= one.begin; });
      for (std::size_t offset = 0; offset + one.bytes <= height; ++offset) {
        const bool free = offset % one.alignment == 0 && (!one.fixed || *one.fixed == offset) &&
                          std::all_of(locations.begin(), locations.end(), [&](const auto& location) {
                            return location.second >= offset + one.bytes || location.second + buffers[location.first].bytes <= offset;
                          });
        if (!free) continue;
        Locations with = locations;
        with.emplace(born, offset);
        next.emplace(std::move(with), true);
      }
    }
    states = std::move(next);
  }
  return !states.empty();
}

}  // namespace berth::testing
