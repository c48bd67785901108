// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "plan/problem.h"

// Large instances that are hard to pack, and whose answer is known since they are made from it: a rectangle, of the
// answer's height, is cut into buffers. Hard means: at least 150 buffers, and what packs once ends 15 % above the
// answer. Used by the tests of the exact search and by bench/bench_hard.cc.
//
// Of every shape, instances of even numbers are looked at while the search is worked on; those of odd numbers are held
// out, and judge it.
//
//     const HardInstance one = hard_instance(hard_shapes()[0], 2);  // a plan of one.buffers within one.answer bytes?
namespace berth::testing {

enum class Cut : std::uint8_t {
  slices,     // recursively in two, in time or in offsets
  pinwheels,  // recursively in two, or in five around a middle: no straight cut separates these
  tracks,     // from step to step: a few neighbours end, and others of as many bytes in all begin in their place
};

// What is taken away, in every step but one, which stays full and keeps the answer.
enum class Noise : std::uint8_t {
  none,
  shortened,  // a third of the lifetimes by up to a fifth
  dropped,    // a fifth of the buffers that are small
  both,
};

struct HardShape {
  std::string_view name;
  Cut cut = Cut::slices;
  std::size_t height = 0;       // in units: few make many equal sizes
  std::uint32_t steps = 0;      // of time; of `tracks`: as many as it takes
  std::uint64_t time_cuts = 5;  // of ten cuts, those in time: many make short lifetimes
  Noise noise = Noise::none;
};
std::span<const HardShape> hard_shapes() noexcept;

struct HardInstance {
  std::vector<internal::plan::PackBuffer> buffers = {};
  std::vector<std::size_t> offsets = {};  // of a packing with this peak:
  std::size_t answer = 0;                 // the lowest there is
  std::size_t simple = 0;                 // the lowest of all strategies that pack once
};

// The same on every machine.
HardInstance hard_instance(const HardShape& shape, std::uint64_t number);

}  // namespace berth::testing
