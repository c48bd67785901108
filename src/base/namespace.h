// SPDX-License-Identifier: Apache-2.0
#pragma once

// The private namespace of base/ is inline: every level uses it, and says `text::join`, not `base::text::join`. All private headers of this
// folder include this one first.
namespace berth::internal {
inline namespace base {}
}  // namespace berth::internal
