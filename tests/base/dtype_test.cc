// SPDX-License-Identifier: Apache-2.0
#include "berth/base/dtype.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cctype>
#include <limits>
#include <string>

#include "support/errors.h"

namespace {

using namespace berth;

constexpr auto kInteger = [](DTypeKind kind) {
  return kind == DTypeKind::boolean || kind == DTypeKind::unsigned_integer || kind == DTypeKind::signed_integer;
};

TEST(DType, TableHoldsEveryTypeOnce) {
  ASSERT_EQ(all_dtypes().size(), std::size_t{kDTypeCount});
  EXPECT_EQ(static_cast<int>(DType::c128) + 1, kDTypeCount);
  for (int i = 0; i < kDTypeCount; ++i) {
    const auto dtype = static_cast<DType>(i);
    EXPECT_EQ(info(dtype).dtype, dtype);
    EXPECT_EQ(&info(dtype), &all_dtypes()[static_cast<std::size_t>(i)]);
  }
}

TEST(DType, TableStatesTheFactsOfEachType) {
  struct Row {
    DType dtype;
    std::string_view name;
    int bits;
    std::size_t alignment;
    DTypeKind kind;
    double highest;
  };
  constexpr double kFloat = std::numeric_limits<float>::max();
  constexpr double kDouble = std::numeric_limits<double>::max();
  const Row rows[] = {
      {DType::boolean, "bool", 8, 1, DTypeKind::boolean, 1},
      {DType::u8, "u8", 8, 1, DTypeKind::unsigned_integer, 255},
      {DType::u16, "u16", 16, 2, DTypeKind::unsigned_integer, 65535},
      {DType::u32, "u32", 32, 4, DTypeKind::unsigned_integer, 4294967295.0},
      {DType::u64, "u64", 64, 8, DTypeKind::unsigned_integer, 0x1p64},
      {DType::i8, "i8", 8, 1, DTypeKind::signed_integer, 127},
      {DType::i16, "i16", 16, 2, DTypeKind::signed_integer, 32767},
      {DType::i32, "i32", 32, 4, DTypeKind::signed_integer, 2147483647.0},
      {DType::i64, "i64", 64, 8, DTypeKind::signed_integer, 0x1p63},
      {DType::f8e4m3, "f8e4m3", 8, 1, DTypeKind::floating, 448},
      {DType::f8e5m2, "f8e5m2", 8, 1, DTypeKind::floating, 57344},
      {DType::f16, "f16", 16, 2, DTypeKind::floating, 65504},
      {DType::bf16, "bf16", 16, 2, DTypeKind::floating, 0x1.fep127},
      {DType::f32, "f32", 32, 4, DTypeKind::floating, kFloat},
      {DType::f64, "f64", 64, 8, DTypeKind::floating, kDouble},
      {DType::c64, "c64", 64, 4, DTypeKind::complex, kFloat},
      {DType::c128, "c128", 128, 8, DTypeKind::complex, kDouble},
  };
  EXPECT_EQ(std::size(rows), std::size_t{kDTypeCount});
  for (const Row& row : rows) {
    SCOPED_TRACE(row.name);
    EXPECT_EQ(to_string(row.dtype), row.name);
    EXPECT_EQ(info(row.dtype).bits, row.bits);
    EXPECT_EQ(info(row.dtype).size_bytes(), static_cast<std::size_t>(row.bits) / 8);
    EXPECT_EQ(size_bytes(row.dtype), static_cast<std::size_t>(row.bits) / 8);
    EXPECT_EQ(alignment_of(row.dtype), row.alignment);
    EXPECT_EQ(info(row.dtype).kind, row.kind);
    EXPECT_EQ(info(row.dtype).range.highest, row.highest);
    EXPECT_TRUE(kInteger(row.kind) || info(row.dtype).range.lowest == -row.highest);
  }
}

TEST(DType, IntegerBoundsAreExact) {
  for (const DTypeInfo& entry : all_dtypes()) {
    if (!kInteger(entry.kind)) continue;
    SCOPED_TRACE(entry.name);
    const bool is_signed = entry.kind == DTypeKind::signed_integer;
    const int value_bits = entry.kind == DTypeKind::boolean ? 1 : entry.bits - (is_signed ? 1 : 0);
    EXPECT_EQ(entry.range.highest_integer, UINT64_MAX >> (64 - value_bits));
    EXPECT_EQ(entry.range.lowest_integer, is_signed ? INT64_MIN >> (64 - entry.bits) : 0);
    EXPECT_EQ(entry.range.lowest, static_cast<double>(entry.range.lowest_integer));
  }
}

TEST(DType, EveryNameReadsAsItselfInAnyCase) {
  for (const DTypeInfo& entry : all_dtypes()) {
    std::string name(entry.name);
    EXPECT_EQ(parse_dtype(name), entry.dtype) << name;
    std::ranges::transform(name, name.begin(), [](unsigned char c) { return static_cast<char>(std::toupper(c)); });
    EXPECT_EQ(parse_dtype(name), entry.dtype) << name;
  }
}

TEST(DType, ReadsTheNamesOfTheFrameworks) {
  const std::pair<std::string_view, DType> names[] = {
      {"float32", DType::f32},    {"float", DType::f32},
      {"F32", DType::f32},        {"Float64", DType::f64},
      {"double", DType::f64},     {"half", DType::f16},
      {"float16", DType::f16},    {"bfloat16", DType::bf16},
      {"BF16", DType::bf16},      {"float8_e4m3fn", DType::f8e4m3},
      {"F8_E4M3", DType::f8e4m3}, {"float8_e5m2", DType::f8e5m2},
      {"F8_E5M2", DType::f8e5m2}, {"bool", DType::boolean},
      {"BOOL", DType::boolean},   {"uint8", DType::u8},
      {"UINT16", DType::u16},     {"uint32", DType::u32},
      {"uint64", DType::u64},     {"int8", DType::i8},
      {"int16", DType::i16},      {"short", DType::i16},
      {"int32", DType::i32},      {"int", DType::i32},
      {"int64", DType::i64},      {"long", DType::i64},
      {"complex64", DType::c64},  {"complex128", DType::c128},
      {"single", DType::f32},     {"f8E4M3FN", DType::f8e4m3},
  };
  for (const auto& [name, dtype] : names) EXPECT_EQ(parse_dtype(name), dtype) << name;
  EXPECT_EQ(parse_dtype("torch.float32"), DType::f32);
  EXPECT_EQ(parse_dtype("torch.bool"), DType::boolean);
  EXPECT_EQ(parse_dtype("torch.cfloat"), DType::c64);
  EXPECT_EQ(parse_dtype("torch.float8_e4m3fn"), DType::f8e4m3);
}

TEST(DType, ReadsNumpysCodesOnlyWithTheirByteOrder) {
  const std::pair<std::string_view, DType> codes[] = {
      {"<f4", DType::f32}, {"=f4", DType::f32}, {"<f2", DType::f16}, {"<f8", DType::f64},     {"<i8", DType::i64},
      {"<u8", DType::u64}, {"<i4", DType::i32}, {"<u2", DType::u16}, {"|b1", DType::boolean}, {"|u1", DType::u8},
      {"|i1", DType::i8},  {"<i1", DType::i8},  {"<c8", DType::c64}, {"<c16", DType::c128}};
  for (const auto& [code, dtype] : codes) EXPECT_EQ(parse_dtype(code), dtype) << code;
  EXPECT_EQ(parse_dtype("i8"), DType::i8) << "without a mark names are berth's, and count bits";
  EXPECT_EQ(parse_dtype("u8"), DType::u8);
  for (const char* wrong : {"<", "|", "|f4", "<f32", "<F4", "<f16", "<V2", "<?", "<<f4", "torch.<f4", "f2", "c8"})
    EXPECT_ERROR((void)parse_dtype(wrong), ArgumentError, ErrorCode::unsupported_dtype);
}

// Hazards A10 and A12.
TEST(DType, RefusesNamesItDoesNotKnow) {
  const std::string_view names[] = {
      "",          " ",     "f32 ",     " f32",   "f",   "f31", "f4",   "i4",          "int4",  "F4",
      "f8e8m0",    "tf32",  "float128", "string", ">f4", ">i8", "byte", "float8_e4m3", "f32\n", std::string_view("f32\0", 4),
      "f\xc3\xbc", "torch."};
  for (const std::string_view name : names) EXPECT_ERROR((void)parse_dtype(name), ArgumentError, ErrorCode::unsupported_dtype);
  // Longer than any name that is case-folded, with a known name in front.
  const std::string padded = "f32" + std::string(100'000, ' ');
  EXPECT_ERROR((void)parse_dtype(padded), ArgumentError, ErrorCode::unsupported_dtype);
}

TEST(DType, NamesTheUnknownTypeAndTheByteOrder) {
  const auto refusal = [](std::string_view name) {
    try {
      (void)parse_dtype(name);
    } catch (const ArgumentError& error) {
      return error;
    }
    return ArgumentError(ErrorCode::invalid_argument, {"none", "none", "none"});
  };
  const ArgumentError big = refusal(">f4");
  EXPECT_EQ(big.fact("name"), ">f4");
  EXPECT_NE(big.why().find("endian"), std::string::npos) << big.what();
  const ArgumentError unknown = refusal("f\x1b[31m");
  EXPECT_EQ(unknown.fact("name"), "f\\x1b[31m") << "an escape would reach the terminal";
  EXPECT_EQ(unknown.why().find("endian"), std::string::npos) << unknown.what();
  for (const DTypeInfo& entry : all_dtypes()) EXPECT_NE(unknown.help().find(entry.name), std::string::npos) << entry.name;
}

TEST(DType, KnowsEveryElementTypeOfCpp) {
  EXPECT_EQ(dtype_of<bool>(), DType::boolean);
  EXPECT_EQ(dtype_of<std::uint8_t>(), DType::u8);
  EXPECT_EQ(dtype_of<std::uint16_t>(), DType::u16);
  EXPECT_EQ(dtype_of<std::uint32_t>(), DType::u32);
  EXPECT_EQ(dtype_of<std::uint64_t>(), DType::u64);
  EXPECT_EQ(dtype_of<unsigned long>(), DType::u64);
  EXPECT_EQ(dtype_of<unsigned long long>(), DType::u64);
  EXPECT_EQ(dtype_of<std::int8_t>(), DType::i8);
  EXPECT_EQ(dtype_of<std::int16_t>(), DType::i16);
  EXPECT_EQ(dtype_of<std::int32_t>(), DType::i32);
  EXPECT_EQ(dtype_of<std::int64_t>(), DType::i64);
  EXPECT_EQ(dtype_of<long>(), DType::i64);
  EXPECT_EQ(dtype_of<long long>(), DType::i64);
  EXPECT_EQ(dtype_of<float8_e4m3>(), DType::f8e4m3);
  EXPECT_EQ(dtype_of<float8_e5m2>(), DType::f8e5m2);
  EXPECT_EQ(dtype_of<float16>(), DType::f16);
  EXPECT_EQ(dtype_of<bfloat16>(), DType::bf16);
  EXPECT_EQ(dtype_of<float>(), DType::f32);
  EXPECT_EQ(dtype_of<double>(), DType::f64);
  EXPECT_EQ(dtype_of<std::complex<float>>(), DType::c64);
  EXPECT_EQ(dtype_of<std::complex<double>>(), DType::c128);
}

template <class T>
void expect_layout() {
  EXPECT_EQ(sizeof(T), size_bytes(dtype_of<T>())) << to_string(dtype_of<T>());
  EXPECT_EQ(alignof(T), alignment_of(dtype_of<T>())) << to_string(dtype_of<T>());
}

TEST(DType, SizesAndAlignmentsAreThoseOfTheCppTypes) {
  expect_layout<bool>();
  expect_layout<std::uint16_t>();
  expect_layout<std::int32_t>();
  expect_layout<std::int64_t>();
  expect_layout<float8_e4m3>();
  expect_layout<float8_e5m2>();
  expect_layout<float16>();
  expect_layout<bfloat16>();
  expect_layout<float>();
  expect_layout<double>();
  expect_layout<std::complex<float>>();
  expect_layout<std::complex<double>>();
}

}  // namespace
