// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/axes.h"
#include "berth/copy/route.h"
#include "copy/validate.h"

// The rules of copy/route.h, and what those who run routes must see as their planner does.
namespace berth::internal::copy {

// REQUIRES: equal shapes with elements, layouts that can be addressed, pieces of a byte at least.
Route plan_steps(const RouteEnd& source, const RouteEnd& target, const RouteSettings& settings);

// The route of a pair that was checked.
Route plan_checked(const SpanRef& source, const SpanRef& target, const CheckedPair& pair);

// The side in whose order a copy walks, and by whose axes it is cut into pieces: that which can least afford to be walked in another. A
// device without kernels then gets the longest runs it can; a device with kernels takes things in any order.
LoopOrder order_of(const Abilities& source, const Abilities& target) noexcept;

}  // namespace berth::internal::copy
