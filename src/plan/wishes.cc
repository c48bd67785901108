// SPDX-License-Identifier: Apache-2.0
#include "plan/wishes.h"

#include <algorithm>

#include "berth/base/checked.h"

namespace berth::planning {

std::vector<std::size_t> grant_wishes(const std::vector<SharedBuffer>& buffers, std::vector<std::size_t> offsets,
                                      const std::vector<std::size_t>& peaks) {
  for (std::size_t i = 0; i < buffers.size(); ++i) {
    const PackBuffer& one = buffers[i].pack;
    if (!one.preferred || one.fixed || one.bytes == 0) continue;
    const std::size_t wish = *one.preferred;
    if (wish % one.alignment != 0 || !fits(wish, one.bytes, peaks[buffers[i].device])) continue;
    const auto in_the_way = [&](const SharedBuffer& other) {
      const std::size_t offset = offsets[static_cast<std::size_t>(&other - buffers.data())];
      return &other != &buffers[i] && other.device == buffers[i].device && other.pack.begin < one.end && one.begin < other.pack.end &&
             offset < wish + one.bytes && wish < offset + other.pack.bytes;
    };
    if (std::none_of(buffers.begin(), buffers.end(), in_the_way)) offsets[i] = wish;
  }
  return offsets;
}

}  // namespace berth::planning
