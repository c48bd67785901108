// SPDX-License-Identifier: Apache-2.0
#pragma once

// Every level uses what base/ has, and says `text::join`, not `base::text::join`. All private headers of this folder include this one.
namespace berth::internal {

namespace base {}
using namespace base;

}  // namespace berth::internal
