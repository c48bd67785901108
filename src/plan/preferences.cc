// SPDX-License-Identifier: Apache-2.0
#include "plan/preferences.h"

#include <algorithm>

#include "berth/base/checked.h"

namespace berth::internal::plan {

std::vector<std::size_t> apply_preferences(const std::vector<OffsetPreference>& preferences, const std::vector<PackBuffer>& buffers,
                                           std::vector<std::size_t> offsets, const std::vector<std::size_t>& peaks) {
  for (const auto& [i, wish] : preferences) {
    const PackBuffer& one = buffers[i];
    if (one.fixed || one.bytes == 0 || wish % one.alignment != 0 || !fits(wish, one.bytes, peaks[one.device])) continue;
    const auto in_the_way = [&, low = wish, high = wish + one.bytes](const PackBuffer& other) {
      const std::size_t offset = offsets[static_cast<std::size_t>(&other - buffers.data())];
      return &other != &one && other.device == one.device && other.begin < one.end && one.begin < other.end && offset < high &&
             low < offset + other.bytes;
    };
    if (std::none_of(buffers.begin(), buffers.end(), in_the_way)) offsets[i] = wish;
  }
  return offsets;
}

}  // namespace berth::internal::plan
