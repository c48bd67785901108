// SPDX-License-Identifier: Apache-2.0
#include "berth/storage/storage.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <numeric>
#include <sstream>
#include <vector>

#include "support/errors.h"
#include "support/everything.h"

namespace berth::testing {
namespace {

Storage counted(const Shape& shape, const AllocatorRef& where = "cpu") {
  std::vector<float> values(shape.num_elements());
  std::iota(values.begin(), values.end(), 0.0F);
  return from_data(values, shape, where);
}

TEST(Create, MakesStoragesOfEveryKindOnEveryDevice) {
  for (const char* device : {"cpu", "pinned", "sim:0"}) {
    for (const DTypeInfo& dtype : all_dtypes()) {
      const Storage z = zeros({2, 3}, dtype.dtype, device);
      EXPECT_EQ(z.device(), Device(device));
      EXPECT_EQ(z.size_bytes(), 6 * dtype.size_bytes());
      EXPECT_TRUE(equal(z, full({2, 3}, 0, dtype.dtype, "cpu"))) << dtype.name;
      EXPECT_EQ(full({2}, 1, dtype.dtype, device).to(DType::f64).to("cpu").item<double>({1}), 1.0) << dtype.name;
    }
  }
}

TEST(Create, CopiesAndConvertsHostDataToAnyDevice) {
  const std::vector<double> values = {1.5, -2.25, 1e9, 3};
  const Storage x = from_data(values, {2, 2}, "sim:0", DType::bf16);
  EXPECT_EQ(x.dtype(), DType::bf16);
  EXPECT_EQ(x.to("cpu").to(DType::f64).item<double>({0, 1}), -2.25);
  EXPECT_ERROR(from_data(values, {5}, "cpu"), ArgumentError, ErrorCode::size_mismatch);
  const std::array<std::int64_t, 3> longs = {1, 2, 3};
  EXPECT_EQ(from_data(longs, {3}, "cpu").dtype(), DType::i64);
}

TEST(Create, TakesSizesAndValuesAsTheyComeInCpp) {
  const std::vector<float> values = {1, 2, 3};
  const Storage x = from_data(values, {values.size()}, "cpu");
  EXPECT_EQ(empty({values.size(), 2U, std::int8_t{4}}, DType::f32, "cpu").shape(), Shape({3, 2, 4}));
  EXPECT_EQ(x.reshape({values.size(), -1}).shape(), Shape({3, 1}));
  EXPECT_EQ(x.item<float>({values.size() - 1}), 3.0F);
  std::size_t huge = SIZE_MAX;
  EXPECT_ERROR(empty({huge}, DType::u8, "cpu"), ArgumentError, ErrorCode::size_overflow);
  EXPECT_ERROR(empty({1, 1, 1, 1, 1, 1, 1, huge}, DType::u8, "cpu"), ArgumentError, ErrorCode::size_overflow);
  const Storage listed = from_data({1.5F, -2.0F}, {2}, "sim:0");
  EXPECT_EQ(listed.dtype(), DType::f32);
  EXPECT_EQ(listed.item<float>({1}), -2.0F);
  EXPECT_EQ(from_data({1, 2, 3, 4}, {2, 2}, "cpu", DType::bf16).to(DType::f64).item<double>({1, 0}), 3.0);
  EXPECT_ERROR(from_data({1, 2}, {3}, "cpu"), ArgumentError, ErrorCode::size_mismatch);
}

TEST(Create, TakesTheShapeOfNestedValues) {
  const Storage rows = from_data({{1, 2}, {3, 4}, {5, 6}}, "sim:0", DType::f32);
  EXPECT_EQ(rows.shape(), Shape({3, 2}));
  EXPECT_EQ(rows.dtype(), DType::f32);
  EXPECT_EQ(rows.item<float>({2, 0}), 5.0F);
  EXPECT_EQ(from_data({1.5, 2.5}, "cpu").shape(), Shape({2}));
  EXPECT_EQ(from_data({{{1, 2}}, {{3, 4}}, {{5, 6}}}, "cpu").shape(), Shape({3, 1, 2}));
  EXPECT_EQ(from_data({{{{true}, {false}}}}, "cpu").item<bool>({0, 0, 0, 0}), true);
  const std::vector<std::vector<std::array<double, 3>>> nested = {{{1, 2, 3}, {4, 5, 6}}, {{7, 8, 9}, {10, 11, 12}}};
  const Storage deep = from_data(nested, "cpu");
  EXPECT_EQ(deep.shape(), Shape({2, 2, 3}));
  EXPECT_EQ(deep.item<double>({1, 0, 2}), 9);
  const float square[2][2] = {{1, 2}, {3, 4}};
  EXPECT_EQ(from_data(square, "cpu").item<float>({1, 0}), 3);
  EXPECT_EQ(from_data(std::vector<std::vector<float>>(), "cpu").shape(), Shape({0, 0}));
  EXPECT_EQ(from_data(std::vector<std::vector<float>>(4), "cpu").shape(), Shape({4, 0}));
  EXPECT_ERROR(from_data({{1, 2}, {3}}, "cpu"), ArgumentError, ErrorCode::size_mismatch);
  EXPECT_ERROR(from_data(std::vector<std::vector<float>>{{}, {1}}, "cpu"), ArgumentError, ErrorCode::size_mismatch);
}

TEST(Create, PadsABufferToItsAlignment) {
  for (const char* device : {"cpu", "sim:0"}) {
    const std::size_t usual = pool(device)->backend().properties().alignment;
    for (const std::size_t alignment : {std::size_t{0}, std::size_t{32}, std::size_t{4096}}) {
      Storage x = empty({1001}, DType::u8, device, {.alignment = alignment, .padded = true});
      const std::size_t unit = alignment == 0 ? usual : alignment;
      EXPECT_EQ(x.size_bytes(), 1001U);
      EXPECT_EQ(x.buffer().size_bytes(), (1001 + unit - 1) / unit * unit);
      x.resize({1010});
      EXPECT_EQ(x.size_bytes(), 1010U) << "the padding is there for it";
      EXPECT_EQ(make_buffer(1, device, {.alignment = alignment, .padded = true}).size_bytes(), unit);
      EXPECT_EQ(try_empty({5}, DType::u8, device, {.alignment = alignment, .padded = true})->buffer().size_bytes(), unit);
    }
  }
  EXPECT_EQ(empty({0}, DType::u8, "cpu", {.padded = true}).buffer().size_bytes(), 0U);
  EXPECT_ERROR(empty({3}, DType::u8, "cpu", {.alignment = 24, .padded = true}), ArgumentError, ErrorCode::invalid_alignment);
}

TEST(Create, RefusesShapesThatCannotBeBeforeAllocating) {
  const auto tracked = track(direct("cpu"));
  EXPECT_ERROR(empty({INT64_MAX, 2}, DType::u8, tracked), ArgumentError, ErrorCode::size_overflow);
  EXPECT_ERROR(empty({1LL << 32, 1LL << 32}, DType::u8, tracked), ArgumentError, ErrorCode::size_overflow);
  EXPECT_ERROR(empty({1LL << 61}, DType::f64, tracked), ArgumentError, ErrorCode::size_overflow);
  EXPECT_ERROR(empty({3, -1}, DType::u8, tracked), ArgumentError, ErrorCode::invalid_shape);
  EXPECT_ERROR(try_empty({3, -1}, DType::u8, tracked), ArgumentError, ErrorCode::invalid_shape);
  EXPECT_ERROR(empty({3}, DType::u8, tracked, {.alignment = 24}), ArgumentError, ErrorCode::invalid_alignment);
  EXPECT_EQ(tracked->stats().allocations, 0U);
}

TEST(Create, WhatNoMachineHasIsOutOfMemory) {
  EXPECT_FALSE(try_empty({1LL << 50}, DType::u8, "cpu").has_value());
  EXPECT_ERROR(empty({1LL << 50}, DType::u8, "cpu"), OutOfMemory, ErrorCode::out_of_memory);
  EXPECT_ERROR(empty({1LL << 50}, DType::u8, "sim:0"), OutOfMemory, ErrorCode::out_of_memory);
}

TEST(Create, ZeroElementsAreAValidStorage) {
  for (const char* device : {"cpu", "sim:0"}) {
    const Storage none = empty({0, 1LL << 62}, DType::f64, device);
    EXPECT_EQ(none.num_elements(), 0U);
    EXPECT_EQ(none.size_bytes(), 0U);
    EXPECT_EQ(none.data_ptr(), nullptr);
    EXPECT_EQ(none.device(), Device(device));
    EXPECT_TRUE(none.is_contiguous());
    EXPECT_TRUE(equal(none.clone(), none));
    none.fill(1);
    none.copy_from(none.to("cpu"));
  }
}

TEST(Create, AScalarHasOneElement) {
  const Storage s = full({}, 2.5, DType::f32, "sim:0");
  EXPECT_EQ(s.rank(), 0U);
  EXPECT_EQ(s.num_elements(), 1U);
  EXPECT_EQ(s.item<float>(), 2.5F);
}

TEST(Create, AlignsUpToAnyPowerOfTwo) {
  for (std::size_t alignment = 1; alignment <= (std::size_t{1} << 26); alignment *= 2) {
    const Storage x = empty({3}, DType::u8, "cpu", {.alignment = alignment});
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(x.data_ptr()) % alignment, 0U) << alignment;
  }
}

TEST(FromBlob, BorrowsAndAdopts) {
  std::vector<float> values = {0, 1, 2, 3, 4, 5};
  int deleted = 0;
  {
    const Storage borrowed = from_blob(values.data(), {2, 3}, DType::f32, "cpu");
    EXPECT_TRUE(borrowed.buffer().is_external());
    borrowed.fill(9);
    EXPECT_EQ(values[5], 9.0F);
    const Storage adopted =
        from_blob(values.data(), {6}, DType::f32, "cpu", [&](void* data) { deleted += data == values.data() ? 1 : 100; });
    const Storage view = adopted.slice(0, 1, 3);
    EXPECT_EQ(deleted, 0);
  }
  EXPECT_EQ(deleted, 1);
}

TEST(FromBlob, ChecksTheSizeAndStillCallsTheDeleter) {
  std::vector<float> values(6);
  int deleted = 0;
  const auto deleter = [&](void*) { ++deleted; };
  EXPECT_ERROR(from_blob(values.data(), {7}, DType::f32, "cpu", deleter, {.size_bytes = 24}), ArgumentError, ErrorCode::size_mismatch);
  EXPECT_ERROR(from_blob(values.data(), {INT64_MAX, 4}, DType::f32, "cpu", deleter), ArgumentError, ErrorCode::size_overflow);
  EXPECT_ERROR(from_blob(values.data(), {2}, DType::f32, "cpu:9", deleter), DeviceError, ErrorCode::no_such_device);
  EXPECT_ERROR(from_blob(static_cast<void*>(nullptr), {2}, DType::f32, "cpu", deleter), ArgumentError, ErrorCode::invalid_argument);
  EXPECT_ERROR(from_blob(values.data(), {2, 3}, DType::f32, "cpu", deleter, {.strides = Strides{1}}), ArgumentError,
               ErrorCode::size_mismatch);
  EXPECT_EQ(deleted, 5);
}

TEST(FromBlob, NegativeStridesCountFromTheGivenAddress) {
  std::vector<float> values = {0, 1, 2, 3, 4, 5};
  const Storage reversed = from_blob(values.data() + 5, {6}, DType::f32, "cpu", {}, {.strides = Strides{-1}});
  EXPECT_EQ(reversed.item<float>({0}), 5.0F);
  EXPECT_EQ(reversed.item<float>({5}), 0.0F);
}

TEST(FromBlob, ConstMemoryIsReadOnly) {
  const std::vector<float> values = {1, 2};
  const Storage x = from_blob(values.data(), {2}, DType::f32, "cpu");
  EXPECT_TRUE(x.is_read_only());
  EXPECT_ERROR(x.fill(0), AccessError, ErrorCode::read_only);
  EXPECT_ERROR(x.data<float>(), AccessError, ErrorCode::read_only);
  EXPECT_EQ(x.data<const float>()[1], 2.0F);
  EXPECT_ERROR(x.slice(0, 0, 1).copy_from(x.slice(0, 1, 2)), AccessError, ErrorCode::read_only);
  EXPECT_NO_THROW(x.clone().fill(0));
}

TEST(Storage, DataIsChecked) {
  const Storage x = counted({2, 3});
  EXPECT_EQ(x.data<float>()[4], 4.0F);
  EXPECT_EQ(x.elements<const float>().size(), 6U);
  EXPECT_ERROR(x.data<double>(), ArgumentError, ErrorCode::unsupported_dtype);
  EXPECT_ERROR(x.data<std::int32_t>(), ArgumentError, ErrorCode::unsupported_dtype);
  EXPECT_ERROR(x.transpose(0, 1).elements<float>(), ArgumentError, ErrorCode::not_viewable);
  EXPECT_ERROR(x.to("sim:0").data<float>(), AccessError, ErrorCode::wrong_device);
  std::vector<std::byte> odd(9);
  EXPECT_ERROR(from_blob(odd.data() + 1, {2}, DType::f32, "cpu").data<float>(), ArgumentError, ErrorCode::misaligned);
  EXPECT_EQ(from_blob(odd.data() + 1, {2}, DType::f32, "cpu").clone().data<float>()[1], 0.0F) << "an unaligned storage can still be copied";
  EXPECT_ERROR(x.item<float>({2, 0}), ArgumentError, ErrorCode::out_of_bounds);
  EXPECT_ERROR(x.item<float>({1}), ArgumentError, ErrorCode::out_of_bounds);
}

TEST(Storage, ToReturnsTheSameStorageWhenThereIsNothingToDo) {
  const Storage x = counted({4});
  EXPECT_TRUE(x.to("cpu").is_view_of(x));
  EXPECT_TRUE(x.to(DType::f32).is_view_of(x));
  EXPECT_TRUE(x.contiguous().is_view_of(x));
  EXPECT_FALSE(x.to("sim:0").is_view_of(x));
  EXPECT_FALSE(x.clone().is_view_of(x));
  EXPECT_FALSE(x.to("pinned").is_view_of(x));
}

TEST(Storage, ContiguousCopiesInTheOrderOfAStream) {
  const Storage x = counted({2, 3}, "sim:0");
  const Stream stream = make_stream("sim:0");
  x.fill(7, {.stream = stream, .non_blocking = true});
  const Storage t = x.transpose(0, 1).contiguous({.stream = stream});
  EXPECT_EQ(t.item<float>({2, 1}), 7.0F) << "the copy comes after the fill that the stream was given before it";
}

TEST(Storage, ViewsShareAndCountTheirBuffer) {
  const auto tracked = track(direct("cpu"));
  Storage x = counted({4, 4}, tracked);
  EXPECT_EQ(x.use_count(), 1);
  Storage v = x.slice(0, 1, 3);
  EXPECT_EQ(x.use_count(), 2);
  v.fill(5);
  EXPECT_EQ(x.item<float>({1, 0}), 5.0F);
  x = {};
  EXPECT_EQ(tracked->live().size(), 1U);
  EXPECT_EQ(v.item<float>({0, 0}), 5.0F);
  v = {};
  EXPECT_TRUE(tracked->live().empty());
}

TEST(Storage, ViewsOutOfBoundsAreRefusedWithNumbers) {
  const Storage x = counted({10});
  EXPECT_ERROR(x.as_strided({4}, {3}, 2), ArgumentError, ErrorCode::out_of_bounds);
  EXPECT_ERROR(x.as_strided({2}, {-1}, 0), ArgumentError, ErrorCode::out_of_bounds);
  EXPECT_ERROR(x.as_strided({2}, {INT64_MAX}, 0), ArgumentError, ErrorCode::out_of_bounds);
  EXPECT_ERROR(x.as_strided({INT64_MAX, 3}, {0, INT64_MAX}, 0), ArgumentError, ErrorCode::size_overflow);
  EXPECT_ERROR(x.as_strided({3}, {INT64_MIN}, 0), ArgumentError, ErrorCode::out_of_bounds);
  EXPECT_ERROR(x.as_strided({1}, {1}, INT64_MAX), ArgumentError, ErrorCode::out_of_bounds);
  EXPECT_ERROR(x.as_strided({1}, {1}, -1), ArgumentError, ErrorCode::out_of_bounds);
  EXPECT_ERROR(x.as_strided({2, 2}, {1}, 0), ArgumentError, ErrorCode::size_mismatch);
  try {
    (void)x.as_strided({4}, {3}, 2);
  } catch (const ArgumentError& error) {
    EXPECT_EQ(error.fact("need"), "48");
    EXPECT_EQ(error.fact("have"), "40");
  }
}

TEST(Storage, AxesAndIndicesThatAreNotThereAreRefused) {
  const Storage x = counted({2, 3});
  EXPECT_ERROR(x.slice(2, 0, 1), ArgumentError, ErrorCode::out_of_bounds);
  EXPECT_ERROR(x.slice(-3, 0, 1), ArgumentError, ErrorCode::out_of_bounds);
  EXPECT_ERROR(x.slice(0, 0, 1, 0), ArgumentError, ErrorCode::invalid_argument);
  EXPECT_ERROR(x.select(1, 3), ArgumentError, ErrorCode::out_of_bounds);
  EXPECT_ERROR(x.select(1, -4), ArgumentError, ErrorCode::out_of_bounds);
  EXPECT_ERROR(x.permute({0, 0}), ArgumentError, ErrorCode::invalid_argument);
  EXPECT_ERROR(x.permute({0}), ArgumentError, ErrorCode::invalid_argument);
  EXPECT_ERROR(x.expand({4, 3}), ArgumentError, ErrorCode::size_mismatch);
  EXPECT_ERROR(x.expand({3}), ArgumentError, ErrorCode::size_mismatch);
  EXPECT_ERROR(x.expand({-1, 2, 3}), ArgumentError, ErrorCode::size_mismatch);
  EXPECT_ERROR(x.squeeze(0), ArgumentError, ErrorCode::invalid_argument);
  EXPECT_ERROR(x.unsqueeze(4), ArgumentError, ErrorCode::out_of_bounds);
  EXPECT_ERROR(x.reshape({4, -1}), ArgumentError, ErrorCode::size_mismatch);
  EXPECT_ERROR(x.reshape({-1, -1}), ArgumentError, ErrorCode::invalid_shape);
  EXPECT_ERROR(x.reshape({5}), ArgumentError, ErrorCode::size_mismatch);
  EXPECT_ERROR(x.transpose(0, 1).reshape({6}), ArgumentError, ErrorCode::not_viewable);
  EXPECT_ERROR(x.reinterpret(DType::c128), ArgumentError, ErrorCode::size_mismatch);
  EXPECT_ERROR(counted({}).transpose(0, 0), ArgumentError, ErrorCode::out_of_bounds);
}

TEST(Storage, SlicesWithoutABoundGoToTheEndOfTheAxis) {
  const Storage x = counted({5});
  const auto values = [](const Storage& s) {
    const Storage copied = s.contiguous();
    const std::span<const float> seen = copied.elements<const float>();
    return std::vector<float>(seen.begin(), seen.end());
  };
  using List = std::vector<float>;
  EXPECT_EQ(values(x.slice(0, 2)), (List{2, 3, 4}));
  EXPECT_EQ(values(x.slice(0, {}, 2)), (List{0, 1}));
  EXPECT_EQ(values(x.slice(0, -2, {})), (List{3, 4}));
  EXPECT_EQ(values(x.slice(0, {}, {}, 2)), (List{0, 2, 4}));
  EXPECT_EQ(values(x.slice(0, {}, {}, -1)), (List{4, 3, 2, 1, 0}));
  EXPECT_EQ(values(x.slice(0, 1, {}, -1)), (List{1, 0}));
  EXPECT_EQ(values(x.slice(0, {}, 2, -1)), (List{4, 3}));
  EXPECT_EQ(x.slice(0, 0, 0).slice(0, {}, {}, -1).num_elements(), 0U);
}

TEST(Storage, SlicesWithExtremeBoundsAreClipped) {
  const Storage x = counted({5});
  EXPECT_EQ(x.slice(0, INT64_MIN, INT64_MAX).num_elements(), 5U);
  EXPECT_EQ(x.slice(0, INT64_MAX, INT64_MIN, INT64_MIN).num_elements(), 1U);
  EXPECT_EQ(x.slice(0, 0, INT64_MAX, INT64_MAX).num_elements(), 1U);
  EXPECT_EQ(x.flip(0).item<float>({0}), 4.0F);
}

TEST(Storage, RanksBeyondTheInlineOnesWork) {
  const Storage x = counted({1, 2, 1, 2, 1, 2, 1, 2, 2});
  EXPECT_EQ(x.rank(), 9U);
  const Storage t = x.transpose(1, 8).contiguous();
  EXPECT_EQ(t.item<float>({0, 1, 0, 0, 0, 0, 0, 0, 0}), 1.0F);
  EXPECT_EQ(x.unsqueeze(0).squeeze(0).select(8, 1).num_elements(), 16U);
  EXPECT_EQ(x.reshape({32}).reshape({2, 2, 2, 2, 2, 1, 1, 1, 1, 1}).rank(), 10U);
}

TEST(Storage, WrongShapesAndOrdersAreExplained) {
  const auto message = [](auto act) {
    try {
      act();
    } catch (const ArgumentError& error) {
      return std::string(error.what());
    }
    return std::string("no error");
  };
  const Storage x = counted({2, 3});
  const Storage scalar = counted({});
  const std::pair<std::string, std::string> rows[] = {
      {message([&] {
         (void)x.reshape({-1, -1});
       }),
       "reshaping [2, 3] to [-1, -1]: axes 0 and 1 are both -1, and only one can be inferred; help: write the others out"},
      {message([&] {
         (void)x.reshape({6, -2});
       }),
       "reshaping [2, 3] to [6, -2]: axis 1 is -2; help: use sizes of 0 or more, and at most one -1"},
      {message([&] { (void)scalar.permute({0}); }),
       "permuting [] by [0]: it has 0 axes, and the order names 1; help: a scalar has no axes: only permute({}) works"},
      {message([&] { (void)x.permute({0}); }),
       "permuting [2, 3] by [0]: it has 2 axes, and the order names 1; help: name each axis from 0 to 1 once, in the new order"},
      {message([&] {
         (void)x.permute({1, -1});
       }),
       "permuting [2, 3] by [1, -1]: it does not name each axis once; help: name each axis from 0 to 1 once, in the new order"},
  };
  for (const auto& [got, expected] : rows) EXPECT_EQ(got, expected);
  EXPECT_EQ(scalar.permute({}).rank(), 0U);
}

TEST(Buffer, IsMadeFilledCopiedAndWrapped) {
  const Buffer a = make_buffer(100, "cpu");
  const Buffer b = make_buffer(100, "sim:0", {.tag = "raw"});
  a.fill(7);
  b.copy_from(a);
  const Buffer c = make_buffer(100, direct("cpu"));
  c.copy_from(b);
  EXPECT_EQ(static_cast<unsigned char*>(c.data())[99], 7);
  EXPECT_ERROR(c.copy_from(make_buffer(99, "cpu")), ArgumentError, ErrorCode::size_mismatch);
  EXPECT_EQ(b.block().tag, Tag("raw"));
  EXPECT_EQ(b.owner(), Owner::allocator);
  EXPECT_FALSE(b.is_external());
  EXPECT_EQ(make_buffer(0, "sim:0").data(), nullptr);
  char local[4] = "abc";
  const Buffer wrapped = wrap_buffer(local, 4, "cpu", {}, {.read_only = true});
  EXPECT_TRUE(wrapped.is_external());
  EXPECT_ERROR(wrapped.fill(0), AccessError, ErrorCode::read_only);
  EXPECT_ERROR(wrapped.copy_from(make_buffer(4, "cpu")), AccessError, ErrorCode::read_only);
}

TEST(Inspect, SharedAndMappedAreSaidWhenTheyAre) {
  Inspection seen = inspect(zeros({2}, DType::f32, "cpu"));
  EXPECT_EQ(seen.to_string().find(", shared"), std::string::npos);
  seen.is_shared = true;
  seen.is_mapped = true;
  EXPECT_NE(seen.to_string().find(", shared, mapped"), std::string::npos) << seen.to_string();
  const nlohmann::json json = nlohmann::json::parse(to_json(seen));
  EXPECT_EQ(json["is_shared"], true);
  EXPECT_EQ(json["is_mapped"], true);
}

TEST(Buffer, NoOwnerOfThisVersionSharesOrMaps) {
  char local[4] = {};
  const Storage x = zeros({2}, DType::f32, "cpu");
  for (const Buffer& buffer : {Buffer(), x.buffer(), wrap_buffer(local, 4, "cpu"), from_dlpack(to_dlpack(x)).buffer()}) {
    EXPECT_FALSE(buffer.is_shared()) << to_string(buffer.owner());
    EXPECT_FALSE(buffer.is_mapped()) << to_string(buffer.owner());
  }
  EXPECT_FALSE(x.is_shared() || x.is_mapped());
}

TEST(Inspect, TellsWhatItsAllocatorHolds) {
  const auto memory = rounded("cpu");
  const Storage x = zeros({1000}, DType::u8, memory);
  const Inspection seen = inspect(x);
  ASSERT_TRUE(seen.allocator_stats.has_value());
  EXPECT_EQ(*seen.allocator_stats, memory->stats());
  EXPECT_NE(seen.to_string().find("owned by rounded (1000 B in use, 24 B cached), 1 handle"), std::string::npos) << seen.to_string();
  EXPECT_EQ(nlohmann::json::parse(to_json(seen))["allocator_stats"]["in_use_bytes"], 1000);
  EXPECT_EQ(nlohmann::json::parse(to_json(inspect(Storage())))["allocator_stats"], nullptr);
}

TEST(Storage, AViewOfAViewCountsFromItsFirstElement) {
  const Storage whole = counted({10, 10});
  const Storage part = whole.slice(0, 2, 8);
  EXPECT_EQ(part.as_strided({2}, {1}, 3).item<float>({0}), 3.0F);
  EXPECT_EQ(part.strided_view({2}, {1}, 3).item<float>({0}), 23.0F);
  EXPECT_EQ(part.strided_view({2}, {1}, -15).item<float>({1}), 6.0F);
  EXPECT_EQ(part.strided_view({2, 2}, {10, 1}).strided_view({3}, {-10}, 10).item<float>({2}), 10.0F);
  EXPECT_ERROR(part.strided_view({2}, {1}, -21), ArgumentError, ErrorCode::out_of_bounds);
  EXPECT_ERROR(part.strided_view({2}, {1}, 79), ArgumentError, ErrorCode::out_of_bounds);
  EXPECT_ERROR(part.strided_view({1}, {1}, INT64_MAX), ArgumentError, ErrorCode::out_of_bounds);
}

TEST(Inspect, TellsEverythingAsTextAndJson) {
  const Storage x = empty({4, 6}, DType::bf16, track(direct("cpu")), {.tag = "weird \"tag\"\x01"});
  const Storage view = x.slice(1, 2, 6, 2).read_only();
  const Inspection seen = inspect(view);
  const nlohmann::json json = nlohmann::json::parse(to_json(seen));
  EXPECT_EQ(json["dtype"], "bf16");
  EXPECT_EQ(json["shape"], (std::vector<int>{4, 2}));
  EXPECT_EQ(json["strides"], (std::vector<int>{6, 2}));
  EXPECT_EQ(json["offset"], 2);
  EXPECT_EQ(json["device"], "cpu:0");
  EXPECT_EQ(json["size_bytes"], 16);
  EXPECT_EQ(json["buffer_size_bytes"], 48);
  EXPECT_EQ(json["is_contiguous"], false);
  EXPECT_EQ(json["is_read_only"], true);
  EXPECT_EQ(json["is_pinned"], false);
  EXPECT_EQ(json["is_shared"], false);
  EXPECT_EQ(json["is_mapped"], false);
  EXPECT_EQ(json["owner"], "allocator");
  EXPECT_EQ(json["allocator"], "track(direct)");
  EXPECT_EQ(json["use_count"], 2);
  std::ostringstream text;
  text << seen;
  EXPECT_NE(text.str().find("bf16 [4, 2] on cpu:0, 16 B, strides [6, 2], offset 2, view of 48 B, read-only"), std::string::npos)
      << text.str();
  EXPECT_EQ(text.str().find('\x01'), std::string::npos);
  EXPECT_EQ(nlohmann::json::parse(to_json(inspect(Storage())))["allocator"], nullptr);
}

}  // namespace
}  // namespace berth::testing
