// SPDX-License-Identifier: Apache-2.0
#include "copy/validate.h"

#include "base/text.h"
#include "berth/base/checked.h"
#include "berth/base/error.h"
#include "berth/device/backend.h"
#include "berth/device/registry.h"
#include "device/host_access.h"

namespace berth::internal::copy {

namespace {

[[noreturn]] void throw_overlapping(const SpanRef& target) {
  throw ArgumentError(ErrorCode::overlapping_view,
                      {text::join("writing to a view of shape ", target.shape->to_string(), " and strides ", target.strides->to_string()),
                       "two indices reach the same element, so the result would depend on the order",
                       "write to a clone, or to the storage it is a view of"},
                      {{"shape", target.shape->to_string()}, {"strides", target.strides->to_string()}});
}

[[noreturn]] void throw_span(const SpanRef& span, ErrorCode code, std::string why, std::string help) {
  throw ArgumentError(code,
                      {text::join("a span of shape ", span.shape->to_string(), " and strides ", span.strides->to_string()), std::move(why),
                       std::move(help)},
                      {{"shape", span.shape->to_string()}, {"strides", span.strides->to_string()}});
}

void require_writable(const SpanRef& target, std::string_view what) {
  if (!target.read_only) return;
  throw AccessError(
      ErrorCode::read_only,
      {text::join(what, " a storage of shape ", target.shape->to_string()), "it is read-only", "clone() gives a copy that can be written"},
      {{"shape", target.shape->to_string()}});
}

// Detects a device that is lost, or belongs to the parent of a forked process, before the other side has done
// any work.
Backend& live_backend(Device device) {
  Backend& found = backend(device);
  if (found.properties().abilities.host_access || found.is_alive()) [[likely]]
    return found;
  // The backend knows the exact reason.
  const Status asked = found.copy({nullptr, device, nullptr, device, 0}, {});
  const Failure lost{ErrorCode::device_lost, 0, "the device is gone"};
  throw_failure(asked ? lost : asked.failure(), device, "using memory");
}

bool meet(const ByteRange& a, const ByteRange& b) noexcept { return a.begin < b.end && b.begin < a.end; }

PairKind kind_of(const SpanRef& source, const ByteRange& reads, const SpanRef& target, const ByteRange& writes, const ValidatedPair& pair) {
  if (writes.begin == writes.end) return PairKind::nothing;
  if ((!pair.on_host && pair.source != pair.target) || !meet(reads, writes)) return pair.on_host ? PairKind::host : PairKind::other;
  const bool same = source.data == target.data && source.dtype == target.dtype && *source.strides == *target.strides;
  return same ? PairKind::nothing : PairKind::overlapping;
}

}  // namespace

void throw_shapes(const Shape& source, const Shape& target) {
  throw ArgumentError(ErrorCode::size_mismatch,
                      {text::join("copying ", source.to_string(), " to ", target.to_string()), "the shapes differ",
                       "use reshape or expand to make them equal"},
                      {{"source", source.to_string()}, {"target", target.to_string()}});
}

ByteRange checked_range(const SpanRef& span) {
  if (span.shape->rank() != span.strides->rank())
    throw_span(span, ErrorCode::size_mismatch, "there is not one stride for each dimension", "use Strides::contiguous(shape)");
  const auto extent = try_extent(*span.shape, *span.strides, span.dtype);
  if (!extent) throw_span(span, ErrorCode::out_of_bounds, "its elements lie farther apart than 63 bits can count", "use smaller strides");
  const auto first = reinterpret_cast<std::uintptr_t>(span.data);
  if (extent->from_bytes == 0) return {first, first};
  if (span.data == nullptr)
    throw_span(span, ErrorCode::invalid_argument, "it has elements at a null pointer", "pass the address of the first");
  if (first < extent->before_bytes || !try_add(first, extent->from_bytes))
    throw_span(span, ErrorCode::out_of_bounds, "its elements lie outside the address space", "use smaller strides");
  return {first - extent->before_bytes, first + extent->from_bytes};
}

ValidatedPair validate_pair(const SpanRef& source, const SpanRef& target) {
  const ByteRange writes = checked_range(target);
  ValidatedPair pair;
  pair.target = &live_backend(target.device);
  require_writable(target, "copying into");
  const ByteRange reads = checked_range(source);
  pair.source = source.device == target.device ? pair.target : &live_backend(source.device);
  if (*source.shape != *target.shape) throw_shapes(*source.shape, *target.shape);
  const bool contiguous = is_contiguous(*target.shape, *target.strides);
  if (!contiguous && overlaps_itself(*target.shape, *target.strides)) throw_overlapping(target);
  // Host devices share one address space, whatever they are called.
  pair.on_host = device::is_host(*pair.source) && device::is_host(*pair.target);
  pair.kind = kind_of(source, reads, target, writes, pair);
  pair.source_mapped = source.may_be_mapped && is_mapped(reads);
  pair.target_mapped = target.may_be_mapped && is_mapped(writes);
  if (contiguous && source.dtype == target.dtype && is_contiguous(*source.shape, *source.strides))
    pair.run_bytes = writes.end - writes.begin;
  return pair;
}

std::size_t host_run_bytes(const SpanRef& source, const SpanRef& target) noexcept {
  const auto in_reach = [](const SpanRef& span) {
    const Backend* const found = find_backend(span.device);
    return found != nullptr && device::is_host(*found) && span.data != nullptr && span.shape->rank() == span.strides->rank() &&
           is_contiguous(*span.shape, *span.strides);
  };
  if (target.read_only || source.dtype != target.dtype || *source.shape != *target.shape) return 0;
  if (!in_reach(source) || !in_reach(target)) return 0;
  const std::size_t bytes = target.shape->try_size_bytes(target.dtype).value_or(0);
  const auto from = reinterpret_cast<std::uintptr_t>(source.data);
  const auto to = reinterpret_cast<std::uintptr_t>(target.data);
  if (!try_add(from, bytes) || !try_add(to, bytes) || meet({from, from + bytes}, {to, to + bytes})) return 0;
  return bytes;
}

Backend& validate_fill(const SpanRef& target) {
  checked_range(target);
  Backend& found = live_backend(target.device);
  require_writable(target, "filling");
  return found;
}

}  // namespace berth::internal::copy
