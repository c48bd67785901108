// SPDX-License-Identifier: Apache-2.0
#include "berth/storage/inspect.h"

#include <ostream>

#include "base/text.h"
#include "berth/base/json.h"

namespace berth {

using namespace internal;

Inspection inspect(const Storage& storage) {
  const Buffer& buffer = storage.buffer();
  return {.dtype = storage.dtype(),
          .shape = storage.shape(),
          .strides = storage.strides(),
          .offset = storage.offset(),
          .device = storage.device(),
          .size_bytes = storage.size_bytes(),
          .buffer_size_bytes = buffer.size_bytes(),
          .pointer = storage.data_ptr(),
          .is_contiguous = storage.is_contiguous(),
          .is_read_only = storage.is_read_only(),
          .is_pinned = storage.is_pinned(),
          .is_shared = storage.is_shared(),
          .is_mapped = storage.is_mapped(),
          .owner = buffer.owner(),
          .allocator = buffer.allocator() == nullptr ? "" : buffer.allocator()->name(),
          .allocator_stats = buffer.allocator() == nullptr ? std::nullopt : std::optional(buffer.allocator()->stats()),
          .tag = buffer.block().tag,
          .use_count = storage.use_count()};
}

std::string Inspection::to_string() const {
  std::string out = text::join(berth::to_string(dtype), ' ', shape.to_string(), " on ", device.to_string(), ", ", text::bytes(size_bytes));
  out += is_contiguous ? std::string(", contiguous") : text::join(", strides ", strides.to_string());
  if (offset != 0) out += text::join(", offset ", offset);
  if (size_bytes != buffer_size_bytes) out += text::join(", view of ", text::bytes(buffer_size_bytes));
  if (is_read_only) out += ", read-only";
  if (is_pinned) out += ", pinned";
  if (is_shared) out += ", shared";
  if (is_mapped) out += ", mapped";
  if (tag) out += text::join(", tag ", text::printable(tag.word()));
  out += text::join(", ", text::pointer(pointer), ", owned by ", allocator.empty() ? berth::to_string(owner) : std::string_view(allocator));
  if (allocator_stats)
    out +=
        text::join(" (", text::bytes(allocator_stats->in_use_bytes), " in use, ", text::bytes(allocator_stats->cached_bytes), " cached)");
  return text::join(out, ", ", use_count, use_count == 1 ? " handle" : " handles");
}

void Inspection::write_json(JsonWriter& json) const {
  const auto list = [&json](std::string_view name, const Dims& dims) {
    json.key(name).begin_array();
    for (const std::int64_t dim : dims) json.value(dim);
    json.end_array();
  };
  json.begin_object().member("dtype", berth::to_string(dtype));
  list("shape", shape);
  list("strides", strides);
  json.member("offset", offset).member("device", device.to_string()).member("size_bytes", size_bytes);
  json.member("buffer_size_bytes", buffer_size_bytes).member("pointer", text::pointer(pointer)).member("is_contiguous", is_contiguous);
  json.member("is_read_only", is_read_only).member("is_pinned", is_pinned).member("is_shared", is_shared);
  json.member("is_mapped", is_mapped).member("owner", berth::to_string(owner));
  json.key("allocator");
  allocator.empty() ? json.null() : json.value(allocator);
  json.key("allocator_stats");
  allocator_stats ? allocator_stats->write_json(json) : static_cast<void>(json.null());
  json.member("tag", tag.word()).member("use_count", use_count).end_object();
}

std::ostream& operator<<(std::ostream& out, const Inspection& inspection) { return out << inspection.to_string(); }

}  // namespace berth
