// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "berth/export.h"

// The version these headers belong to. Before 1.0 a new minor version may change the interface; CHANGELOG.md says how.
#define BERTH_VERSION_MAJOR 0
#define BERTH_VERSION_MINOR 1
#define BERTH_VERSION_PATCH 0

namespace berth {

// The version of the library that runs: "0.1.0".
BERTH_EXPORT const char* version() noexcept;

}  // namespace berth
