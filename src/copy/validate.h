// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>

#include "berth/device/backend.h"
#include "copy/span_ref.h"

// Everything that is refused before a byte moves, and what is found out on the way. The errors are those that copy/copy.h names.
namespace berth::internal::copy {

enum class PairKind : unsigned char {
  nothing,      // no elements, or the target is the source
  host,         // both sides are the host's, and apart
  overlapping,  // the sides are in one memory, and their ranges meet
  other,        // apart, and a device has to do with it
};

struct CheckedPair {
  Backend* source = nullptr;
  Backend* target = nullptr;
  PairKind kind = PairKind::nothing;
  bool on_host = false;       // both sides are
  std::size_t run_bytes = 0;  // not 0: of one dtype, and each side is one run of so many bytes
};

CheckedPair check_pair(const SpanRef& source, const SpanRef& target);

// Not 0: there is nothing to refuse, and each side is one run of so many bytes in the host's memory, apart from the other. 0 says nothing:
// check_pair knows more, and throws.
std::size_t host_run_bytes(const SpanRef& source, const SpanRef& target) noexcept;

// The backend of a target that is to be filled.
Backend& check_fill(const SpanRef& target);

// The bytes that the elements lie on. Throws for a span that contradicts itself.
struct ByteRange {
  std::uintptr_t begin;
  std::uintptr_t end;
};
ByteRange checked_range(const SpanRef& span);

[[noreturn]] void throw_shapes(const Shape& source, const Shape& target);

}  // namespace berth::internal::copy
