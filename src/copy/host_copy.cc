// SPDX-License-Identifier: Apache-2.0
#include "copy/host_copy.h"

#include <cstring>

#include "berth/copy/convert.h"

namespace berth {

namespace {

template <class Visit>
void for_each_element(std::span<const std::int64_t> shape, std::span<const std::int64_t> a, std::span<const std::int64_t> b, Visit visit,
                      std::size_t axis = 0, std::int64_t at = 0, std::int64_t bt = 0) {
  if (axis == shape.size()) return visit(at, bt);
  for (std::int64_t i = 0; i < shape[axis]; ++i) for_each_element(shape, a, b, visit, axis + 1, at + i * a[axis], bt + i * b[axis]);
}

}  // namespace

void copy_on_host(std::span<const std::int64_t> shape, const HostSide& source, const HostSide& target, int) noexcept {
  const auto from = static_cast<std::int64_t>(size_bytes(source.dtype));
  const auto to = static_cast<std::int64_t>(size_bytes(target.dtype));
  for_each_element(shape, source.strides, target.strides, [&](std::int64_t s, std::int64_t t) {
    convert_element(source.data + s * from, source.dtype, target.data + t * to, target.dtype);
  });
}

void fill_on_host(std::span<const std::int64_t> shape, const HostSide& target, const std::byte* value, int) noexcept {
  const auto size = static_cast<std::int64_t>(size_bytes(target.dtype));
  for_each_element(shape, target.strides, target.strides,
                   [&](std::int64_t, std::int64_t t) { std::memcpy(target.data + t * size, value, static_cast<std::size_t>(size)); });
}

void copy_on_host(std::span<const HostCopy> copies, int threads) noexcept {
  for (const HostCopy& copy : copies) copy_on_host(copy.shape, copy.source, copy.target, threads);
}

}  // namespace berth
