// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/axes.h"
#include "berth/copy/route.h"
#include "copy/validate.h"

// The planning rules of copy/route.h, and the decisions that planning and running a route must agree on. Pure
// functions; any thread.
namespace berth::internal::copy {

// REQUIRES: equal shapes with elements, addressable layouts, pieces of at least one byte.
Route plan_steps(const RouteEnd& source, const RouteEnd& target, const RouteSettings& settings);

// The route of a validated pair.
Route plan_checked(const SpanRef& source, const SpanRef& target, const ValidatedPair& pair);

// The side whose order a copy walks in, and whose axes it is cut into pieces by: the side that loses most in
// another order. A device without kernels then gets the longest possible runs; a device with kernels handles
// any order.
LoopOrder order_of(const Abilities& source, const Abilities& target) noexcept;

}  // namespace berth::internal::copy
