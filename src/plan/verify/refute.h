// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

// Checks claims that nothing smaller is possible, slowly and by other means than those who make them: it walks through time with every set of
// places that the buffers alive can have. Small cases only; a claim that it cannot check is not accepted.
namespace berth::internal::plan::verify {

struct LivingBuffer {
  std::size_t bytes = 0;
  std::uint32_t begin = 0;
  std::uint32_t end = 0;
  std::size_t alignment = 1;
  std::optional<std::size_t> fixed = {};
};

// True: it is certain that the buffers cannot all end at or below `height`. False: they can, or it would take too long to find out.
bool surely_do_not_fit(std::vector<LivingBuffer> buffers, std::size_t height);

}  // namespace berth::internal::plan::verify
