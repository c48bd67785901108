// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>

#include "berth/device/backend.h"
#include "copy/span_ref.h"

// Argument validation, done before a byte moves, and the facts that it finds for later. The errors are those
// that copy/copy.h names. Any thread.
namespace berth::internal::copy {

enum class PairKind : unsigned char {
  nothing,      // no elements, or the target is the source
  host,         // both sides are host memory, and disjoint
  overlapping,  // the sides are in one memory, and their ranges overlap
  other,        // disjoint, and another device is involved
};

struct ValidatedPair {
  Backend* source = nullptr;
  Backend* target = nullptr;
  PairKind kind = PairKind::nothing;
  bool on_host = false;        // both sides are host memory
  bool source_mapped = false;  // it is a mapped file's (copy/mapped_bytes.h)
  bool target_mapped = false;
  std::size_t run_bytes = 0;  // not 0: the dtypes are equal, and each side is one run of this many bytes
};

ValidatedPair validate_pair(const SpanRef& source, const SpanRef& target);

// Fast path. If not 0, the arguments are valid, and each side is one run of this many bytes in host memory,
// disjoint from the other. 0 means nothing: validate_pair decides, and throws.
std::size_t host_run_bytes(const SpanRef& source, const SpanRef& target) noexcept;

// Validates the target of a fill and returns its backend.
Backend& validate_fill(const SpanRef& target);

// The address range of the elements. Throws for an inconsistent span.
struct ByteRange {
  std::uintptr_t begin;
  std::uintptr_t end;
};
ByteRange checked_range(const SpanRef& span);

bool is_mapped(const ByteRange& range);  // any of it is (copy/mapped_bytes.h)

[[noreturn]] void throw_shapes(const Shape& source, const Shape& target);

}  // namespace berth::internal::copy
