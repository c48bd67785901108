// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>

#include "berth/base/shape.h"
#include "berth/copy/copy.h"
#include "berth/export.h"
#include "berth/storage/buffer.h"

// Storage: dtype + shape + strides + offset over a buffer. A view is a storage that shares its buffer with another; making one moves no
// bytes. Storages are values: copying one copies the handle, `clone` copies the bytes.
//
//     Storage x = empty({64, 3, 224, 224}, DType::f32, "cpu");
//     Storage first = x.slice(0, 0, 1);             // a view of the first image
//     Storage nhwc = x.permute({0, 2, 3, 1});       // a view in another order
//     Storage h = nhwc.to(DType::bf16);             // new bytes, converted
//
// Making storages is in storage/create.h. Handles may be used from any thread; a single handle, like an int, not from two at once.
namespace berth {

namespace internal::storage {
struct StorageMaker;
}

class Place;

class BERTH_EXPORT Storage {
 public:
  Storage() noexcept : shape_(Shape::none()), strides_(Strides::none()) {}  // no elements: shape [0], f32, on cpu

  Storage(const Storage&) = default;
  Storage& operator=(const Storage&) = default;
  Storage(Storage&& other) noexcept;  // leaves it without elements
  Storage& operator=(Storage&& other) noexcept;
  ~Storage() = default;

  // A view of part of a buffer, checked. Offsets are in elements of the dtype. Throws ArgumentError: out_of_bounds{need, have} when an
  // element lies outside the buffer.
  Storage(Buffer buffer, DType dtype, const Shape& shape, const Strides& strides, std::int64_t offset = 0);

  DType dtype() const noexcept { return dtype_; }
  const Shape& shape() const noexcept { return shape_; }
  const Strides& strides() const noexcept { return strides_; }  // in elements
  std::int64_t offset() const noexcept { return offset_; }      // of the first element, from the start of the buffer, in elements
  std::size_t rank() const noexcept { return shape_.rank(); }
  std::size_t num_elements() const noexcept { return num_elements_; }
  std::size_t size_bytes() const noexcept { return num_elements_ * berth::size_bytes(dtype_); }  // of the elements, gaps not counted
  Device device() const noexcept { return buffer_.device(); }
  const Buffer& buffer() const noexcept { return buffer_; }
  long use_count() const noexcept { return buffer_.use_count(); }

  bool is_contiguous() const noexcept { return berth::is_contiguous(shape_, strides_); }
  bool is_read_only() const noexcept { return buffer_.is_read_only(); }
  bool is_shared() const noexcept { return buffer_.is_shared(); }  // with other processes; see Buffer
  bool is_mapped() const noexcept { return buffer_.is_mapped(); }  // from a file; see Buffer
  bool is_pinned() const noexcept;                                 // the truth about the memory, not about the name of the device
  bool is_view_of(const Storage& other) const noexcept { return buffer_ && buffer_ == other.buffer_; }  // they share a buffer

  // The address of the first element, unchecked: it may belong to a device. Null when there are no elements.
  void* data_ptr() const noexcept;

  // The elements as the host sees them. Throws ArgumentError(unsupported_dtype) when T is not the element type, (misaligned) when the
  // address is not right for T; AccessError: wrong_device when the host may not touch them, read_only for a T that is not const.
  template <class T>
  T* data() const {
    return static_cast<T*>(checked_data(dtype_of<std::remove_const_t<T>>(), alignof(T), !std::is_const_v<T>));
  }

  // The same as a span over all elements; also throws ArgumentError(not_viewable) unless they are contiguous.
  template <class T>
  std::span<T> elements() const {
    require_contiguous("elements");
    return {data<T>(), num_elements_};
  }

  // One element, read from whatever device it is on. Throws ArgumentError(out_of_bounds) and, for another T, (unsupported_dtype).
  template <class T>
  T item(const Dims& index = {}) const {
    // A stored bool may hold any byte; a C++ one may not.
    std::conditional_t<std::is_same_v<T, bool>, unsigned char, T> value;
    read_element(index, dtype_of<T>(), &value);
    return static_cast<T>(value);
  }

  // ---- Views. None moves a byte; all throw ArgumentError for axes and ranges that are not there. Axes may be negative: -1 is the last.

