// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>

#include "berth/copy/route.h"

// How two layouts are walked together; used for every step of a route. A pure function; any thread.
namespace berth::internal::copy {

// REQUIRES: those of make_loop (base/axes.h).
Walk walk_of(std::span<const std::int64_t> shape, std::span<const std::int64_t> source, std::span<const std::int64_t> target) noexcept;

}  // namespace berth::internal::copy
