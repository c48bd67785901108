// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

// Verifies lower bounds that a search proved, slowly and by other means: it sweeps over time with the set of
// all states, the offsets that the live buffers can have. Small cases only; a bound that it cannot verify is
// not accepted.
namespace berth::internal::plan::verify {

struct LivingBuffer {
  std::size_t bytes = 0;
  std::uint32_t begin = 0;
  std::uint32_t end = 0;
  std::size_t alignment = 1;
  std::optional<std::size_t> fixed = {};
};

// True: proved that the buffers do not fit below `height`. False: they fit, or a proof would take too long.
bool surely_do_not_fit(std::vector<LivingBuffer> buffers, std::size_t height);

}  // namespace berth::internal::plan::verify
