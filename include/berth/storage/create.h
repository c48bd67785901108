// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <initializer_list>
#include <iterator>
#include <memory>
#include <optional>
#include <type_traits>
#include <utility>

#include "berth/export.h"
#include "berth/storage/storage.h"

// Functions that make storages, from an allocator or on a device, which means the device's default allocator.
// Any thread may call them.
//
//     Storage x = empty({64, 128}, DType::f32, "cuda:0");
//     Storage a = empty({1024}, DType::f32, "cpu", {.alignment = 4096, .tag = "kv"});
//     Storage s = zeros({16}, DType::i64, scratch_arena);
//     Storage w = from_data(values, {2, 3}, "cuda:0", DType::bf16);
//
// All of these throw OutOfMemory (except `try_empty`), ArgumentError for invalid shapes and alignments,
// DeviceError for missing devices. Nothing is allocated in these cases.
namespace berth {

class AllocatorRef {
 public:
  AllocatorRef(Device device) : device_(device) {}
  AllocatorRef(const char* device) : device_(device) {}
  AllocatorRef(const std::string& device) : device_(device) {}
  AllocatorRef(std::string_view device) : device_(device) {}
  template <class A>
  requires std::is_base_of_v<Allocator, A> AllocatorRef(std::shared_ptr<A> allocator)
      : device_(require_allocator(allocator.get()).device()), allocator_(std::move(allocator)) {}

  Device device() const noexcept { return device_; }
  bool is_default() const noexcept { return allocator_ == nullptr; }
  const std::shared_ptr<Allocator>& allocator() const { return is_default() ? default_allocator(device_) : allocator_; }

 private:
  Device device_;
  std::shared_ptr<Allocator> allocator_;
};

// The bytes are uninitialised.
BERTH_EXPORT Storage empty(const Shape& shape, DType dtype, const AllocatorRef& where, const AllocationOptions& options = {},
                           Site site = Site::here());
// Returns nullopt instead of throwing OutOfMemory.
BERTH_EXPORT std::optional<Storage> try_empty(const Shape& shape, DType dtype, const AllocatorRef& where,
                                              const AllocationOptions& options = {}, Site site = Site::here());
BERTH_EXPORT Storage zeros(const Shape& shape, DType dtype, const AllocatorRef& where, const AllocationOptions& options = {},
                           Site site = Site::here());
BERTH_EXPORT Storage full(const Shape& shape, Scalar value, DType dtype, const AllocatorRef& where, const AllocationOptions& options = {},
                          Site site = Site::here());

// Copies host elements (a vector, an array, a span: anything with std::data and std::size; or a braced list) to
// any device, converted to `dtype` (by default their own). Throws ArgumentError(size_mismatch) when their count
// differs from the shape's.
template <class Values>
requires requires(const Values& v) {
  std::data(v);
  std::size(v);
}
Storage from_data(const Values& values, const Shape& shape, const AllocatorRef& where,
                  DType dtype = dtype_of<std::remove_cvref_t<decltype(*std::data(std::declval<const Values&>()))>>(),
                  const AllocationOptions& options = {}, Site site = Site::here());

template <class T>
Storage from_data(std::initializer_list<T> values, const Shape& shape, const AllocatorRef& where, DType dtype = dtype_of<T>(),
                  const AllocationOptions& options = {}, Site site = Site::here());

// A storage over existing memory: adopted with a deleter; without one borrowed, and then it must outlive the
// storage and its views. `size_bytes`, when given, is the size of the memory from the lowest element on, and is
// checked against what the layout needs: ArgumentError(size_mismatch).
struct BlobOptions {
  std::optional<Strides> strides = {};  // contiguous by default; negative strides reach below the given address
  std::optional<std::size_t> size_bytes = {};
  bool read_only = false;
};
BERTH_EXPORT Storage from_blob(void* data, const Shape& shape, DType dtype, Device device, Deleter deleter = {},
                               const BlobOptions& options = {}, Site site = Site::here());
BERTH_EXPORT Storage from_blob(const void* data, const Shape& shape, DType dtype, Device device, Deleter deleter = {},
                               const BlobOptions& options = {}, Site site = Site::here());

// from_data for `count` elements whose type is known only as a dtype.
BERTH_EXPORT Storage from_values(const void* values, std::size_t count, DType values_dtype, const Shape& shape, const AllocatorRef& where,
                                 DType dtype, const AllocationOptions& options = {}, Site site = Site::here());

template <class Values>
requires requires(const Values& v) {
  std::data(v);
  std::size(v);
}
Storage from_data(const Values& values, const Shape& shape, const AllocatorRef& where, DType dtype, const AllocationOptions& options,
                  Site site) {
  constexpr DType kOwn = dtype_of<std::remove_cvref_t<decltype(*std::data(values))>>();
  return from_values(std::data(values), std::size(values), kOwn, shape, where, dtype, options, site);
}

template <class T>
Storage from_data(std::initializer_list<T> values, const Shape& shape, const AllocatorRef& where, DType dtype,
                  const AllocationOptions& options, Site site) {
  return from_values(values.begin(), values.size(), dtype_of<T>(), shape, where, dtype, options, site);
}

}  // namespace berth
