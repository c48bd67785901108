// SPDX-License-Identifier: Apache-2.0
// The conversions of the CUDA kernels, compiled for the host with the hardware's instructions emulated,
// compared bit for bit with the reference.
#include <gtest/gtest.h>

#include <array>
#include <cstring>
#include <utility>
#include <vector>

#include "berth/copy/convert.h"
#include "copy/telling_values.h"
#include "device/cuda/kernels/integer_quads.h"
#include "support/scale.h"

namespace berth::testing {

using namespace internal;

namespace {

constexpr std::array kQuick = {DType::f32, DType::f64, DType::f16, DType::bf16, DType::f8e4m3, DType::f8e5m2,
                               DType::i8,  DType::u8,  DType::i32, DType::i64,  DType::boolean};

// All values of dtypes of up to two bytes, else values at the edges; a multiple of four.
std::vector<std::byte> values_of(DType dtype, std::uint64_t count) {
  if (size_bytes(dtype) > 2) return TellingValues(seed()).make(dtype, count / 4 * 4);
  const std::size_t all = std::size_t{1} << (8 * size_bytes(dtype));
  std::vector<std::byte> made(all * size_bytes(dtype));
  for (std::size_t i = 0; i < all; ++i) std::memcpy(&made[i * size_bytes(dtype)], &i, size_bytes(dtype));
  return made;
}

template <DType From, DType To>
void check_quads() {
  const std::vector<std::byte> source = values_of(From, scaled(2'000'000, 40'000));
  for (std::size_t at = 0; at + 4 * size_bytes(From) <= source.size(); at += 4 * size_bytes(From)) {
    device::cuda::Quad<From> quad;
    std::memcpy(&quad, &source[at], sizeof quad);
    const device::cuda::Quad<To> made = device::cuda::convert_quad<From, To>(quad);
    device::cuda::Quad<To> expected;
    for (std::size_t i = 0; i < 4; ++i)
      convert_element(&source[at + i * size_bytes(From)], From, reinterpret_cast<std::byte*>(&expected) + i * size_bytes(To), To);
    ASSERT_EQ(std::memcmp(&made, &expected, sizeof made), 0) << to_string(From) << " to " << to_string(To) << ", first word " << std::hex
                                                             << quad.words[0] << ": " << made.words[0] << ", not " << expected.words[0];
  }
}

template <DType From, std::size_t... To>
void check_quads_from(std::index_sequence<To...>) {
  (check_quads<From, kQuick[To]>(), ...);
}
template <std::size_t... From>
void check_all_quads(std::index_sequence<From...> all) {
  (check_quads_from<kQuick[From]>(all), ...);
}

TEST(CudaQuads, ConvertAsTheReferenceDoes) { check_all_quads(std::make_index_sequence<kQuick.size()>()); }

TEST(CudaLanes, ConvertEveryPairAsTheReferenceDoes) {
  const std::uint64_t count = scaled(200'000, 4'000);
  for (const DTypeInfo& from : all_dtypes()) {
    const std::vector<std::byte> source = values_of(from.dtype, count);
    for (const DTypeInfo& to : all_dtypes()) {
      if (from.dtype == to.dtype) continue;
      for (std::size_t at = 0; at < source.size(); at += from.size_bytes()) {
        device::cuda::Bits element;
        std::memcpy(&element, &source[at], from.size_bytes());
        const device::cuda::Bits made = device::cuda::convert(from.dtype, to.dtype, element);
        device::cuda::Bits expected;
        convert_element(&source[at], from.dtype, &expected, to.dtype);
        ASSERT_EQ(std::memcmp(&made, &expected, to.size_bytes()), 0)
            << from.name << " to " << to.name << std::hex << ", from " << element.low << " " << element.high << ": " << made.low << " "
            << made.high << ", not " << expected.low << " " << expected.high;
      }
    }
  }
}

}  // namespace
}  // namespace berth::testing
