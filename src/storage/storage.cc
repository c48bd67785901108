// SPDX-License-Identifier: Apache-2.0
#include "berth/storage/storage.h"

#include <cstring>
#include <utility>
#include <vector>

#include "base/text.h"
#include "berth/base/checked.h"
#include "berth/base/error.h"
#include "berth/device/backend.h"
#include "berth/device/registry.h"
#include "berth/storage/create.h"
#include "copy/mapped_bytes.h"
#include "copy/now.h"
#include "record/emit.h"
#include "storage/make.h"

namespace berth {

using namespace internal;
using namespace internal::copy;
using namespace internal::record;
using namespace internal::storage;

namespace {

[[noreturn]] void throw_outside(DType dtype, const Shape& shape, const Strides& strides, std::int64_t offset, std::size_t need,
                                std::size_t have) {
  throw ArgumentError(
      ErrorCode::out_of_bounds,
      {text::join("a view of shape ", shape.to_string(), ", strides ", strides.to_string(), ", offset ", offset, " of ", to_string(dtype)),
       need == 0 ? std::string("an element lies before the buffer, or farther away than 63 bits can count")
                 : text::join("it needs ", need, " bytes, the buffer has ", have),
       "use a smaller shape, stride or offset"},
      {{"need", need}, {"have", have}});
}

void require_inside(DType dtype, const Shape& shape, const Strides& strides, std::int64_t offset, std::size_t bytes) {
  (void)shape.size_bytes(dtype);  // throws when there are too many
  const auto extent = try_extent(shape, strides, dtype);
  const auto first = try_multiply(offset, static_cast<std::int64_t>(size_bytes(dtype)));
  if (!extent || !first || *first < 0 || static_cast<std::size_t>(*first) < extent->before_bytes)
    throw_outside(dtype, shape, strides, offset, 0, bytes);
  const auto need = try_add(static_cast<std::size_t>(*first), extent->from_bytes);
  if (!need || *need > bytes) throw_outside(dtype, shape, strides, offset, need.value_or(SIZE_MAX), bytes);
}

// Memory that others have given may be mapped by berth as well.
bool may_be_mapped(const Storage& x) noexcept { return has_mapped_bytes() && x.buffer().owner() != Owner::allocator; }

// A non-owning span, for copies that are done on return.
SpanRef span_of(const Storage& x) noexcept {
  return {x.data_ptr(), x.dtype(), x.shape(), x.strides(), x.device(), x.is_read_only(), may_be_mapped(x)};
}

// Fast path for a small copy between two contiguous host storages: there is nothing to plan and nothing to
// record, and the invariant of storages, that every element is inside the buffer, replaces validation. Returns
// false when the general path has to decide.
bool try_short_copy(const Storage& source, const Storage& target) noexcept {
  constexpr std::size_t kMostBytes = 4096;
  if (source.dtype() != target.dtype() || source.size_bytes() - 1 >= kMostBytes || source.shape() != target.shape()) return false;
  if (source.device() != Device() || target.device() != Device() || target.is_read_only() || is_recording()) return false;
  if (!source.is_contiguous() || !target.is_contiguous() || may_be_mapped(source) || may_be_mapped(target)) return false;
  std::memmove(target.data_ptr(), source.data_ptr(), source.size_bytes());
  return true;
}

// The bytes of a buffer that the elements of a storage reach. REQUIRES: it has elements.
struct ByteRange {
  std::size_t offset;
  std::size_t bytes;
};
ByteRange range_in_buffer(const Storage& x) noexcept {
  const auto extent = try_extent(x.shape(), x.strides(), x.dtype());
  const auto first = static_cast<std::size_t>(static_cast<std::byte*>(x.data_ptr()) - static_cast<std::byte*>(x.buffer().data()));
  return {first - extent->before_bytes, extent->before_bytes + extent->from_bytes};
}

// Bytes of a mapped file can disappear, so the guard of the mapping checks them before they are touched.
// Accesses that are refused anyway are not checked.
void before_touch(const Storage& x, bool write) {
  if (!x.is_mapped() || x.num_elements() == 0 || (write && x.is_read_only())) return;
  const ByteRange range = range_in_buffer(x);
  BufferMaker::before_touch(x.buffer(), range.offset, range.bytes, write);
}

void before_touch(std::span<const Storage> storages, bool write) {
  for (const Storage& storage : storages) before_touch(storage, write);
}

std::vector<StridedSpan> owned_spans(std::span<const Storage> storages) {
  std::vector<StridedSpan> spans;
  spans.reserve(storages.size());
  for (const Storage& storage : storages) spans.push_back(storage.span());
  return spans;
}

SpanList list_of(std::span<const Storage> storages) noexcept {
  return {storages.data(), storages.size(),
          [](const void* items, std::size_t i) noexcept { return span_of(static_cast<const Storage*>(items)[i]); }};
}

}  // namespace

Storage::Storage(Storage&& other) noexcept
    : buffer_(std::move(other.buffer_)),
      offset_(std::exchange(other.offset_, 0)),
      num_elements_(std::exchange(other.num_elements_, 0)),
      shape_(std::move(other.shape_)),
      strides_(std::move(other.strides_)),
      dtype_(other.dtype_) {
  other.shape_ = Shape::none();
  other.strides_ = Strides::none();
}

Storage& Storage::operator=(Storage&& other) noexcept {
  if (this == &other) return *this;
  buffer_ = std::move(other.buffer_);
  offset_ = std::exchange(other.offset_, 0);
  num_elements_ = std::exchange(other.num_elements_, 0);
  shape_ = std::exchange(other.shape_, Shape::none());
  strides_ = std::exchange(other.strides_, Strides::none());
  dtype_ = other.dtype_;
  return *this;
}

Storage::Storage(Buffer buffer, DType dtype, const Shape& shape, const Strides& strides, std::int64_t offset) : Storage() {
  if (shape.rank() != strides.rank()) {
    throw ArgumentError(ErrorCode::size_mismatch,
                        {text::join("a view of shape ", shape.to_string(), " with strides ", strides.to_string()),
                         "there must be one stride for each dimension", "give as many strides as dimensions"},
                        {{"need", shape.rank()}, {"have", strides.rank()}});
  }
  require_inside(dtype, shape, strides, offset, buffer.size_bytes());
  *this = StorageMaker::make(std::move(buffer), dtype, shape, strides, offset, shape.num_elements());
}

bool Storage::is_pinned() const noexcept {
  const Backend* const behind = find_backend(device());
  return (behind != nullptr && behind->properties().abilities.pinned) || BufferMaker::is_page_locked(buffer_);
}

void Storage::close() {
  if (use_count() > 1) {
    throw AccessError(ErrorCode::busy,
                      {"closing a storage", text::join(use_count() - 1, " other handles have its bytes"), "drop them first"},
                      {{"handles", use_count() - 1}});
  }
  if (num_elements_ != 0 && BufferMaker::guard(buffer_) != nullptr) {
    const ByteRange range = range_in_buffer(*this);
    BufferMaker::guard(buffer_)->before_close(range.offset, range.bytes);
  }
  *this = {};
}

void* Storage::data_ptr() const noexcept {
  if (num_elements_ == 0) return nullptr;
  return static_cast<std::byte*>(buffer_.data()) + offset_ * static_cast<std::int64_t>(berth::size_bytes(dtype_));
}

void* Storage::checked_data(DType dtype, std::size_t alignment, bool write) const {
  if (dtype != dtype_) {
    throw ArgumentError(ErrorCode::unsupported_dtype,
                        {text::join("reading elements of ", to_string(dtype_), " as ", to_string(dtype)), "the dtypes differ",
                         text::join("use to(", to_string(dtype), ") to convert or reinterpret to see the bits")},
                        {{"have", to_string(dtype_)}, {"need", to_string(dtype)}});
  }
  if (write) require_writable("a pointer to write through");
  const Backend& behind = backend(device());
  if (!behind.properties().abilities.host_access) {
    throw AccessError(ErrorCode::wrong_device,
                      {text::join("a host pointer into ", device().to_string()), "the host may not touch that memory",
                       "use to(\"cpu\") for a copy, or data_ptr() for code that runs on the device"},
                      {{"have", device().to_string()}, {"need", "cpu"}});
  }
  void* const address = data_ptr();
  if (reinterpret_cast<std::uintptr_t>(address) % alignment != 0) {
    throw ArgumentError(ErrorCode::misaligned,
                        {text::join("elements of ", to_string(dtype_), " at ", text::pointer(address)),
                         text::join("the address is not a multiple of ", alignment), "clone() gives an aligned copy"},
                        {{"alignment", alignment}});
  }
  return address;
}

void Storage::read_element(const Dims& index, DType dtype, void* value) const {
  if (index.rank() != rank()) {
    throw ArgumentError(ErrorCode::out_of_bounds,
                        {text::join("the element ", index.to_string(), " of a storage of shape ", shape_.to_string()), "the ranks differ",
                         "give one index for each dimension"},
                        {{"need", rank()}, {"have", index.rank()}});
  }
  if (dtype != dtype_) checked_data(dtype, 1, false);
  Storage element = *this;
  for (std::size_t axis = 0; axis < rank(); ++axis) {
    if (index[axis] < -shape_[axis] || index[axis] >= shape_[axis]) {
      throw ArgumentError(ErrorCode::out_of_bounds,
                          {text::join("the element ", index.to_string(), " of a storage of shape ", shape_.to_string()),
                           text::join("there is no index ", index[axis], " along axis ", axis), "use indices within the shape"},
                          {{"axis", axis}, {"index", index[axis]}});
    }
    element = element.select(0, index[axis]);
  }
  const StridedSpan target{value, dtype, {}, {}, Device(), {}};
  before_touch(element, false);
  berth::copy(element.span(), target);
}

void Storage::require_contiguous(const char* what) const {
  if (is_contiguous()) return;
  throw ArgumentError(
      ErrorCode::not_viewable,
      {text::join(std::string_view(what), " of a storage of shape ", shape_.to_string(), " and strides ", strides_.to_string()),
       "it is not contiguous", "use contiguous() first"},
      {{"shape", shape_.to_string()}, {"strides", strides_.to_string()}});
}

void Storage::require_writable(const char* what) const {
  if (!is_read_only()) return;
  throw AccessError(ErrorCode::read_only,
                    {text::join(std::string_view(what), ": a storage of shape ", shape_.to_string()), "it is read-only",
                     "clone() gives a copy that can be written"},
                    {{"shape", shape_.to_string()}});
}

StridedSpan Storage::span() const { return {data_ptr(), dtype_, shape_, strides_, device(), buffer_.keep_alive(), is_read_only()}; }

Storage Storage::to(Device target, const CopyOptions& options, Site site) const { return to(target, dtype_, options, site); }
Storage Storage::to(DType target, const CopyOptions& options, Site site) const { return to(device(), target, options, site); }

Storage Storage::to(Device target_device, DType target_dtype, const CopyOptions& options, Site site) const {
  if (target_device == device() && target_dtype == dtype_) return *this;
  return copy_to(target_device == device() ? allocator_ref() : AllocatorRef(target_device), target_dtype, options, site);
}

Storage Storage::copy_to(const AllocatorRef& target, DType target_dtype, const CopyOptions& options, const Site& site) const {
  Storage made = empty(shape_, target_dtype, target, {.stream = options.stream}, site);
  made.copy_from(*this, options, site);
  return made;
}

AllocatorRef Storage::allocator_ref() const {
  Allocator* const allocator = buffer_.allocator();
  return allocator == nullptr ? AllocatorRef(device()) : AllocatorRef(allocator->shared_from_this());
}

Storage Storage::clone(const CopyOptions& options, Site site) const { return copy_to(allocator_ref(), dtype_, options, site); }

Storage Storage::contiguous(const CopyOptions& options, Site site) const { return is_contiguous() ? *this : clone(options, site); }

Event Storage::copy_from(const Storage& source, const CopyOptions& options, Site site) const {
  before_touch(source, false);
  before_touch(*this, true);
  if (options.stream) return berth::copy(source.span(), span(), options, site);
  if (!try_short_copy(source, *this)) copy_now(span_of(source), span_of(*this), site);
  return {};
}

Event Storage::fill(Scalar value, const CopyOptions& options, Site site) const {
  before_touch(*this, true);
  if (options.stream) return berth::fill(span(), value, options, site);
  fill_now(span_of(*this), value, site);
  return {};
}

bool equal(const Storage& a, const Storage& b) {
  before_touch(a, false);
  before_touch(b, false);
  return equal(a.span(), b.span());
}

Event copy_batch(std::span<const Storage> sources, std::span<const Storage> targets, const CopyOptions& options, Site site) {
  require_equal_counts(sources.size(), targets.size());
  before_touch(sources, false);
  before_touch(targets, true);
  if (options.stream) return copy_batch_in(owned_spans(sources), owned_spans(targets), options, site);
  copy_batch_now(list_of(sources), list_of(targets), site);
  return {};
}

}  // namespace berth
