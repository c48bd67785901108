// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

// How much work a test does. Counts in tests are the full ones; BERTH_TEST_SCALE (1 by default, lower in the
// quick tiers of scripts/test) scales them down. Every test that scales prints how much it did.
namespace berth::testing {

// `full` times the scale, at least `least`.
std::uint64_t scaled(std::uint64_t full, std::uint64_t least = 1);

// Prints one line about how much a test did, with its seed, so that a run can be judged and repeated.
void did(const std::string& what);

// The seed for random tests: BERTH_TEST_SEED, or a fixed one.
std::uint64_t seed();

}  // namespace berth::testing