  // Elements begin, begin + step, … before end along one axis. Negative begin and end count from the back; both are clipped to the axis,
  // as in Python. A negative step walks backwards. Left out, {}, they are where the step begins and ends: slice(0, 2) is Python's [2:],
  // slice(0, {}, 2) is [:2], slice(0, {}, {}, -1) is [::-1].
  Storage slice(int axis, std::optional<std::int64_t> begin, std::optional<std::int64_t> end = {}, std::int64_t step = 1) const;
  // One element along an axis, which disappears.
  Storage select(int axis, std::int64_t index) const;
  Storage transpose(int axis_a, int axis_b) const;
  Storage permute(const Dims& order) const;
  Storage flip(int axis) const;
  // Repeats axes of size 1, and new leading ones, without copying (stride 0). -1 keeps the size of an axis.
  Storage expand(const Dims& shape) const;
  Storage squeeze(int axis) const;    // drops an axis of size 1
  Storage unsqueeze(int axis) const;  // inserts one
  // Other dimensions over the same elements; one may be -1. Throws ArgumentError(not_viewable) when the elements do not lie so that a
  // view can show them: then `clone().reshape(…)` does it with a copy. `can_reshape` asks.
  Storage reshape(const Dims& shape) const;
  bool can_reshape(const Dims& shape) const;
  // Any layout over the same buffer; the offset counts from the start of the buffer.
  Storage as_strided(const Shape& shape, const Strides& strides, std::int64_t offset = 0) const;
  // The same bytes as another dtype. Equal sizes always work; otherwise the last axis must be contiguous, and its bytes and the offset a
  // whole number of new elements. Throws ArgumentError(size_mismatch) when they are not.
  Storage reinterpret(DType dtype) const;
  // The same elements, which this handle may not change.
  Storage read_only() const;

  // ---- Bytes.

  // The same elements elsewhere, or as another dtype; this very storage when there is nothing to do. The result of a copy is contiguous,
  // from the same allocator when the device stays the same and from the device's default one otherwise. With `non_blocking` it holds
  // the elements once the stream gets there: wait for `stream.record()`.
  Storage to(Device device, const CopyOptions& options = {}, Site site = Site::here()) const;
  Storage to(const char* device, const CopyOptions& options = {}, Site site = Site::here()) const {
    return to(Device(device), options, site);
  }
  Storage to(DType dtype, const CopyOptions& options = {}, Site site = Site::here()) const;
  Storage to(Device device, DType dtype, const CopyOptions& options = {}, Site site = Site::here()) const;
  // New bytes, contiguous, from the same allocator (from the device's default one when the bytes came from outside).
  Storage clone(const CopyOptions& options = {}, Site site = Site::here()) const;
  Storage contiguous(const CopyOptions& options = {}, Site site = Site::here()) const;  // this very storage when it is

  // Copies and converts into this storage. Shapes must be equal. Throws AccessError(read_only), ArgumentError(overlapping_view,
  // size_mismatch), DeviceError; nothing has been written then. The event is done unless the copy is non-blocking.
  Event copy_from(const Storage& source, const CopyOptions& options = {}, Site site = Site::here()) const;
  Event fill(Scalar value, const CopyOptions& options = {}, Site site = Site::here()) const;

  // A stream beside the one it was allocated for uses the bytes: see Buffer::used_on.
  void used_on(StreamRef stream) const { buffer_.used_on(stream); }

  // For copy/ and other code that knows no storages.
  StridedSpan span() const;

 private:
  friend struct internal::storage::StorageMaker;

  // REQUIRES: every element lies inside the buffer; num_elements is the shape's.
  Storage(Buffer buffer, DType dtype, Shape&& shape, Strides&& strides, std::int64_t offset, std::size_t num_elements) noexcept
      : buffer_(std::move(buffer)),
        offset_(offset),
        num_elements_(num_elements),
        shape_(std::move(shape)),
        strides_(std::move(strides)),
        dtype_(dtype) {}
  Storage view(Shape shape, Strides strides, std::int64_t offset, std::size_t num_elements) const;
  void* checked_data(DType dtype, std::size_t alignment, bool write) const;
  void read_element(const Dims& index, DType dtype, void* value) const;
  Place place() const;  // where a copy on the same device belongs
  Storage copy_to(const Place& target, DType target_dtype, const CopyOptions& options, const Site& site) const;
  void require_contiguous(const char* what) const;
  void require_writable(const char* what) const;
  std::size_t axis(int given, const char* what) const;

  Buffer buffer_;
  std::int64_t offset_ = 0;
  std::size_t num_elements_ = 0;  // == shape_.num_elements()
  Shape shape_;
  Strides strides_;  // as long as shape_
  DType dtype_ = DType::f32;
};

// Same shape, dtype and bits, wherever they are.
BERTH_EXPORT bool equal(const Storage& a, const Storage& b);

// Copies sources[i] into targets[i]. All pairs are checked before a byte moves.
BERTH_EXPORT Event copy_batch(std::span<const Storage> sources, std::span<const Storage> targets, const CopyOptions& options = {},
                              Site site = Site::here());

}  // namespace berth
