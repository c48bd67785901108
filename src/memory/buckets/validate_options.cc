// SPDX-License-Identifier: Apache-2.0
#include "memory/buckets/validate_options.h"

#include <bit>

#include "base/text.h"
#include "berth/base/checked.h"
#include "berth/base/error.h"
#include "berth/device/backend.h"
#include "memory/buckets/buckets.h"

namespace berth::internal::memory {

void check_power_of_two(std::string_view strategy, std::string_view option, std::size_t bytes) {
  if (is_power_of_two(bytes) && bytes <= kMaxBytes) return;
  const bool has_next = bytes <= kMaxBytes / 2;
  throw ArgumentError(
      ErrorCode::invalid_argument,
      {text::join(strategy, " with ", option, '=', bytes), "it is not a power of two that an address space could have",
       has_next ? text::join("use one, such as ", text::bytes(std::bit_ceil(bytes))) : std::string("use a smaller one, such as 16 MiB")},
      {{option, bytes}});
}

void check_limit(std::string_view strategy, std::size_t limit_bytes, std::size_t least_bytes, const Backend& backend) {
  const std::size_t least_taken = try_align_up(least_bytes, grain_of(backend)).value_or(SIZE_MAX);
  if (limit_bytes >= least_taken) return;
  throw ArgumentError(ErrorCode::invalid_argument,
                      {text::join(strategy, " with limit=", text::bytes(limit_bytes)),
                       text::join("its smallest block takes ", text::bytes(least_taken), " of ", backend.device().to_string(),
                                  ", so that nothing could ever be allocated"),
                       "raise the limit, or make the smallest block smaller"},
                      {{"limit", limit_bytes}, {"least", least_taken}});
}

std::string limit_text(std::size_t limit_bytes) {
  return limit_bytes == SIZE_MAX ? std::string() : text::join(", at most ", text::bytes(limit_bytes));
}

}  // namespace berth::internal::memory
