// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "berth/storage/storage.h"
#include "cli/bench/cases.h"

// The storages of a case: initialized sources, and targets for them, from the default allocators of their
// devices.
namespace berth::internal::cli {

struct BenchSides {
  std::vector<Storage> sources;
  std::vector<Storage> targets;  // one per source

  // Bytes read plus written, without gaps.
  std::size_t bytes() const noexcept;
};

// Every byte of both sides is written, so that its page is resident. The targets are filled with bytes that a
// correct copy is unlikely to produce.
BenchSides make_sides(const BenchCase& one);

// Allocates new targets for a cold case.
void renew_targets(BenchSides& sides);

// Runs the copy of the case once.
void copy_sides(const BenchCase& one, const BenchSides& sides);

// Compares the targets with `convert_element` of the sources, for many elements: the ends of each, and a random
// sample in between. Returns a description of the first wrong element.
std::optional<std::string> first_wrong(const BenchSides& sides);

}  // namespace berth::internal::cli
