// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "berth/base/checked.h"
#include "berth/base/dtype.h"
#include "berth/export.h"

// Shapes and strides. `Dims` is a short list of 64-bit integers, stored inline up to rank 6; `Shape` is a
// `Dims` without negative entries; `Strides` is a `Dims` of distances in elements, of any sign, zero included.
// Rank 0 is a scalar: one element.
namespace berth {

// The highest rank berth accepts. Higher ranks are rejected with `limit_exceeded`, whatever their sizes.
inline constexpr std::size_t kMaxRank = 64;

// One entry of a braced list, from an integer of any type: `Shape{v.size(), 3}`. Throws
// ArgumentError(size_overflow) for a value that does not fit in int64_t.
struct Dim {
  std::int64_t value;
  constexpr Dim(std::integral auto given) : value(checked_narrow<std::int64_t>(given, "a dimension")) {}
};

class BERTH_EXPORT Dims {
 public:
  static constexpr std::size_t kInline = 6;

  Dims() noexcept = default;
  Dims(std::initializer_list<Dim> values) {  // throws ArgumentError(limit_exceeded) past kMaxRank
    if (values.size() > kInline) *this = Dims(values.size(), 0);
    rank_ = values.size();
    std::int64_t* const entries = data();
    for (std::size_t i = 0; i < rank_; ++i) entries[i] = values.begin()[i].value;
  }
  explicit Dims(std::span<const std::int64_t> values) {  // the same
    if (values.size() > kInline) {
      assign(values);
      return;
    }
    rank_ = values.size();
    for (std::size_t i = 0; i < rank_; ++i) inline_[i] = values[i];
  }
  Dims(std::size_t rank, std::int64_t value);

  Dims(const Dims& other) { copy_from(other); }
  Dims& operator=(const Dims& other) {
    if (this != &other) copy_from(other);
    return *this;
  }
  Dims(Dims&& other) noexcept { take(other); }
  Dims& operator=(Dims&& other) noexcept {
    if (this != &other) take(other);
    return *this;
  }
  ~Dims() = default;

  std::size_t rank() const noexcept { return rank_; }
  std::size_t size() const noexcept { return rank_; }
  bool empty() const noexcept { return rank_ == 0; }
  std::int64_t operator[](std::size_t axis) const noexcept { return data()[axis]; }
  const std::int64_t* begin() const noexcept { return data(); }
  const std::int64_t* end() const noexcept { return data() + rank_; }
  std::span<const std::int64_t> span() const noexcept { return {data(), rank_}; }

  friend bool operator==(const Dims& a, const Dims& b) noexcept { return std::equal(a.begin(), a.end(), b.begin(), b.end()); }

  // "[2, 3, 4]"
  std::string to_string() const;

 protected:
  // Mutators are for derived classes, which maintain invariants on the entries.
  std::int64_t* data() noexcept { return heap_ ? heap_.get() : inline_; }
  const std::int64_t* data() const noexcept { return heap_ ? heap_.get() : inline_; }
  void append(std::int64_t value) { insert(rank_, value); }
  void insert(std::size_t axis, std::int64_t value) {
    if (rank_ >= kInline) return insert_slowly(axis, value);
    for (std::size_t i = rank_; i > axis; --i) inline_[i] = inline_[i - 1];
    inline_[axis] = value;
    ++rank_;
  }
  void erase(std::size_t axis) {
    if (heap_) return erase_slowly(axis);
    --rank_;
    for (std::size_t i = axis; i < rank_; ++i) inline_[i] = inline_[i + 1];
  }

 private:
  void insert_slowly(std::size_t axis, std::int64_t value);
  void erase_slowly(std::size_t axis);
  void assign(std::span<const std::int64_t> values);
  void copy_from(const Dims& other) {
    if (other.heap_ || heap_) return assign(other.span());
    rank_ = other.rank_;
    // A fixed count copies faster than rank_ entries.
    for (std::size_t i = 0; i < kInline; ++i) inline_[i] = other.inline_[i];
  }
  void take(Dims& other) noexcept {
    rank_ = other.rank_;
    heap_ = std::move(other.heap_);
    for (std::size_t i = 0; i < kInline; ++i) inline_[i] = other.inline_[i];
    other.rank_ = 0;
  }

  std::size_t rank_ = 0;
  std::int64_t inline_[kInline] = {};
  std::unique_ptr<std::int64_t[]> heap_;  // set exactly when rank_ > kInline
};

// Dimensions; none is negative.
class BERTH_EXPORT Shape : public Dims {
 public:
  Shape() noexcept = default;  // a scalar
  Shape(std::initializer_list<Dim> dims) : Dims(dims) { validate(); }
  explicit Shape(std::span<const std::int64_t> dims) : Dims(dims) { validate(); }
  explicit Shape(const Dims& dims) : Dims(dims) { validate(); }

  // [0]: no elements.
  static Shape none() noexcept {
    Shape shape;
    shape.append(0);
    return shape;
  }

  // Remove an axis, or insert one in front of `axis`.
  using Dims::erase;
  void insert(std::size_t axis, std::int64_t value);

  // Replaces one dimension. Throws ArgumentError(invalid_shape) when it is negative.
  void set(std::size_t axis, std::int64_t value);

  // The product of the dimensions: 1 for a scalar, 0 if any dimension is 0. Throws
  // ArgumentError(size_overflow).
  std::size_t num_elements() const;

  // num_elements() * size_bytes(dtype). Past kMaxBytes the first form throws ArgumentError(size_overflow), and
  // the second returns an empty optional.
  std::size_t size_bytes(DType dtype) const;
  std::optional<std::size_t> try_size_bytes(DType dtype) const noexcept;

 private:
  using Dims::append;
  void validate() const;  // throws ArgumentError(invalid_shape{axis, value})
};

// Distances between neighbours along each axis, in elements.
class BERTH_EXPORT Strides : public Dims {
 public:
  using Dims::Dims;
  Strides() noexcept = default;

  static Strides none() noexcept {
    Strides strides;
    strides.append(1);
    return strides;
  }

  using Dims::append;
  using Dims::erase;
  using Dims::insert;
  void set(std::size_t axis, std::int64_t value) noexcept { data()[axis] = value; }

  // Row-major strides of a shape: the last axis has stride 1. Dimensions of size 0 count as 1.
  static Strides contiguous(const Shape& shape);
};

// The range of elements that a strided layout touches: the least and the greatest offset from its first
// element. Both are 0 when there are no elements. Throws ArgumentError(out_of_bounds) when an offset does not
// fit in 64 bits.
struct Reach {
  std::int64_t lowest = 0;
  std::int64_t highest = 0;
};
BERTH_EXPORT Reach reach(const Shape& shape, const Strides& strides);

// The bytes that a strided layout covers, before the address of its first element and from that address on.
// Both are 0 when there are no elements. `try_extent` returns an empty optional when the ranks differ, or when
// the elements or the bytes pass kMaxBytes.
struct Extent {
  std::size_t before_bytes = 0;
  std::size_t from_bytes = 0;
};
BERTH_EXPORT std::optional<Extent> try_extent(const Shape& shape, const Strides& strides, DType dtype) noexcept;

// Whether the elements lie in row-major order without gaps. Axes of size 1 may have any stride; a layout
// without elements is contiguous.
BERTH_EXPORT bool is_contiguous(const Shape& shape, const Strides& strides) noexcept;

// Whether two different indices reach the same element. Exact for the layouts that views make. The search has a
// fixed budget; an adversarial layout that exhausts it is reported as overlapping.
BERTH_EXPORT bool overlaps_itself(const Shape& shape, const Strides& strides) noexcept;

}  // namespace berth
