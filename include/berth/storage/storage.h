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

// Storage: dtype + shape + strides + offset over a buffer. A view is a storage over the same buffer as another;
// making one moves no bytes. Storages are values: copying one copies the handle, `clone` copies the bytes.
//
//     Storage x = empty({64, 3, 224, 224}, DType::f32, "cpu");
//     Storage first = x.slice(0, 0, 1);             // a view of the first image
//     Storage nhwc = x.permute({0, 2, 3, 1});       // a view in another order
//     Storage h = nhwc.to(DType::bf16);             // new bytes, converted
//
// storage/create.h has the functions that make storages. Handles may be used from any thread; a single handle,
// like an int, must not be used by two threads at once.
namespace berth {

namespace internal::storage {
struct StorageMaker;
}

class AllocatorRef;

class BERTH_EXPORT Storage {
 public:
  Storage() noexcept : shape_(Shape::none()), strides_(Strides::none()) {}  // empty: shape [0], f32, on cpu

  Storage(const Storage&) = default;
  Storage& operator=(const Storage&) = default;
  Storage(Storage&& other) noexcept;  // leaves `other` without elements
  Storage& operator=(Storage&& other) noexcept;
  ~Storage() = default;

  // A view of part of a buffer, validated. Offsets are in elements of the dtype. Throws ArgumentError:
  // out_of_bounds{need, have} when an element is outside the buffer.
  Storage(Buffer buffer, DType dtype, const Shape& shape, const Strides& strides, std::int64_t offset = 0);

  DType dtype() const noexcept { return dtype_; }
  const Shape& shape() const noexcept { return shape_; }
  const Strides& strides() const noexcept { return strides_; }  // in elements
  std::int64_t offset() const noexcept { return offset_; }      // of the first element, in elements
  std::size_t rank() const noexcept { return shape_.rank(); }
  std::size_t num_elements() const noexcept { return num_elements_; }
  // Of the elements, without gaps.
  std::size_t size_bytes() const noexcept { return num_elements_ * berth::size_bytes(dtype_); }
  Device device() const noexcept { return buffer_.device(); }
  const Buffer& buffer() const noexcept { return buffer_; }
  long use_count() const noexcept { return buffer_.use_count(); }

  bool is_contiguous() const noexcept { return berth::is_contiguous(shape_, strides_); }
  bool is_read_only() const noexcept { return buffer_.is_read_only(); }
  bool is_shared() const noexcept { return buffer_.is_shared(); }  // with other processes; see Buffer
  bool is_mapped() const noexcept { return buffer_.is_mapped(); }  // from a file; see Buffer
  bool is_pinned() const noexcept;                                 // asks the memory, not the device's name
  // Whether both are over the same buffer.
  bool is_view_of(const Storage& other) const noexcept { return buffer_ && buffer_ == other.buffer_; }

  // Releases the bytes now, and not when the last handle goes: the storage has no elements afterwards. A mapped
  // file is flushed first. Throws AccessError(busy) while other handles or views have the buffer, and
  // DeviceError(io_error) when the flush fails; then nothing has changed.
  void close();

  // Another shape. The elements that the old and the new one both have, counted in row-major order, keep their values;
  // further ones are uninitialised. The bytes grow in place where the allocator can (Allocator::try_grow), else they
  // move: then addresses taken before (`data_ptr`, `data<T>()`, spans) are invalid, while all handles and views of the
  // buffer follow, and stay on their elements. When they grow, they grow by half at least, so that appending one by one
  // copies each byte some three times in all; `buffer().size_bytes()` is what there is room for. A smaller shape gives
  // nothing back. REQUIRES: no other thread uses the buffer during the call, nor does pending work of a stream other
  // than `stream`; the call waits for its copy there.
  //
  // Throws, with nothing changed: ArgumentError(not_viewable) for a view that does not cover its whole buffer in order;
  // AccessError: read_only, and busy while a DLPack export, a pending copy or `Buffer::keep_alive` has the address;
  // DeviceError(unsupported) for bytes that are not an allocator's, and for those that other processes have (shared,
  // mapped, wrapped, imported); OutOfMemory.
  void resize(const Shape& shape, StreamRef stream = {}, Site site = Site::here());

  // The address of the first element, unchecked: it may belong to a device. Null when there are no elements.
  void* data_ptr() const noexcept;

  // The elements as the host sees them. Throws ArgumentError(unsupported_dtype) when T is not the element type,
  // (misaligned) when the address is not aligned for T; AccessError: wrong_device when the host cannot access
  // them, read_only for a non-const T.
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

  // One element, read from whatever device it is on. Throws ArgumentError(out_of_bounds) and, for another T,
  // (unsupported_dtype).
  template <class T>
  T item(const Dims& index = {}) const {
    // A stored bool may hold any byte; a C++ one may not.
    std::conditional_t<std::is_same_v<T, bool>, unsigned char, T> value;
    read_element(index, dtype_of<T>(), &value);
    return static_cast<T>(value);
  }

