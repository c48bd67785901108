// SPDX-License-Identifier: Apache-2.0
#include "copy/host/conversion.h"

#include <algorithm>
#include <cstring>
#include <initializer_list>

#include "copy/host/lanes.h"

namespace berth::internal::copy {

namespace {

constexpr std::size_t kPiece = 512;  // elements between two casts: two rows of them stay in the L1 cache

bool is_small_float(DType dtype) noexcept { return info(dtype).kind == DTypeKind::floating && size_bytes(dtype) <= 2; }
bool is_byte(DType dtype) noexcept { return dtype == DType::u8 || dtype == DType::i8; }

// Appends casts to a conversion, and remembers whether the table had all of them.
class Chain {
 public:
  Chain(const Kernels& kernels, DType from, DType to) noexcept : kernels_(kernels), at_(from) {
    made_.from = from;
    made_.to = to;
  }

  Chain& cast(DType to, Rounding rounding = Rounding::nearest) noexcept {
    const std::size_t index = cast_index({at_, to, rounding});
    const ConvertRow row = index < kCastCount ? kernels_.casts[index] : nullptr;
    missing_ = missing_ || row == nullptr;
    made_.rows[made_.count] = row;
    made_.sizes[made_.count++] = size_bytes(to);
    at_ = to;
    return *this;
  }
  // The same bits under another name.
  Chain& as(DType dtype) noexcept {
    at_ = dtype;
    return *this;
  }

  bool has_cast(DType to) const noexcept {
    const std::size_t index = cast_index({at_, to});
    return index < kCastCount && kernels_.casts[index] != nullptr;
  }

  Conversion take() const noexcept { return missing_ ? Conversion{.from = made_.from, .to = made_.to, .by_reference = true} : made_; }

 private:
  const Kernels& kernels_;
  DType at_;
  bool missing_ = false;
  Conversion made_;
};

// From f32, which may have been rounded to odd by an earlier cast.
Chain& from_f32(Chain& chain, DType to) noexcept {
  if (to == DType::i64) return chain.cast(DType::f64).cast(to);
  return to == DType::f32 ? chain : chain.cast(to);
}

Chain& from_i32(Chain& chain, DType to) noexcept {
  if (is_byte(to)) return chain.cast(DType::u8);
  if (is_small_float(to)) return chain.cast(DType::f32, Rounding::odd).cast(to);
  return to == DType::i32 ? chain : chain.cast(to);
}

Chain& from_i64(Chain& chain, DType to) noexcept {
  if (is_byte(to)) return chain.cast(DType::i32).cast(DType::u8);
  if (is_small_float(to)) return chain.cast(DType::f32, Rounding::odd).cast(to);
  return chain.cast(to);
}

Chain& from_f64(Chain& chain, DType to) noexcept {
  if (is_byte(to) || is_small_float(to)) return chain.cast(DType::f32, Rounding::odd).cast(to);
  return chain.cast(to);
}

Chain& from_byte(Chain& chain, DType to) noexcept {
  if (is_byte(to)) return chain;
  if (chain.has_cast(to)) return chain.cast(to);
  if (to == DType::i64) return chain.cast(DType::i32).cast(to);
  return chain.cast(DType::f32).cast(to);
}

Chain& to_bool(Chain& chain, DType from) noexcept {
  if (is_byte(from)) chain.as(DType::u8);
  if (from == DType::f8e5m2) chain.as(DType::f8e4m3);  // zero has the same bits in both
  if (from == DType::bf16) chain.as(DType::f16);
  return chain.cast(DType::boolean);
}

Chain& steps(Chain& chain, DType from, DType to) noexcept {
  if (to == DType::boolean) return to_bool(chain, from);
  if (chain.has_cast(to)) return chain.cast(to);
  if (is_small_float(from)) return from_f32(chain.cast(DType::f32), to);
  switch (from) {
    case DType::boolean: return from_byte(chain.cast(DType::u8), to);
    case DType::u8:
    case DType::i8: return from_byte(chain, to);
    case DType::i32: return from_i32(chain, to);
    case DType::i64: return from_i64(chain, to);
    case DType::f32: return from_f32(chain, to);
    case DType::f64: return from_f64(chain, to);
    default: return chain.cast(to);  // not in any table
  }
}

void run_reference(const Conversion& conversion, const std::byte* source, std::byte* target, std::size_t elements) noexcept {
  constexpr std::size_t kLanes = 256;
  LaneValue lanes[kLanes];
  const auto from = static_cast<std::ptrdiff_t>(size_bytes(conversion.from));
  const auto to = static_cast<std::ptrdiff_t>(size_bytes(conversion.to));
  for (std::size_t done = 0; done < elements; done += kLanes) {
    const std::size_t piece = std::min(kLanes, elements - done);
    load_lanes(conversion.from, source + static_cast<std::ptrdiff_t>(done) * from, from, piece, lanes);
    store_lanes(conversion.to, lane_of(conversion.from), lanes, target + static_cast<std::ptrdiff_t>(done) * to, to, piece);
  }
}

}  // namespace

void Conversion::run(const std::byte* source, std::byte* target, std::size_t elements) const noexcept {
  if (by_reference) return run_reference(*this, source, target, elements);
  const std::size_t from_bytes = size_bytes(from);
  const std::size_t to_bytes = size_bytes(to);
  if (count == 0) {
    std::memcpy(target, source, elements * from_bytes);
    return;
  }
  if (count == 1) return rows[0](source, target, elements);
  alignas(64) std::byte between[2][kPiece * 8];
  for (std::size_t done = 0; done < elements; done += kPiece) {
    const std::size_t piece = std::min(kPiece, elements - done);
    rows[0](source + done * from_bytes, between[0], piece);
    for (std::size_t i = 1; i + 1 < count; ++i) rows[i](between[i - 1], between[i], piece);
    rows[count - 1](between[count - 2], target + done * to_bytes, piece);
  }
}

Conversion find_conversion(const Kernels& kernels, DType from, DType to) noexcept {
  if (from == to) return {.from = from, .to = to};
  Chain chain(kernels, from, to);
  return steps(chain, from, to).take();
}

}  // namespace berth::internal::copy
