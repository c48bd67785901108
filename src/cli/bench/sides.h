// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "berth/storage/storage.h"
#include "cli/bench/cases.h"

// What a case copies: sources with values, and targets for them, from the default allocators of their devices.
namespace berth::internal::cli {

struct BenchSides {
  std::vector<Storage> sources;
  std::vector<Storage> targets;  // as many

  // Read and written, gaps not counted.
  std::size_t bytes() const noexcept;
};

// Every byte of both sides has been written, so that its page is there. The targets hold bytes that no copy of the sources leaves behind
// by chance in many places.
BenchSides make_sides(const BenchCase& one);

// New memory for the targets of a case that wants it cold.
void renew_targets(BenchSides& sides);

// The copy of the case, once.
void copy_sides(const BenchCase& one, const BenchSides& sides);

// Compares the targets with what `convert_element` makes of the sources, in many places: the ends of each, and some in between. Says which
// element is wrong.
std::optional<std::string> first_wrong(const BenchSides& sides);

}  // namespace berth::internal::cli
