// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "berth/export.h"

namespace berth::internal::html {

// Formats with at most `decimals` decimals, without trailing zeros; independent of the locale.
BERTH_EXPORT std::string decimal(double value, int decimals);

}  // namespace berth::internal::html
