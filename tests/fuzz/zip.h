// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "fuzz/target.h"

// Corrects the offsets, sizes, counts and checksums of a zip archive, record by record from its front, but for one in
// sixteen: so that a change reaches what is behind them.
namespace berth::testing::fuzz {

std::string mend_zip(Random& random, std::string bytes);

}  // namespace berth::testing::fuzz
