// SPDX-License-Identifier: Apache-2.0
#include "file/tensors.h"

#include <vector>

#include "base/text.h"
#include "berth/base/error.h"
#include "berth/device/backend.h"
#include "berth/device/registry.h"

namespace berth::internal::file {

namespace {

std::span<std::byte> bytes_of(const Storage& contiguous) {
  return {static_cast<std::byte*>(contiguous.data_ptr()), contiguous.size_bytes()};
}

}  // namespace

DType dtype_of(const TensorEntry& entry) {
  if (entry.dtype) return *entry.dtype;
  throw ArgumentError(ErrorCode::unsupported_dtype,
                      {text::join("the tensor ", text::quoted(entry.name), " of ", text::printable(entry.format_dtype)),
                       "berth has no such dtype", "bytes() gives its bytes as u8"},
                      {{"name", text::printable(entry.name)}, {"dtype", text::printable(entry.format_dtype)}});
}

Shape reversed(const Shape& shape) {
  const std::vector<std::int64_t> dims(std::make_reverse_iterator(shape.end()), std::make_reverse_iterator(shape.begin()));
  return Shape(std::span<const std::int64_t>(dims));
}

Storage turned(const Storage& storage) {
  std::vector<std::int64_t> order(storage.rank());
  for (std::size_t i = 0; i < order.size(); ++i) order[i] = static_cast<std::int64_t>(order.size() - 1 - i);
  return storage.permute(Dims(std::span<const std::int64_t>(order)));
}

Storage tensor_over(const Buffer& mapped, const OpenFile& file, const TensorEntry& entry) {
  const DType dtype = dtype_of(entry);
  if (entry.file_offset % size_bytes(dtype) != 0) return read_tensor(file, entry, "cpu").read_only();
  file.require_unchanged();
  const Shape shape = entry.fortran_order ? reversed(entry.shape) : entry.shape;
  const auto first = static_cast<std::int64_t>(entry.file_offset / size_bytes(dtype));
  const Storage made(mapped, dtype, shape, Strides::contiguous(shape), shape.num_elements() == 0 ? 0 : first);
  return entry.fortran_order ? turned(made) : made;
}

Storage bytes_over(const Buffer& mapped, const OpenFile& file, const TensorEntry& entry) {
  file.require_unchanged();
  const auto first = static_cast<std::int64_t>(entry.file_offset);
  return Storage(mapped, DType::u8, {entry.size_bytes}, {1}, entry.size_bytes == 0 ? 0 : first);
}

Storage read_tensor(const OpenFile& file, const TensorEntry& entry, const AllocatorRef& where) {
  const DType dtype = dtype_of(entry);
  file.require_unchanged();
  const bool straight = backend(where.device()).properties().abilities.host_access;
  const Storage bytes = empty(entry.fortran_order ? reversed(entry.shape) : entry.shape, dtype, straight ? where : AllocatorRef("cpu"));
  file.read(entry.file_offset, bytes_of(bytes));
  file.require_unchanged();  // else it may be a mix of old and new bytes
  const Storage placed = straight ? bytes : empty(bytes.shape(), dtype, where);
  if (!straight) placed.copy_from(bytes);
  return entry.fortran_order ? turned(placed) : placed;
}

}  // namespace berth::internal::file
