// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstddef>
#include <span>
#include <string_view>

// The options of a strategy as text, "limit=8GiB,decay=5s": names with byte counts, times or numbers, in any order, each at most once.
namespace berth::internal::memory {

struct TextOption {
  std::string_view name;  // a literal
  // Where it goes, one of the three; stays as it is when the text does not give it.
  std::size_t* bytes = nullptr;
  std::chrono::milliseconds* time = nullptr;
  double* number = nullptr;  // plain, as in 1.05
};

// Throws ArgumentError, naming the option that is wrong and the ones there are. `example` is a whole text that is right.
void read_options(std::string_view strategy, std::string_view text, std::span<const TextOption> known, std::string_view example);

}  // namespace berth::internal::memory
