// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <string>

#include "cli/bench/measure.h"

namespace berth::internal::cli {

// One array of objects. What does not apply, or was not measured, is null. What failed has its name and an error, and no figures.
std::string bench_json(std::span<const BenchResult> results, int threads);

// A row for each.
// The device is the one that was measured; none: the host.
std::string bench_table(std::span<const BenchResult> results, int threads, const std::optional<Device>& device);

// Of many: the lowest beside memcpy, and whether any is under a quarter of it.
std::string lowest_table(std::span<const BenchResult> results);

}  // namespace berth::internal::cli
