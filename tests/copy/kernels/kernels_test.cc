// SPDX-License-Identifier: Apache-2.0
#include "copy/kernels/kernels.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <string>
#include <vector>

#include "base/random.h"
#include "berth/copy/convert.h"
#include "copy/host/conversion.h"
#include "copy/host/lanes.h"
#include "copy/telling_values.h"
#include "support/scale.h"

// Conversions by every table of kernels that this machine can run, compared bit for bit with the reference.
namespace berth::testing {

using namespace internal;
using namespace internal::copy;
namespace {

std::string hex(const std::byte* element, std::size_t bytes) {
  static constexpr char kDigits[] = "0123456789abcdef";
  std::string text = "0x";
  for (std::size_t i = bytes; i > 0; --i) {
    text += kDigits[std::to_integer<unsigned>(element[i - 1]) >> 4];
    text += kDigits[std::to_integer<unsigned>(element[i - 1]) & 15];
  }
  return text;
}

std::string names_of_tables() {
  std::string names;
  for (const Kernels& table : all_kernels()) names += names.empty() ? table.name : std::string(", ") + table.name;
  return names;
}

// Describes the first element that differs.
std::string first_difference(const Kernels& table, DType from, DType to, const std::vector<std::byte>& source,
                             const std::vector<std::byte>& expected, const std::vector<std::byte>& got) {
  const std::size_t size = size_bytes(to);
  const auto at = static_cast<std::size_t>(std::mismatch(expected.begin(), expected.end(), got.begin()).first - expected.begin()) / size;
  const std::size_t from_size = size_bytes(from);
  return std::string(table.name) + " " + std::string(to_string(from)) + " → " + std::string(to_string(to)) + ", element " +
         std::to_string(at) + ": " + hex(&source[at * from_size], from_size) + " became " + hex(&got[at * size], size) + " and not " +
         hex(&expected[at * size], size);
}

// Converts the source to `to` with every table; `expected` is the result of the reference.
void expect_from_tables(DType from, DType to, const std::vector<std::byte>& source, const std::vector<std::byte>& expected) {
  const std::size_t count = source.size() / size_bytes(from);
  std::vector<std::byte> got(expected.size());
  for (const Kernels& table : all_kernels()) {
    std::fill(got.begin(), got.end(), std::byte{0xa5});
    find_conversion(table, from, to).run(source.data(), got.data(), count);
    ASSERT_EQ(got.size(), expected.size());
    if (got != expected) FAIL() << first_difference(table, from, to, source, expected, got);
  }
}

std::vector<std::byte> converted_one_by_one(DType from, DType to, const std::vector<std::byte>& source) {
  const std::size_t count = source.size() / size_bytes(from);
  std::vector<std::byte> made(count * size_bytes(to));
  for (std::size_t i = 0; i < count; ++i) convert_element(&source[i * size_bytes(from)], from, &made[i * size_bytes(to)], to);
  return made;
}

// Every value of an 8- or 16-bit dtype, in order.
std::vector<std::byte> every_value(DType dtype) {
  const std::size_t size = size_bytes(dtype);
  const std::size_t count = size == 1 ? 256 : 65536;
  std::vector<std::byte> values(count * size);
  for (std::size_t i = 0; i < count; ++i) std::memcpy(&values[i * size], &i, size);
  return values;
}

TEST(Kernels, TheBestTableIsFirstAndThePlainOneLast) {
  const auto tables = all_kernels();
  ASSERT_FALSE(tables.empty());
  EXPECT_STREQ(tables.back().name, "plain");
  EXPECT_EQ(&best_kernels(), &tables.front());
#if defined(__x86_64__)
  constexpr std::ptrdiff_t kAtLeast = kNeededAndByteCasts;
#else
  constexpr std::ptrdiff_t kAtLeast = kNeededCasts;
#endif
  for (const Kernels& table : tables.first(tables.size() - 1)) {
    EXPECT_TRUE(std::all_of(table.casts.begin(), table.casts.begin() + kAtLeast, [](ConvertRow row) { return row != nullptr; }))
        << table.name;
    for (const DType from : kKernelDTypes) {
      for (const DType to : kKernelDTypes)
        EXPECT_FALSE(find_conversion(table, from, to).by_reference) << table.name << " " << to_string(from) << " → " << to_string(to);
    }
  }
  did(names_of_tables());
}

TEST(Kernels, ConvertEveryValueOfSmallDTypesAsTheReferenceDoes) {
  std::size_t pairs = 0;
  for (const DTypeInfo& from : all_dtypes()) {
    if (from.size_bytes() > 2) continue;
    const std::vector<std::byte> source = every_value(from.dtype);
    for (const DTypeInfo& to : all_dtypes()) {
      ASSERT_NO_FATAL_FAILURE(expect_from_tables(from.dtype, to.dtype, source, converted_one_by_one(from.dtype, to.dtype, source)));
      ++pairs;
    }
  }
  did("all values, " + std::to_string(pairs) + " pairs of dtypes, by " + names_of_tables());
}

TEST(Kernels, ConvertAllPairsOfDTypesAsTheReferenceDoes) {
  TellingValues values(seed());
  const std::uint64_t count = scaled(100'000, 2'000);
  for (const DTypeInfo& from : all_dtypes()) {
    const std::vector<std::byte> source = values.make(from.dtype, count);
    for (const DTypeInfo& to : all_dtypes())
      ASSERT_NO_FATAL_FAILURE(expect_from_tables(from.dtype, to.dtype, source, converted_one_by_one(from.dtype, to.dtype, source)));
  }
  did(std::to_string(count) + " values for each of 289 pairs, by " + names_of_tables());
}

// Kernels take a shorter path for a group of elements without a NaN, or without an integer that exceeds a
// float's precision. In the tests above few groups are like that.
TEST(Kernels, ConvertOrdinaryValuesWithASpecialOneHereAndThereAsTheReferenceDoes) {
  TellingValues values(seed());
  Random random(seed());
  const std::uint64_t count = scaled(20'000, 2'000);
  for (const DType from : kKernelDTypes) {
    const std::size_t size = size_bytes(from);
    std::vector<std::byte> source = values.make(from, count);
    for (std::size_t i = 0; i < count; ++i) {
      if (random.one_in(200)) continue;
      const double ordinary = (static_cast<double>(random.below(2'001)) - 1'000) / 8;
      convert_element(&ordinary, DType::f64, &source[i * size], from);
    }
    for (const DType to : kKernelDTypes)
      ASSERT_NO_FATAL_FAILURE(expect_from_tables(from, to, source, converted_one_by_one(from, to, source)));
  }
  did(std::to_string(count) + " values for each of 121 pairs, by " + names_of_tables());
}

// Many values. The reference runs by lanes, so that most of the time is spent in the code under test; the plain
// table is that very reference.
void convert_many(DType from) {
  constexpr std::size_t kPiece = 20'011;  // odd, so that each has a tail
  TellingValues values(seed() + static_cast<std::uint64_t>(from));
  const std::uint64_t total = scaled(100'000'000, 200'000);
  const auto size = static_cast<std::ptrdiff_t>(size_bytes(from));
  std::vector<LaneValue> lanes(kPiece);
  for (std::uint64_t done = 0; done < total; done += kPiece) {
    const std::vector<std::byte> source = values.make(from, kPiece);
    load_lanes(from, source.data(), size, kPiece, lanes.data());
    for (const DType to : kKernelDTypes) {
      if (to == from) continue;
      std::vector<std::byte> expected(kPiece * size_bytes(to));
      store_lanes(to, lane_of(from), lanes.data(), expected.data(), static_cast<std::ptrdiff_t>(size_bytes(to)), kPiece);
      std::vector<std::byte> got(expected.size());
      for (const Kernels& table : all_kernels()) {
        if (&table == &all_kernels().back() && done != 0) continue;
        find_conversion(table, from, to).run(source.data(), got.data(), kPiece);
        if (got != expected) FAIL() << first_difference(table, from, to, source, expected, got);
      }
    }
  }
  did(std::to_string(total) + " values of " + std::string(to_string(from)) + " into each of 10 dtypes, by " + names_of_tables());
}

TEST(Kernels, ConvertRandomAndSpecialF32AsTheReferenceDoes) { convert_many(DType::f32); }
TEST(Kernels, ConvertRandomAndSpecialF64AsTheReferenceDoes) { convert_many(DType::f64); }
TEST(Kernels, ConvertRandomAndSpecialI32AsTheReferenceDoes) { convert_many(DType::i32); }
TEST(Kernels, ConvertRandomAndSpecialI64AsTheReferenceDoes) { convert_many(DType::i64); }

}  // namespace
}  // namespace berth::testing
