// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "plan/pack/exact/buffer_set.h"
#include "plan/pack/packer.h"

// A part in the form in which it is searched: bytes divided by their common unit, and of all times only those at which a set of buffers is
// live together that no other time's set contains. Two buffers that are ever live together are so in one of these sections, so nothing else
// of time matters for what may lie where.
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
  std::uint16_t begin = 0;  // sections, half open
  std::uint16_t end = 0;
  std::array<double, kWidths> widths = {};  // of its life: in steps, in the graph's own time, in sections
};

struct Instance {
  std::vector<ExactBuffer> buffers = {};
  std::vector<BufferSet> together = {};  // for each, those that are live with it at some time
  std::size_t sections = 0;
  std::size_t unit_bytes = 1;
  Units lower_bound = 0;
  bool aligned = false;  // some buffer may not lie at every unit
};

// Nothing when there are more than kMostBuffers, or when sizes are too fine for 30 bits of units.
std::optional<Instance> make_instance(const Part& part);

}  // namespace berth::internal::plan::pack::exact
