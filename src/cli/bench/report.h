// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <string>

#include "cli/bench/measure.h"

namespace berth::internal::cli {

// An array of objects. Members that do not apply, or were not measured, are null. A failed case has its name
// and an error, and no figures.
std::string bench_json(std::span<const BenchResult> results, int threads);

// A row for each. `device` is the one that was measured; none: the host.
std::string bench_table(std::span<const BenchResult> results, int threads, const std::optional<Device>& device);

// The cases with the lowest rate relative to memcpy, and whether any is below a quarter of it.
std::string lowest_table(std::span<const BenchResult> results);

}  // namespace berth::internal::cli
