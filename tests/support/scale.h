// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

// How much a test does. Counts in tests are the full ones; BERTH_TEST_SCALE (1 by default here, set lower by scripts/test for the quick
// tiers) shrinks them. Every test that scales says what it did.
namespace berth::testing {

// `full` times the scale, at least `least`.
std::uint64_t scaled(std::uint64_t full, std::uint64_t least = 1);

// Prints one line of what a test did, with its seed, so that a run can be judged and repeated.
void did(const std::string& what);

// The seed for random tests: BERTH_TEST_SEED, or a fixed one.
std::uint64_t seed();

}  // namespace berth::testing
