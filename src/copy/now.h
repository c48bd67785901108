// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <vector>

#include "copy/span_ref.h"

// The functions of copy/copy.h for callers in the library that need no stream, and so need no owning spans; and
// for a batch whose spans the caller gives up. They validate, run and record as the public ones do. Any thread.
namespace berth::internal::copy {

// The spans of a batch, each made on access: an array of thousands of spans would waste memory.
struct SpanList {
  const void* items;
  std::size_t count;
  SpanRef (*make)(const void* items, std::size_t index) noexcept;

  SpanRef operator[](std::size_t index) const noexcept { return make(items, index); }
};

void copy_now(const SpanRef& source, const SpanRef& target, const Site& site);
void fill_now(const SpanRef& target, Scalar value, const Site& site);
// REQUIRES: equal counts.
void copy_batch_now(const SpanList& sources, const SpanList& targets, const Site& site);
Event copy_batch_in(std::vector<StridedSpan> sources, std::vector<StridedSpan> targets, const CopyOptions& options, const Site& site);

}  // namespace berth::internal::copy
