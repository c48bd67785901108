// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

// Parses the options of a strategy from text, "limit=8GiB,decay=5s": names with byte counts, times, numbers or
// counts, in any order, each at most once. Any thread.
namespace berth::internal::memory {

struct TextOption {
  std::string_view name;  // a literal
  // The target, one of the five; it keeps its value when the text does not have the option.
  std::size_t* bytes = nullptr;
  std::chrono::milliseconds* time = nullptr;
  double* number = nullptr;  // decimal, as in 1.05
  std::uint32_t* count = nullptr;
  bool* yes = nullptr;  // yes or no
};

// Throws ArgumentError, which names the bad option and the valid ones. `example` is a complete valid text.
void read_options(std::string_view strategy, std::string_view text, std::span<const TextOption> known, std::string_view example);

}  // namespace berth::internal::memory
