// SPDX-License-Identifier: Apache-2.0
#include "cli/byte_count.h"

#include "base/text.h"
#include "berth/base/error.h"

namespace berth::internal::cli {

std::uint64_t parse_byte_count(const std::string& text, const char* option) {
  std::uint64_t count = 0;
  if (!text::parse_bytes(text, count))
    throw ArgumentError(ErrorCode::invalid_argument,
                        {text::join(option, " ", text::quoted(text)), "it is not a byte count", "write 4096, 64KiB or 1.5GiB"});
  return count;
}

}  // namespace berth::internal::cli
