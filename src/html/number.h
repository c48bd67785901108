// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "berth/export.h"

namespace berth::internal::html {

// With so many decimals at most, and nothing after a round number; the same in every locale.
BERTH_EXPORT std::string decimal(double value, int decimals);

}  // namespace berth::internal::html
