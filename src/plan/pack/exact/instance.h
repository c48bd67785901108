// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "plan/pack/exact/buffer_set.h"
#include "plan/pack/packer.h"

// A part in the form that is searched: sizes divided by their common unit, and time reduced to the maximal
// cliques of the interval graph, called sections: sets of buffers live together that no other time's set
// contains. Two buffers whose lifetimes overlap are together in some section, so sections are all that matters
// for overlaps.
//
//     time       0  1  2  3  4        sections   0  1
//     a          [-----)                         a
//     b             [--------)                   b  b
//     c                   [--)                      c        (time 2 holds b alone: it is no section)
namespace berth::internal::plan::pack::exact {

using Units = std::int32_t;

inline constexpr Units kNotFixed = -1;
inline constexpr std::size_t kWidths = 3;

struct ExactBuffer {
  Units size = 0;
  Units alignment = 1;
  Units fixed = kNotFixed;
  std::uint16_t begin = 0;  // sections, half-open
  std::uint16_t end = 0;
  std::array<double, kWidths> widths = {};  // of its lifetime: in steps, in the graph's own time, in sections
};

struct Instance {
  std::vector<ExactBuffer> buffers = {};
  std::vector<BufferSet> together = {};  // for each, the buffers whose lifetimes overlap its own
  std::size_t sections = 0;
  std::size_t unit_bytes = 1;
  Units lower_bound = 0;
  bool aligned = false;  // some buffer has an alignment above one unit
};

// Nothing when there are more than kMostBuffers, or when sizes need more than 30 bits in units.
std::optional<Instance> make_instance(const Part& part);

}  // namespace berth::internal::plan::pack::exact
