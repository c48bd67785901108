// SPDX-License-Identifier: Apache-2.0
#include "berth/storage/dlpack.h"

#include <gtest/gtest.h>

#include <functional>
#include <numeric>
#include <utility>
#include <vector>

#include "support/errors.h"
#include "support/everything.h"

namespace berth::testing {
namespace {

using dlpack::ManagedTensor;
using dlpack::ManagedTensorVersioned;

// A tensor as another framework would make it, counting how often its deleter is called.
struct Foreign {
  std::vector<float> values = std::vector<float>(24);
  std::vector<std::int64_t> shape = {2, 3, 4};
  std::vector<std::int64_t> strides = {12, 4, 1};
  int deleted = 0;
  ManagedTensorVersioned managed{};

  Foreign() {
    std::iota(values.begin(), values.end(), 0.0F);
    managed.version = {1, 1};
    managed.manager_ctx = this;
    managed.deleter = [](ManagedTensorVersioned* self) { ++static_cast<Foreign*>(self->manager_ctx)->deleted; };
    managed.dl_tensor = {values.data(), {dlpack::kCpu, 0}, 3, {dlpack::kFloat, 32, 1}, shape.data(), strides.data(), 0};
  }
};

TEST(Dlpack, ImportsWithoutACopyAndFreesOnce) {
  Foreign foreign;
  {
    const Storage x = from_dlpack(DlpackTensor(&foreign.managed));
    EXPECT_EQ(x.data_ptr(), foreign.values.data());
    EXPECT_EQ(x.shape(), Shape({2, 3, 4}));
    EXPECT_EQ(x.item<float>({1, 2, 3}), 23.0F);
    EXPECT_EQ(x.buffer().owner(), Owner::dlpack);
    const Storage view = x.select(0, 1);
    EXPECT_EQ(foreign.deleted, 0);
  }
  EXPECT_EQ(foreign.deleted, 1);
}

TEST(Dlpack, ATensorIsConsumedOnce) {
  Foreign foreign;
  DlpackTensor tensor(&foreign.managed);
  EXPECT_EQ(tensor.take(), &foreign.managed);
  EXPECT_ERROR(tensor.take(), AccessError, ErrorCode::already_consumed);
  EXPECT_ERROR(from_dlpack(std::move(tensor)), AccessError, ErrorCode::already_consumed);
  EXPECT_EQ(foreign.deleted, 0) << "it is the taker's now";
}

TEST(Dlpack, ATensorNeverConsumedIsFreedOnce) {
  Foreign foreign;
  {
    DlpackTensor tensor(&foreign.managed);
    DlpackTensor moved = std::move(tensor);
    EXPECT_EQ(moved.get(), &foreign.managed);
  }
  EXPECT_EQ(foreign.deleted, 1);
}

TEST(Dlpack, ExportsKeepTheBytesUntilTheConsumerLetsGo) {
  const auto tracked = track(direct("cpu"));
  ManagedTensorVersioned* taken = nullptr;
  {
    const Storage x = full({3, 4}, 2, DType::i16, tracked);
    taken = to_dlpack(x.transpose(0, 1)).take();
  }
  EXPECT_EQ(tracked->live().size(), 1U);
  const dlpack::Tensor& t = taken->dl_tensor;
  EXPECT_EQ(taken->version.major, 1U);
  EXPECT_EQ(t.ndim, 2);
  EXPECT_EQ(t.shape[0], 4);
  EXPECT_EQ(t.strides[0], 1);
  EXPECT_EQ(t.dtype.code, dlpack::kInt);
  EXPECT_EQ(t.dtype.bits, 16);
  EXPECT_EQ(t.byte_offset, 0U);
  EXPECT_EQ(static_cast<std::int16_t*>(t.data)[11], 2);
  taken->deleter(taken);
  EXPECT_TRUE(tracked->live().empty());
}

TEST(Dlpack, EveryDtypeAndDeviceMakesTheRoundTrip) {
  for (const char* device : {"cpu", "pinned", "sim:0"}) {
    for (const DTypeInfo& dtype : all_dtypes()) {
      const Storage x = full({2, 5}, 1, dtype.dtype, device).slice(1, 4, 0, -1);
      const Storage y = from_dlpack(to_dlpack(x));
      EXPECT_EQ(y.dtype(), dtype.dtype);
      EXPECT_EQ(y.strides(), x.strides());
      EXPECT_EQ(y.data_ptr(), x.data_ptr());
      EXPECT_TRUE(equal(x, y));
    }
  }
  EXPECT_EQ(from_dlpack(to_dlpack(zeros({0, 3}, DType::f32, "cpu"))).num_elements(), 0U);
  EXPECT_EQ(from_dlpack(to_dlpack(full({}, 4, DType::f32, "cpu"))).item<float>(), 4.0F);
}

TEST(Dlpack, ReadOnlyIsToldAndKept) {
  const Storage x = zeros({2}, DType::f32, "cpu").read_only();
  DlpackTensor tensor = to_dlpack(x);
  EXPECT_EQ(tensor.get()->flags & dlpack::kReadOnly, dlpack::kReadOnly);
  EXPECT_ERROR(from_dlpack(std::move(tensor)).fill(1), AccessError, ErrorCode::read_only);
  EXPECT_ERROR(to_dlpack_legacy(x), AccessError, ErrorCode::read_only);
}

TEST(Dlpack, TheOldLayoutWorksBothWays) {
  const auto tracked = track(direct("cpu"));
  ManagedTensor* const old = to_dlpack_legacy(full({3}, 6, DType::u8, tracked));
  {
    const Storage back = from_dlpack(old);
    EXPECT_EQ(back.item<std::uint8_t>({2}), 6);
  }
  EXPECT_TRUE(tracked->live().empty());
  EXPECT_ERROR(from_dlpack(static_cast<ManagedTensor*>(nullptr)), AccessError, ErrorCode::already_consumed);
}

enum class Refusal { format, dtype, rank, device_missing, device_unknown };

void expect_refused(Refusal refusal, const std::function<void(Foreign&)>& lie) {
  Foreign foreign;
  lie(foreign);
  const auto import = [&] { (void)from_dlpack(DlpackTensor(&foreign.managed)); };
  switch (refusal) {
    case Refusal::format: EXPECT_ERROR(import(), FormatError, ErrorCode::format_error); break;
    case Refusal::dtype: EXPECT_ERROR(import(), ArgumentError, ErrorCode::unsupported_dtype); break;
    case Refusal::rank: EXPECT_ERROR(import(), ArgumentError, ErrorCode::limit_exceeded); break;
    case Refusal::device_missing: EXPECT_ERROR(import(), DeviceError, ErrorCode::no_such_device); break;
    case Refusal::device_unknown: EXPECT_ERROR(import(), DeviceError, ErrorCode::unsupported); break;
  }
  EXPECT_EQ(foreign.deleted, 1);
}

TEST(Dlpack, LiesAreRefusedAndTheTensorIsFreed) {
  const std::pair<Refusal, std::function<void(Foreign&)>> rows[] = {
      {Refusal::format, [](Foreign& f) { f.managed.dl_tensor.ndim = -1; }},
      {Refusal::rank, [](Foreign& f) { f.managed.dl_tensor.ndim = 65; }},
      {Refusal::format, [](Foreign& f) { f.managed.dl_tensor.shape = nullptr; }},
      {Refusal::format, [](Foreign& f) { f.shape[1] = -3; }},
      {Refusal::format,
       [](Foreign& f) {
         f.shape = {INT64_MAX, INT64_MAX, 2};
       }},
      {Refusal::format, [](Foreign& f) { f.strides[0] = INT64_MAX; }},
      {Refusal::format, [](Foreign& f) { f.strides[0] = INT64_MIN; }},
      {Refusal::format, [](Foreign& f) { f.strides[0] = INT64_MAX / 4; }},
      {Refusal::format, [](Foreign& f) { f.managed.dl_tensor.data = nullptr; }},
      {Refusal::format, [](Foreign& f) { f.managed.dl_tensor.byte_offset = UINT64_MAX; }},
      {Refusal::format,
       [](Foreign& f) {
         f.managed.dl_tensor.byte_offset = UINT64_MAX / 2;
         f.managed.dl_tensor.data = reinterpret_cast<void*>(UINTPTR_MAX - 8);
       }},
      {Refusal::format,
       [](Foreign& f) {
         f.managed.dl_tensor.device = {99, 0};
       }},
      {Refusal::format,
       [](Foreign& f) {
         f.managed.dl_tensor.device = {dlpack::kCpu, -1};
       }},
      {Refusal::device_missing,
       [](Foreign& f) {
         f.managed.dl_tensor.device = {dlpack::kCpu, 7};
       }},
      {Refusal::device_unknown,
       [](Foreign& f) {
         f.managed.dl_tensor.device = {dlpack::kExtension, 0};
       }},
      {Refusal::dtype,
       [](Foreign& f) {
         f.managed.dl_tensor.dtype = {dlpack::kFloat, 32, 4};
       }},
      {Refusal::dtype,
       [](Foreign& f) {
         f.managed.dl_tensor.dtype = {dlpack::kFloat, 80, 1};
       }},
      {Refusal::dtype,
       [](Foreign& f) {
         f.managed.dl_tensor.dtype = {17, 4, 1};
       }},
      {Refusal::format, [](Foreign& f) { f.managed.version.major = 2; }},
  };
  std::size_t row = 0;
  for (const auto& [refusal, lie] : rows) {
    SCOPED_TRACE("row " + std::to_string(row++));
    expect_refused(refusal, lie);
  }
}

TEST(Dlpack, AnExtensionDeviceIsTakenOnlyFromBerthItself) {
  const Storage x = full({2}, 3, DType::f32, "sim:0");
  EXPECT_EQ(from_dlpack(to_dlpack(x)).device(), Device("sim:0"));
  EXPECT_EQ(from_dlpack(to_dlpack_legacy(x)).device(), Device("sim:0"));
  // An extension device of another framework is none of ours, even where the number would fit.
  Foreign foreign;
  foreign.managed.dl_tensor.device = {dlpack::kExtension, 0};
  EXPECT_ERROR(from_dlpack(DlpackTensor(&foreign.managed)), DeviceError, ErrorCode::unsupported);
  EXPECT_EQ(foreign.deleted, 1);
}

TEST(Dlpack, RowMajorStridesMayBeLeftOutAndADeleterToo) {
  Foreign foreign;
  foreign.managed.dl_tensor.strides = nullptr;
  foreign.managed.dl_tensor.byte_offset = 4;
  foreign.managed.dl_tensor.ndim = 1;
  foreign.managed.deleter = nullptr;
  EXPECT_EQ(from_dlpack(DlpackTensor(&foreign.managed)).item<float>({1}), 2.0F);
  { const DlpackTensor never(&foreign.managed); }
}

}  // namespace
}  // namespace berth::testing
