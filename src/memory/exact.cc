// SPDX-License-Identifier: Apache-2.0
#include "berth/memory/exact.h"

#include "base/text.h"
#include "berth/device/backend.h"
#include "berth/device/registry.h"
#include "memory/buckets/buckets.h"
#include "memory/buckets/validate_options.h"

namespace berth {

using namespace internal;
using namespace internal::memory;

std::shared_ptr<Allocator> exact(Device device, const ExactOptions& options) {
  Backend& backend = berth::backend(device);
  const std::size_t granularity = options.granularity_bytes == 0 ? backend.properties().alignment : options.granularity_bytes;
  check_power_of_two("exact", "granularity", granularity);
  check_limit("exact", options.limit_bytes, granularity, backend);
  return enlisted(
      std::make_shared<Buckets>(backend, BucketRules{.name = "exact",
                                                     .rounding = {granularity, granularity},
                                                     .limit_bytes = options.limit_bytes,
                                                     .settings = text::join("exact on ", device.to_string(), ", sizes in multiples of ",
                                                                            text::bytes(granularity), limit_text(options.limit_bytes))}));
}

}  // namespace berth
