// SPDX-License-Identifier: Apache-2.0
#include "cli/bench/sides.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <cstring>

#include "base/random.h"
#include "berth/copy/convert.h"
#include "berth/memory/default_allocator.h"
#include "berth/storage/create.h"

namespace berth::internal::cli {

namespace {

constexpr std::size_t kPeriod = 65521;  // a prime: rows of common lengths differ

// Ordinary values, some of them negative or fractional, as far as the dtype can represent them.
std::vector<std::byte> pattern(DType dtype, std::size_t count) {
  std::vector<std::byte> out(count * size_bytes(dtype));
  for (std::size_t i = 0; i < count; ++i) {
    const std::size_t mixed = i * 2654435761U >> 7;
    const double value = dtype == DType::boolean ? static_cast<double>(mixed & 1) : (static_cast<double>(mixed % 509) - 254) / 2;
    convert_element(&value, DType::f64, out.data() + i * size_bytes(dtype), dtype);
  }
  return out;
}

// Dense elements: the values repeated, starting with the one at index `first`.
Storage make_source(const Shape& shape, DType dtype, const std::vector<std::byte>& values, std::size_t first) {
  Storage out = empty(shape, dtype, "cpu");
  auto* at = static_cast<std::byte*>(out.data_ptr());
  std::size_t from = first * size_bytes(dtype) % values.size();
  for (std::size_t left = out.size_bytes(); left > 0;) {
    const std::size_t piece = std::min(left, values.size() - from);
    std::memcpy(at, values.data() + from, piece);
    at += piece;
    left -= piece;
    from = 0;
  }
  return out;
}

Storage make_target(const Shape& shape, DType dtype, Device device) {
  Storage out = empty(shape, dtype, device);
  fill_bytes(out.data_ptr(), device, 0xa5, out.size_bytes());
  return out;
}

// Copies to the host what is not there.
std::vector<Storage> on_host(const std::vector<Storage>& side) {
  std::vector<Storage> out;
  for (const Storage& one : side) out.push_back(one.device() == Device() ? one : one.to("cpu"));
  return out;
}

Storage view(const Storage& memory, BenchLayout layout) {
  switch (layout) {
    case BenchLayout::contiguous: return memory;
    case BenchLayout::inner_stride: return memory.slice(0, {}, {}, 2);
    case BenchLayout::transposed: return memory.transpose(0, 1);
    case BenchLayout::reversed: return memory.flip(0);
    case BenchLayout::nhwc: return memory.permute({0, 2, 3, 1});
    case BenchLayout::nchw: return memory.permute({0, 3, 1, 2});
  }
  return memory;
}

// The element at an index in row-major order.
const std::byte* element(const Storage& storage, std::size_t place) {
  std::int64_t offset = 0;
  for (std::size_t axis = storage.rank(); axis-- > 0;) {
    const auto size = static_cast<std::size_t>(storage.shape()[axis]);
    offset += static_cast<std::int64_t>(place % size) * storage.strides()[axis];
    place /= size;
  }
  return static_cast<const std::byte*>(storage.data_ptr()) + offset * static_cast<std::int64_t>(size_bytes(storage.dtype()));
}

bool is_right(const Storage& source, const Storage& target, std::size_t place) {
  std::array<std::byte, 16> expected;
  convert_element(element(source, place), source.dtype(), expected.data(), target.dtype());
  return std::memcmp(expected.data(), element(target, place), size_bytes(target.dtype())) == 0;
}

}  // namespace

std::size_t BenchSides::bytes() const noexcept {
  std::size_t sum = 0;
  for (const Storage& one : sources) sum += one.size_bytes();
  for (const Storage& one : targets) sum += one.size_bytes();
  return sum;
}

BenchSides make_sides(const BenchCase& one) {
  const std::vector<std::byte> values = pattern(one.from, std::min(kPeriod, one.shape.num_elements()));
  const bool batch = one.kind == BenchKind::batch;
  const Shape shape = batch ? Shape{one.shape[1]} : one.shape;
  BenchSides sides;
  for (std::int64_t i = 0; i < (batch ? one.shape[0] : 1); ++i) {
    const Storage made = make_source(shape, one.from, values, static_cast<std::size_t>(i) * 4099);
    sides.sources.push_back(view(made.to(one.source_device), one.layout));
    sides.targets.push_back(make_target(sides.sources.back().shape(), one.to, one.target_device));
  }
  return sides;
}

void renew_targets(BenchSides& sides) {
  for (Storage& target : sides.targets) {
    const Shape shape = target.shape();
    const DType dtype = target.dtype();
    const Device device = target.device();
    target = Storage();
    default_allocator(device)->release_cached();
    target = empty(shape, dtype, device);
  }
}

void copy_sides(const BenchCase& one, const BenchSides& sides) {
  if (one.kind == BenchKind::batch)
    copy_batch(sides.sources, sides.targets);
  else
    sides.targets.front().copy_from(sides.sources.front());
}

std::optional<std::string> first_wrong(const BenchSides& sides) {
  constexpr std::size_t kEnd = 1024;        // elements at each end of each copy
  constexpr std::size_t kBetween = 65'536;  // elements in between, of all copies together
  Random random(1);
  const std::vector<Storage> sources = on_host(sides.sources);
  const std::vector<Storage> targets = on_host(sides.targets);
  for (std::size_t i = 0; i < sources.size(); ++i) {
    const std::size_t count = targets[i].num_elements();
    const std::size_t end = std::min(count, kEnd);
    const std::size_t between = std::min(count, kBetween / sources.size());
    for (std::size_t k = 0; k < 2 * end + between; ++k) {
      const std::size_t place = k < end ? k : k < 2 * end ? count - 1 - (k - end) : random.below(count);
      if (!is_right(sources[i], targets[i], place)) return fmt::format("element {} of copy {} is wrong", place, i);
    }
  }
  return std::nullopt;
}

}  // namespace berth::internal::cli
