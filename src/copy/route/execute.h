// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "berth/copy/route.h"
#include "berth/device/backend.h"
#include "copy/validate.h"

// Runs routes synchronously: everything is done when a call returns. Any thread.
namespace berth::internal::copy {

// Plans the route of a validated pair, and runs it. Staging and scratch come from the default allocators of
// their devices, and are freed on return, also after a failure. Throws DeviceError when a device reports an
// error, OutOfMemory; the target may then be partly written.
void run_pair(const SpanRef& source, const SpanRef& target, const ValidatedPair& pair);

// Runs a given route. REQUIRES: it was planned for these two spans.
void run_route(const Route& route, const SpanRef& source, const SpanRef& target, const ValidatedPair& pair);

// Fills a validated target with an element of its dtype.
void run_fill(const SpanRef& target, Backend& backend, const std::array<std::byte, 16>& element);

}  // namespace berth::internal::copy
