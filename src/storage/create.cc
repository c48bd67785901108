// SPDX-License-Identifier: Apache-2.0
#include "berth/storage/create.h"

#include <utility>

#include "base/text.h"
#include "berth/base/checked.h"
#include "berth/base/error.h"
#include "berth/storage/nested.h"
#include "storage/buffer_state.h"
#include "storage/make.h"
#include "storage/recycled.h"

namespace berth {

using namespace internal;
using namespace internal::storage;

namespace {

std::shared_ptr<Allocator> kept_alive(const AllocatorRef& where) { return where.is_default() ? nullptr : where.allocator(); }

[[noreturn]] void throw_too_small(const Shape& shape, DType dtype, std::size_t need, std::size_t have) {
  throw ArgumentError(ErrorCode::size_mismatch,
                      {text::join("a storage of shape ", shape.to_string(), " of ", to_string(dtype), " over memory from outside"),
                       text::join("it needs ", need, " bytes, and there are ", have), "check the shape and the size"},
                      {{"need", need}, {"have", have}});
}

[[noreturn]] void throw_bad_blob(const Shape& shape, const Strides& strides, ErrorCode code, std::string why) {
  throw ArgumentError(
      code,
      {text::join("a storage of shape ", shape.to_string(), " and strides ", strides.to_string(), " over memory from outside"),
       std::move(why), "check the address, the shape and the strides"},
      {{"shape", shape.to_string()}, {"strides", strides.to_string()}});
}

}  // namespace

void throw_ragged(std::size_t axis, std::int64_t first, std::int64_t other) {
  throw ArgumentError(
      ErrorCode::size_mismatch,
      {"a storage from nested values", text::join("along axis ", axis, " one row has ", first, " entries, and another ", other),
       "give rows of one length, or the values in one list with a shape"},
      {{"axis", axis}, {"need", first}, {"have", other}});
}

// ---- buffers

Buffer::State::State(Request&& request, Allocator& given, std::shared_ptr<Allocator>&& keep)
    : block(given.allocate(std::move(request), Site())), allocator(&given), kept_alive(std::move(keep)), owner(Owner::allocator) {}

namespace {

// Frees a block unless ownership was passed on.
struct Unowned {
  const Block& block;
  Allocator* allocator;
  ~Unowned() {
    if (allocator != nullptr) allocator->deallocate(block);
  }
};

}  // namespace

Buffer BufferMaker::make(Request&& request, Allocator& allocator, std::shared_ptr<Allocator> kept_alive) {
  const Site site = request.site;
  Buffer made(std::allocate_shared<Buffer::State>(Recycled<Buffer::State>(), std::move(request), allocator, std::move(kept_alive)));
  if (is_watching_storages()) [[unlikely]]
    enter(made, site);
  return made;
}

std::optional<Buffer> BufferMaker::try_make(Request&& request, Allocator& allocator, std::shared_ptr<Allocator> kept_alive) {
  const Site site = request.site;
  const std::optional<Block> block = allocator.try_allocate(std::move(request), Site());
  if (!block) return std::nullopt;
  Unowned unowned{*block, &allocator};
  auto state = std::allocate_shared<Buffer::State>(Recycled<Buffer::State>(), *block, allocator, std::move(kept_alive));
  unowned.allocator = nullptr;
  Buffer made(std::move(state));
  if (is_watching_storages()) [[unlikely]]
    enter(made, site);
  return made;
}

Buffer BufferMaker::wrap(void* data, std::size_t bytes, Device device, Deleter& deleter, bool read_only, Owner owner, const Site& site) {
  auto state = std::allocate_shared<Buffer::State>(Recycled<Buffer::State>(), Block{.data = data, .bytes = bytes, .device = device}, owner,
                                                   read_only);
  if (deleter) {
    state->deleter = std::make_unique<Deleter>();
    state->deleter->swap(deleter);
  }
  Buffer made(std::move(state));
  if (is_watching_storages()) [[unlikely]]
    enter(made, site);
  return made;
}

// ---- storages

Storage empty(const Shape& shape, DType dtype, const AllocatorRef& where, const AllocationOptions& options, Site site) {
  const std::size_t bytes = shape.size_bytes(dtype);
  Allocator& allocator = *where.allocator();
  Buffer buffer = BufferMaker::make(request_of(bytes, options, allocator, site), allocator, kept_alive(where));
  if (options.padded) BufferMaker::set_used_bytes(buffer, bytes);
  return StorageMaker::make(std::move(buffer), dtype, shape, Strides::contiguous(shape), 0, bytes / size_bytes(dtype));
}

std::optional<Storage> try_empty(const Shape& shape, DType dtype, const AllocatorRef& where, const AllocationOptions& options, Site site) {
  const std::size_t bytes = shape.size_bytes(dtype);
  Allocator& allocator = *where.allocator();
  std::optional<Buffer> buffer = BufferMaker::try_make(request_of(bytes, options, allocator, site), allocator, kept_alive(where));
  if (!buffer) return std::nullopt;
  if (options.padded) BufferMaker::set_used_bytes(*buffer, bytes);
  return StorageMaker::make(*std::move(buffer), dtype, shape, Strides::contiguous(shape), 0, bytes / size_bytes(dtype));
}

Storage zeros(const Shape& shape, DType dtype, const AllocatorRef& where, const AllocationOptions& options, Site site) {
  if (options.stream) return full(shape, 0, dtype, where, options, site);  // which waits for the fill
  AllocationOptions zeroed = options;
  zeroed.zeroed = true;  // the zero of every dtype is made of zero bytes
  return empty(shape, dtype, where, zeroed, site);
}

Storage full(const Shape& shape, Scalar value, DType dtype, const AllocatorRef& where, const AllocationOptions& options, Site site) {
  Storage storage = empty(shape, dtype, where, options, site);
  storage.fill(value, {.stream = options.stream}, site);
  return storage;
}

Storage from_values(const void* values, std::size_t count, DType values_dtype, const Shape& shape, const AllocatorRef& where, DType dtype,
                    const AllocationOptions& options, Site site) {
  if (count != shape.num_elements()) {
    throw ArgumentError(ErrorCode::size_mismatch,
                        {text::join("a storage of shape ", shape.to_string(), " from ", count, " values"),
                         text::join("the shape has ", shape.num_elements(), " elements"), "make them equal"},
                        {{"need", shape.num_elements()}, {"have", count}});
  }
  Storage storage = empty(shape, dtype, where, options, site);
  const StridedSpan source{const_cast<void*>(values), values_dtype, shape, Strides::contiguous(shape), Device(), {}};
  berth::copy(source, storage.span(), {.stream = options.stream}, site);
  return storage;
}

Storage from_blob(void* data, const Shape& shape, DType dtype, Device device, Deleter deleter, const BlobOptions& options, Site site) {
  // The buffer begins at the lowest element, which with negative strides is not the one at `data`; the deleter
  // gets the caller's address.
  Adoption adoption(data, std::move(deleter));
  const Strides strides = options.strides ? *options.strides : Strides::contiguous(shape);
  const std::size_t elements = shape.size_bytes(dtype) / size_bytes(dtype);
  const auto extent = try_extent(shape, strides, dtype);
  const auto first = reinterpret_cast<std::uintptr_t>(data);
  if (elements != 0 && data == nullptr) throw_bad_blob(shape, strides, ErrorCode::invalid_argument, "there is no memory at a null pointer");
  if (shape.rank() != strides.rank())
    throw_bad_blob(shape, strides, ErrorCode::size_mismatch, "there is not one stride for each dimension");
  if (!extent || first < extent->before_bytes)
    throw_bad_blob(shape, strides, ErrorCode::out_of_bounds, "its elements lie outside the address space");
  const std::size_t need = extent->before_bytes + extent->from_bytes;
  if (options.size_bytes && need > *options.size_bytes) throw_too_small(shape, dtype, need, *options.size_bytes);
  Deleter with_callers_address;
  if (adoption.deleter) with_callers_address = [inner = adoption.deleter, data](void*) { inner(data); };
  adoption.deleter = nullptr;  // from here on wrap_buffer calls it on failure
  Buffer buffer = wrap_buffer(reinterpret_cast<void*>(first - extent->before_bytes), options.size_bytes.value_or(need), device,
                              std::move(with_callers_address), {.read_only = options.read_only}, site);
  return StorageMaker::make(std::move(buffer), dtype, shape, strides, static_cast<std::int64_t>(extent->before_bytes / size_bytes(dtype)),
                            elements);
}

Storage from_blob(const void* data, const Shape& shape, DType dtype, Device device, Deleter deleter, const BlobOptions& options,
                  Site site) {
  BlobOptions read_only = options;
  read_only.read_only = true;
  return from_blob(const_cast<void*>(data), shape, dtype, device, std::move(deleter), read_only, site);
}

}  // namespace berth
