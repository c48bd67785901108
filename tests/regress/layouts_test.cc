// SPDX-License-Identifier: Apache-2.0
// Bugs in which layouts and handles reached memory outside their own, or reported wrong facts.
#include <gtest/gtest.h>

#include <vector>

#include "support/errors.h"
#include "support/everything.h"

namespace berth::testing {
namespace {

TEST(Regress, ABlobWithNegativeStridesEndsWhereItsMemoryDoes) {
  std::vector<float> values = {0, 1, 2, 3};
  const Storage reversed = from_blob(values.data() + 3, {4}, DType::f32, "cpu", {}, {.strides = Strides{-1}, .size_bytes = 16});
  EXPECT_EQ(reversed.buffer().size_bytes(), 16U);
  EXPECT_EQ(reversed.buffer().data(), values.data());
  EXPECT_ERROR(reversed.as_strided({7}, {1}, 0), ArgumentError, ErrorCode::out_of_bounds);
  EXPECT_ERROR(from_blob(values.data() + 3, {4}, DType::f32, "cpu", {}, {.strides = Strides{-1}, .size_bytes = 12}), ArgumentError,
               ErrorCode::size_mismatch);
  EXPECT_ERROR(from_blob(static_cast<void*>(nullptr), {4}, DType::f32, "cpu", {}, {.strides = Strides{-1}}), ArgumentError,
               ErrorCode::invalid_argument);
  EXPECT_ERROR(from_blob(values.data(), {2}, DType::u8, "cpu", {}, {.strides = Strides{INT64_MIN}}), ArgumentError,
               ErrorCode::out_of_bounds);
}

TEST(Regress, TheDeleterOfABlobGetsTheAddressItsOwnerKnows) {
  std::vector<float> values(4);
  void* deleted = nullptr;
  {
    const Storage adopted =
        from_blob(values.data() + 3, {4}, DType::f32, "cpu", [&](void* data) { deleted = data; }, {.strides = Strides{-1}});
  }
  EXPECT_EQ(deleted, values.data() + 3);
}

TEST(Regress, ReadOnlyHoldsThroughEveryDoor) {
  const Storage x = full({4}, 5, DType::i32, "cpu");
  const Storage r = x.read_only();
  const std::vector<Storage> doors = {r,
                                      r.slice(0, 0, 2),
                                      r.reshape({2, 2}),
                                      r.as_strided({2}, {1}, 0),
                                      r.reinterpret(DType::u8),
                                      Storage(r.buffer(), DType::i32, {4}, {1}),
                                      r.transpose(0, 0),
                                      r.expand({2, 4}).select(0, 0)};
  for (const Storage& door : doors) {
    EXPECT_TRUE(door.is_read_only());
    EXPECT_ERROR(door.fill(0), AccessError, ErrorCode::read_only);
    EXPECT_ERROR(fill(door.span(), 0), AccessError, ErrorCode::read_only);
    EXPECT_ERROR(copy(door.clone().span(), door.span()), AccessError, ErrorCode::read_only);
  }
  EXPECT_ERROR(r.buffer().fill(0), AccessError, ErrorCode::read_only);
  EXPECT_EQ(x.item<std::int32_t>({0}), 5);
  EXPECT_FALSE(x.is_read_only()) << "the other handle may still write";
  EXPECT_FALSE(r.clone().is_read_only());
}

TEST(Regress, SpansThatContradictThemselvesAreRefused) {
  std::vector<float> values(16);
  const Storage target = zeros({4}, DType::f32, "cpu");
  const StridedSpan no_strides{values.data(), DType::f32, {4}, {}, Device(), {}};
  const StridedSpan no_memory{nullptr, DType::f32, {4}, {1}, Device(), {}};
  const StridedSpan too_far{values.data(), DType::f32, {4}, {INT64_MAX}, Device(), {}};
  EXPECT_ERROR(copy(no_strides, target.span()), ArgumentError, ErrorCode::size_mismatch);
  EXPECT_ERROR(copy(target.span(), no_strides), ArgumentError, ErrorCode::size_mismatch);
  EXPECT_ERROR(fill(no_memory, 0), ArgumentError, ErrorCode::invalid_argument);
  EXPECT_ERROR(equal(too_far, target.span()), ArgumentError, ErrorCode::out_of_bounds);
}

TEST(Regress, ViewsOfNothingComputeNothing) {
  const Storage none = empty({0, std::int64_t{1} << 62, 8}, DType::u8, "cpu");
  EXPECT_EQ(none.select(1, std::int64_t{1} << 61).offset(), 0);
  EXPECT_EQ(none.slice(1, 5, 100, 7).offset(), 0);
  const Storage flat = zeros({3, 0, 4}, DType::f64, "cpu").select(0, 2);
  EXPECT_NO_THROW((void)flat.as_strided(flat.shape(), flat.strides(), flat.offset()));
}

TEST(Regress, ExpandingPastWhatCanBeCountedIsRefused) {
  const Storage x = zeros({1}, DType::f32, "cpu");
  EXPECT_ERROR(x.expand({std::int64_t{1} << 62}), ArgumentError, ErrorCode::size_overflow);
  EXPECT_EQ(x.expand({3, -1}).shape(), Shape({3, 1}));
  const std::int64_t long_axis = (std::int64_t{1} << 60) + 5;
  EXPECT_EQ(x.expand({long_axis}).flip(0).shape(), Shape({long_axis}));
}

TEST(Regress, ABoolOfAnyByteIsReadAsTrue) {
  const Storage bytes = full({3}, 2, DType::u8, "sim:0");
  EXPECT_TRUE(bytes.reinterpret(DType::boolean).item<bool>({1}));
}

TEST(Regress, AMovedFromStorageHasNoElements) {
  Storage a = full({3}, 1, DType::f32, "cpu");
  const Storage b = std::move(a);
  EXPECT_EQ(a.num_elements(), 0U);
  EXPECT_EQ(a.shape(), Shape({0}));
  EXPECT_NO_THROW(a.fill(1));
  EXPECT_EQ(b.item<float>({2}), 1.0F);
  a = b.clone();
  EXPECT_TRUE(equal(a, b));
}

TEST(Regress, ConvertedCopiesStayWithTheirAllocator) {
  const auto tracked = track(direct("cpu"));
  const Storage x = zeros({4}, DType::f32, tracked);
  const Storage h = x.to(DType::bf16);
  EXPECT_EQ(tracked->live().size(), 2U) << "a limit must not be escaped by converting";
}

TEST(Regress, AssigningADlpackTensorFreesTheOneItHad) {
  int freed[2] = {0, 0};
  dlpack::ManagedTensorVersioned managed[2] = {};
  for (int i = 0; i < 2; ++i) {
    managed[i].manager_ctx = &freed[i];
    managed[i].deleter = [](dlpack::ManagedTensorVersioned* self) { ++*static_cast<int*>(self->manager_ctx); };
  }
  DlpackTensor a(&managed[0]);
  DlpackTensor b(&managed[1]);
  a = std::move(b);
  EXPECT_EQ(freed[0], 1);
  EXPECT_ERROR(b.take(), AccessError, ErrorCode::already_consumed);
  EXPECT_EQ(a.take(), &managed[1]);
  EXPECT_EQ(freed[1], 0);
}

TEST(Regress, DlpackSpeaksTheCodesEveryoneElseDoes) {
  const auto code = [](DType dtype) { return zeros({1}, dtype, "cpu"); };
  struct Expected {
    DType dtype;
    int type_code;
    int bits;
  };
  for (const Expected& e :
       {Expected{DType::i32, 0, 32}, Expected{DType::u8, 1, 8}, Expected{DType::f16, 2, 16}, Expected{DType::bf16, 4, 16},
        Expected{DType::c64, 5, 64}, Expected{DType::boolean, 6, 8}, Expected{DType::f8e4m3, 10, 8}, Expected{DType::f8e5m2, 12, 8}}) {
    const DlpackTensor tensor = to_dlpack(code(e.dtype));
    EXPECT_EQ(tensor.get()->dl_tensor.dtype.code, e.type_code) << to_string(e.dtype);
    EXPECT_EQ(tensor.get()->dl_tensor.dtype.bits, e.bits) << to_string(e.dtype);
    EXPECT_EQ(tensor.get()->dl_tensor.device.type, 1);
  }
  const int expected = backend("pinned").properties().abilities.pinned ? 3 : 1;
  EXPECT_EQ(to_dlpack(zeros({1}, DType::u8, "pinned")).get()->dl_tensor.device.type, expected);
}

// Overlap is decided by address, not by the name of the device.
TEST(Regress, CopiesBetweenCpuAndPinnedHandlesOfTheSameMemoryAreRight) {
  std::vector<float> values = {0, 1, 2, 3, 4, 5};
  const Storage as_cpu = from_blob(values.data(), {6}, DType::f32, "cpu");
  const Storage as_pinned = from_blob(values.data(), {6}, DType::f32, "pinned");
  as_pinned.copy_from(as_cpu.flip(0));
  EXPECT_EQ(values, (std::vector<float>{5, 4, 3, 2, 1, 0}));
}

}  // namespace
}  // namespace berth::testing
