// SPDX-License-Identifier: Apache-2.0
#include "berth/memory/rounded.h"

#include <algorithm>

#include "base/text.h"
#include "berth/device/backend.h"
#include "berth/device/registry.h"
#include "memory/buckets/buckets.h"
#include "memory/buckets/validate_options.h"

namespace berth {

using namespace internal;
using namespace internal::memory;

std::shared_ptr<Allocator> rounded(Device device, const RoundedOptions& options) {
  Backend& backend = berth::backend(device);
  const std::size_t cutoff = options.cutoff_bytes;
  const std::size_t usual = std::min(std::max(grain_of(backend), backend.properties().alignment), cutoff);
  const std::size_t least = options.least_bytes == 0 ? usual : options.least_bytes;
  check_power_of_two("rounded", "cutoff", cutoff);
  check_power_of_two("rounded", "least", least);
  if (least > cutoff) {
    throw ArgumentError(
        ErrorCode::invalid_argument,
        {text::join("rounded with least=", text::bytes(least), " and cutoff=", text::bytes(cutoff)),
         "the smallest bucket is larger than the cutoff, where the powers of two end", "lower least, or raise cutoff to at least that"},
        {{"least", least}, {"cutoff", cutoff}});
  }
  check_limit("rounded", options.limit_bytes, least, backend);
  return enlisted(std::make_shared<Buckets>(
      backend, BucketRules{.name = "rounded",
                           .rounding = {least, cutoff},
                           .limit_bytes = options.limit_bytes,
                           .settings = text::join("rounded on ", device.to_string(), ", powers of two from ", text::bytes(least), " to ",
                                                  text::bytes(cutoff), ", then multiples of that", limit_text(options.limit_bytes))}));
}

}  // namespace berth