  // ---- Views. None moves a byte; all throw ArgumentError for axes and ranges that do not exist. Axes may be
  // negative: -1 is the last.

  // Elements begin, begin + step, … before end along one axis. Negative begin and end count from the back; both
  // are clipped to the axis, as in Python. A negative step walks backwards. An omitted bound, {}, is the end of
  // the axis on its side: slice(0, 2) is Python's [2:], slice(0, {}, 2) is [:2], slice(0, {}, {}, -1) is
  // [::-1].
  Storage slice(int axis, std::optional<std::int64_t> begin, std::optional<std::int64_t> end = {}, std::int64_t step = 1) const;
  // One index of an axis, which is dropped.
  Storage select(int axis, std::int64_t index) const;
  Storage transpose(int axis_a, int axis_b) const;
  Storage permute(const Dims& order) const;
  Storage flip(int axis) const;
  // Broadcasts axes of size 1, and new leading axes, without copying (stride 0). -1 keeps the size of an axis.
  Storage expand(const Dims& shape) const;
  Storage squeeze(int axis) const;    // drops an axis of size 1
  Storage unsqueeze(int axis) const;  // inserts one
  // Other dimensions over the same elements; one may be -1. Throws ArgumentError(not_viewable) when no strides
  // express it: then `clone().reshape(…)` does it with a copy. `can_reshape` tests for this.
  Storage reshape(const Dims& shape) const;
  bool can_reshape(const Dims& shape) const;
  // Any layout over the same buffer; the offset counts from the start of the buffer.
  Storage as_strided(const Shape& shape, const Strides& strides, std::int64_t offset = 0) const;
  // The same with an offset that counts from the first element of this view, and may be negative.
  Storage strided_view(const Shape& shape, const Strides& strides, std::int64_t offset = 0) const;
  // The same bytes as another dtype. Element sizes that are equal always work; otherwise the last axis must be
  // contiguous, and its bytes and the offset must be whole numbers of new elements. Throws
  // ArgumentError(size_mismatch) when they are not.
  Storage reinterpret(DType dtype) const;
  // The same elements, which this handle may not change.
  Storage read_only() const;

  // ---- Bytes.

  // The same elements on another device, or as another dtype; returns this storage itself when there is nothing
  // to do. A copy is contiguous, allocated by the same allocator when the device stays the same and by the
  // device's default allocator otherwise. With `non_blocking` it holds the elements once the stream has run the
  // copy: wait for `stream.record()`.
  Storage to(Device device, const CopyOptions& options = {}, Site site = Site::here()) const;
  Storage to(const char* device, const CopyOptions& options = {}, Site site = Site::here()) const {
    return to(Device(device), options, site);
  }
  Storage to(DType dtype, const CopyOptions& options = {}, Site site = Site::here()) const;
  Storage to(Device device, DType dtype, const CopyOptions& options = {}, Site site = Site::here()) const;
  // A contiguous copy, from the same allocator (from the device's default allocator for external memory).
  Storage clone(const CopyOptions& options = {}, Site site = Site::here()) const;
  // Itself if it is contiguous, else a clone.
  Storage contiguous(const CopyOptions& options = {}, Site site = Site::here()) const;

  // Copies and converts into this storage. Shapes must be equal. Throws AccessError(read_only),
  // ArgumentError(overlapping_view, size_mismatch), DeviceError; nothing has been written in these cases. The
  // event has completed unless the copy is non-blocking.
  Event copy_from(const Storage& source, const CopyOptions& options = {}, Site site = Site::here()) const;
  Event fill(Scalar value, const CopyOptions& options = {}, Site site = Site::here()) const;

  // Announces that a stream other than the one it was allocated for uses the bytes: see Buffer::used_on.
  void used_on(StreamRef stream) const { buffer_.used_on(stream); }

  // For copy/ and other code that does not know storages.
  StridedSpan span() const;

 private:
  friend struct internal::storage::StorageMaker;

  // REQUIRES: every element is inside the buffer; num_elements is the shape's.
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
  AllocatorRef allocator_ref() const;  // to allocate a copy on the same device from
  Storage copy_to(const AllocatorRef& target, DType target_dtype, const CopyOptions& options, const Site& site) const;
  void require_contiguous(const char* what) const;
  void require_resizable(const Shape& wanted) const;
  void require_writable(const char* what) const;
  std::size_t axis(int given, const char* what) const;

  Buffer buffer_;
  std::int64_t offset_ = 0;
  std::size_t num_elements_ = 0;  // == shape_.num_elements()
  Shape shape_;
  Strides strides_;  // as long as shape_
  DType dtype_ = DType::f32;
};

// Whether shape, dtype and bits are equal, on any devices.
BERTH_EXPORT bool equal(const Storage& a, const Storage& b);

// Copies sources[i] into targets[i]. All pairs are validated before a byte moves.
BERTH_EXPORT Event copy_batch(std::span<const Storage> sources, std::span<const Storage> targets, const CopyOptions& options = {},
                              Site site = Site::here());

}  // namespace berth
