// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "berth/copy/route.h"
#include "copy/validate.h"

// Runs the steps of routes, on the calling thread, which they have left when it goes on.
namespace berth::internal::copy {

// Plans the route of a pair that was checked, and runs it. Staging and scratch come from the default allocators of their devices, and are
// back with them on return, also after a failure. Throws DeviceError when a device refuses, OutOfMemory; the target may then hold a part.
void run_pair(const SpanRef& source, const SpanRef& target, const CheckedPair& pair);

// The same by a given route. REQUIRES: it was planned for these two.
void run_route(const Route& route, const SpanRef& source, const SpanRef& target, const CheckedPair& pair);

// Fills a target that was checked: an element of its dtype.
void run_fill(const SpanRef& target, Backend& backend, const std::array<std::byte, 16>& element);

}  // namespace berth::internal::copy
