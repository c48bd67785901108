// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/pieces.h"
#include "copy/route/route_stage.h"

// Runs routes of many pieces between the host and a device with streams in a pipeline, with several pieces in
// flight (copy/route/pipeline.h). Any thread.
namespace berth::internal::copy {

bool is_pipelined(const Route& route, const ValidatedPair& pair) noexcept;

// REQUIRES: is_pipelined; the loop and the cut are those that the route was planned with.
void run_staged(const Route& route, const SpanRef& source, const SpanRef& target, const ValidatedPair& pair, const Loop& loop,
                const Cut& by);

}  // namespace berth::internal::copy
