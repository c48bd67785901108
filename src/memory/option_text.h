// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <span>
#include <string_view>

// The options of a strategy as text, "least=512,cutoff=16MiB": names and byte counts, in any order, each at most once.
namespace berth {

struct ByteOption {
  std::string_view name;  // a literal
  std::size_t* value;     // where it goes; stays as it is when the text does not give it
};

// Throws ArgumentError, naming the option that is wrong and the ones there are. `example` is a whole text that is right.
void read_options(std::string_view strategy, std::string_view text, std::span<const ByteOption> known, std::string_view example);

}  // namespace berth
