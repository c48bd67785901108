// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "plan/verify/judge.h"

namespace berth::internal::plan::verify {

// Whether no two of these buffers of a parallel plan may share bytes: of each two, some use of the one may come after
// some use of the other, and the other way round. REQUIRES: they differ.
bool are_unordered(const Judge& judge, const std::vector<std::uint32_t>& buffers);

}  // namespace berth::internal::plan::verify
