// SPDX-License-Identifier: Apache-2.0
#include "berth/storage/create.h"

#include <utility>

#include "base/text.h"
#include "berth/base/checked.h"
#include "berth/base/error.h"
#include "storage/make.h"

namespace berth {

namespace {

std::shared_ptr<Allocator> kept_alive(const Place& place) { return place.is_default() ? nullptr : place.allocator(); }

[[noreturn]] void throw_too_small(const Shape& shape, DType dtype, std::size_t need, std::size_t have) {
  throw ArgumentError(ErrorCode::size_mismatch,
                      {text::join("a storage of shape ", shape.to_string(), " of ", to_string(dtype), " over memory from outside"),
                       text::join("it needs ", need, " bytes, and there are ", have), "check the shape and the size"},
                      {{"need", need}, {"have", have}});
}

}  // namespace

Storage empty(const Shape& shape, DType dtype, const Place& place, const AllocationOptions& options, Site site) {
  const std::size_t bytes = shape.size_bytes(dtype);
  const Request request = request_of(bytes, options, site);
  Buffer buffer = BufferMaker::make(request, *place.allocator(), kept_alive(place));
  return StorageMaker::make(std::move(buffer), dtype, shape, Strides::contiguous(shape), 0, bytes / size_bytes(dtype));
}

std::optional<Storage> try_empty(const Shape& shape, DType dtype, const Place& place, const AllocationOptions& options, Site site) {
  const std::size_t bytes = shape.size_bytes(dtype);
  const Request request = request_of(bytes, options, site);
  std::optional<Buffer> buffer = BufferMaker::try_make(request, *place.allocator(), kept_alive(place));
  if (!buffer) return std::nullopt;
  return StorageMaker::make(*std::move(buffer), dtype, shape, Strides::contiguous(shape), 0, bytes / size_bytes(dtype));
}

Storage zeros(const Shape& shape, DType dtype, const Place& place, const AllocationOptions& options, Site site) {
  return full(shape, 0, dtype, place, options, site);
}

Storage full(const Shape& shape, Scalar value, DType dtype, const Place& place, const AllocationOptions& options, Site site) {
  Storage storage = empty(shape, dtype, place, options, site);
  storage.fill(value, {.stream = options.stream}, site);
  return storage;
}

Storage from_bytes(const void* values, std::size_t count, DType values_dtype, const Shape& shape, const Place& place, DType dtype,
                   const AllocationOptions& options, Site site) {
  if (count != shape.num_elements()) {
    throw ArgumentError(ErrorCode::size_mismatch,
                        {text::join("a storage of shape ", shape.to_string(), " from ", count, " values"),
                         text::join("the shape has ", shape.num_elements(), " elements"), "make them equal"},
                        {{"need", shape.num_elements()}, {"have", count}});
  }
  Storage storage = empty(shape, dtype, place, options, site);
  const StridedSpan source{const_cast<void*>(values), values_dtype, shape, Strides::contiguous(shape), Device(), {}};
  copy(source, storage.span(), {.stream = options.stream}, site);
  return storage;
}

Storage from_blob(void* data, const Shape& shape, DType dtype, Device device, Deleter deleter, const BlobOptions& options) {
  // The buffer begins at the lowest element, which with negative strides is not the one at `data`; the deleter gets the address
  // the caller knows.
  Adoption adoption(data, std::move(deleter));
  const Strides strides = options.strides ? *options.strides : Strides::contiguous(shape);
  if (strides.rank() != shape.rank()) return Storage(Buffer(), dtype, shape, strides);  // throws what is wrong
  const std::size_t elements = shape.num_elements();
  const Reach extent = reach(shape, strides);
  const std::size_t size = size_bytes(dtype);
  const std::size_t below = checked_multiply(static_cast<std::size_t>(-extent.lowest), size, "the bytes before the first element");
  const std::size_t above = elements == 0 ? 0 : checked_multiply(static_cast<std::size_t>(extent.highest) + 1, size, "the bytes of a blob");
  if (options.size_bytes && above > *options.size_bytes) throw_too_small(shape, dtype, above, *options.size_bytes);
  void* const start = static_cast<std::byte*>(data) - below;
  Deleter with_callers_address;
  if (adoption.deleter) with_callers_address = [inner = adoption.deleter, data](void*) { inner(data); };
  const std::size_t bytes = checked_add(below, options.size_bytes.value_or(above), "the bytes of a blob");
  adoption.deleter = nullptr;  // from here on wrap_buffer sees to it
  Buffer buffer = wrap_buffer(start, bytes, device, std::move(with_callers_address), options.read_only, Owner::external);
  return StorageMaker::make(std::move(buffer), dtype, shape, strides, -extent.lowest, elements);
}

Storage from_blob(const void* data, const Shape& shape, DType dtype, Device device, Deleter deleter, const BlobOptions& options) {
  BlobOptions read_only = options;
  read_only.read_only = true;
  return from_blob(const_cast<void*>(data), shape, dtype, device, std::move(deleter), read_only);
}

}  // namespace berth
