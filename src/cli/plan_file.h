// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "berth/plan/plan.h"

namespace berth::internal::cli {

// Reads a plan that `berth plan --out` wrote. `max_memory` is as on the command line; empty: as usual.
Plan read_plan(const std::string& path, const std::string& max_memory);

}  // namespace berth::internal::cli
