// SPDX-License-Identifier: Apache-2.0
#include "copy/kernels/byte_table.h"

#include <cstddef>

#include "copy/lanes.h"

namespace berth {

ByteTable make_byte_table(DType from, DType to) noexcept {
  std::byte all[256];
  for (std::size_t i = 0; i < 256; ++i) all[i] = static_cast<std::byte>(i);
  LaneValue lanes[256];
  ByteTable made;
  load_lanes(from, all, 1, 256, lanes);
  store_lanes(to, lane_of(from), lanes, reinterpret_cast<std::byte*>(made.to), 1, 256);
  return made;
}

}  // namespace berth
