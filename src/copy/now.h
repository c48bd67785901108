// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <vector>

#include "copy/span_ref.h"

// The faces of copy/copy.h for callers in the library that need no stream, and so need not build spans that own anything; and for a batch
// whose spans the caller has no more use for. They check, run and record as those do.
namespace berth {

void copy_now(const SpanRef& source, const SpanRef& target, const Site& site);
void fill_now(const SpanRef& target, Scalar value, const Site& site);
// REQUIRES: equal counts.
void copy_batch_now(std::span<const SpanRef> sources, std::span<const SpanRef> targets, const Site& site);
Event copy_batch_in(std::vector<StridedSpan> sources, std::vector<StridedSpan> targets, const CopyOptions& options, const Site& site);

}  // namespace berth
