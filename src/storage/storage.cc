// SPDX-License-Identifier: Apache-2.0
#include "berth/storage/storage.h"

#include <utility>
#include <vector>

#include "base/text.h"
#include "berth/base/error.h"
#include "berth/device/registry.h"
#include "berth/storage/create.h"
#include "storage/make.h"

namespace berth {

namespace {

// Whether every element of the layout lies inside `bytes`; in 128 bits, where nothing here can overflow.
void require_inside(DType dtype, const Shape& shape, const Strides& strides, std::int64_t offset, std::size_t bytes) {
  if (shape.num_elements() == 0 && offset == 0) return;
  const Reach extent = reach(shape, strides);
  const auto size = static_cast<__int128>(size_bytes(dtype));
  const __int128 lowest = (static_cast<__int128>(offset) + extent.lowest) * size;
  const __int128 end = (static_cast<__int128>(offset) + extent.highest + (shape.num_elements() == 0 ? 0 : 1)) * size;
  if (lowest >= 0 && end <= static_cast<__int128>(bytes)) return;
  const bool before = lowest < 0;
  const auto need = static_cast<std::uint64_t>(before ? -lowest : end);
  throw ArgumentError(
      ErrorCode::out_of_bounds,
      {text::join("a view of shape ", shape.to_string(), ", strides ", strides.to_string(), ", offset ", offset, " of ", to_string(dtype)),
       before ? text::join("its first element lies ", need, " bytes before the buffer")
              : text::join("it needs ", need, " bytes, the buffer has ", bytes),
       "use a smaller shape, stride or offset"},
      {{"need", need}, {"have", bytes}});
}

}  // namespace

Storage::Storage(Buffer buffer, DType dtype, const Shape& shape, const Strides& strides, std::int64_t offset) : Storage() {
  if (shape.rank() != strides.rank()) {
    throw ArgumentError(ErrorCode::size_mismatch,
                        {text::join("a view of shape ", shape.to_string(), " with strides ", strides.to_string()),
                         "there must be one stride for each dimension", "give as many strides as dimensions"},
                        {{"need", shape.rank()}, {"have", strides.rank()}});
  }
  require_inside(dtype, shape, strides, offset, buffer.size_bytes());
  *this = Storage(std::move(buffer), dtype, Shape(shape), Strides(strides), offset, shape.num_elements(), false);
}

bool Storage::is_pinned() const noexcept {
  const Backend* const behind = find_backend(device());
  return behind != nullptr && behind->properties().abilities.pinned;
}

void* Storage::data_ptr() const noexcept {
  if (num_elements_ == 0) return nullptr;
  return static_cast<std::byte*>(buffer_.data()) + offset_ * static_cast<std::int64_t>(berth::size_bytes(dtype_));
}

void* Storage::checked_data(DType dtype, std::size_t alignment, bool write) const {
  if (dtype != dtype_) {
    throw ArgumentError(ErrorCode::unsupported_dtype,
                        {text::join("reading elements of ", to_string(dtype_), " as ", to_string(dtype)), "that is another type",
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
  for (const std::int64_t i : index) element = element.select(0, i);
  const StridedSpan target{value, dtype, {}, {}, Device(), {}};
  copy(element.span(), target);
}

void Storage::require_contiguous(const char* what) const {
  if (is_contiguous()) return;
  throw ArgumentError(
      ErrorCode::not_viewable,
      {text::join(std::string_view(what), " of a storage of shape ", shape_.to_string(), " and strides ", strides_.to_string()),
       "its elements do not lie one after another", "use contiguous() first"},
      {{"shape", shape_.to_string()}, {"strides", strides_.to_string()}});
}

void Storage::require_writable(const char* what) const {
  if (!is_read_only()) return;
  throw AccessError(ErrorCode::read_only,
                    {text::join(std::string_view(what), ": a storage of shape ", shape_.to_string()), "it is read-only",
                     "clone() gives a copy that can be written"},
                    {{"shape", shape_.to_string()}});
}

StridedSpan Storage::span() const { return {data_ptr(), dtype_, shape_, strides_, device(), buffer_.keep_alive()}; }

Storage Storage::to(Device target, const CopyOptions& options, Site site) const { return to(target, dtype_, options, site); }
Storage Storage::to(DType target, const CopyOptions& options, Site site) const { return to(device(), target, options, site); }

Storage Storage::to(Device target_device, DType target_dtype, const CopyOptions& options, Site site) const {
  if (target_device == device() && target_dtype == dtype_) return *this;
  Storage target = empty(shape_, target_dtype, target_device, {.stream = options.stream}, site);
  target.copy_from(*this, options, site);
  return target;
}

Storage Storage::clone(const CopyOptions& options, Site site) const {
  Allocator* const allocator = buffer_.allocator();
  const Place place = allocator == nullptr ? Place(device()) : Place(allocator->shared_from_this());
  Storage target = empty(shape_, dtype_, place, {.stream = options.stream}, site);
  target.copy_from(*this, options, site);
  return target;
}

Storage Storage::contiguous(Site site) const { return is_contiguous() ? *this : clone({}, site); }

Event Storage::copy_from(const Storage& source, const CopyOptions& options, Site site) const {
  require_writable("copying into a storage");
  return copy(source.span(), span(), options, site);
}

Event Storage::fill(Scalar value, const CopyOptions& options, Site site) const {
  require_writable("filling a storage");
  return berth::fill(span(), value, options, site);
}

bool equal(const Storage& a, const Storage& b) { return equal(a.span(), b.span()); }

Event copy_batch(std::span<const Storage> sources, std::span<const Storage> targets, const CopyOptions& options, Site site) {
  std::vector<StridedSpan> from;
  std::vector<StridedSpan> to;
  require_equal_counts(sources.size(), targets.size());
  for (const Storage& source : sources) from.push_back(source.span());
  for (const Storage& target : targets) {
    if (target.is_read_only()) {
      throw AccessError(ErrorCode::read_only,
                        {text::join("a batch copy into a storage of shape ", target.shape().to_string()), "it is read-only",
                         "leave it out, or clone() it first"},
                        {{"shape", target.shape().to_string()}});
    }
    to.push_back(target.span());
  }
  return copy_batch(std::span<const StridedSpan>(from), std::span<const StridedSpan>(to), options, site);
}

}  // namespace berth
