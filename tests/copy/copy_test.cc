// SPDX-License-Identifier: Apache-2.0
#include "berth/copy/copy.h"

#include <gtest/gtest.h>

#include <cmath>
#include <numeric>
#include <vector>

#include "support/errors.h"
#include "support/everything.h"

namespace berth::testing {
namespace {

std::vector<float> counted(std::size_t count) {
  std::vector<float> values(count);
  std::iota(values.begin(), values.end(), 0.0F);
  return values;
}

TEST(Copy, RefusesBeforeAByteMoves) {
  const Storage x = full({4, 4}, 1, DType::f32, "cpu");
  const Storage y = zeros({4, 3}, DType::f32, "cpu");
  EXPECT_ERROR(y.copy_from(x), ArgumentError, ErrorCode::size_mismatch);
  EXPECT_ERROR(y.select(1, 0).unsqueeze(1).expand({4, 4}).copy_from(x), ArgumentError, ErrorCode::overlapping_view);
  EXPECT_ERROR(y.read_only().copy_from(x), AccessError, ErrorCode::read_only);
  EXPECT_ERROR(y.read_only().copy_from(zeros({4, 3}, DType::f32, "cpu")), AccessError, ErrorCode::read_only);
  EXPECT_ERROR(y.read_only().fill(1), AccessError, ErrorCode::read_only);
  EXPECT_TRUE(equal(y, zeros({4, 3}, DType::f32, "cpu")));
}

TEST(Copy, OverlappingRangesGiveTheResultOfACopyThroughATemporary) {
  const Storage x = from_data(counted(10), {10}, "cpu");
  x.slice(0, 3, 10).copy_from(x.slice(0, 0, 7));
  const std::vector<float> expected = {0, 1, 2, 0, 1, 2, 3, 4, 5, 6};
  EXPECT_TRUE(equal(x, from_data(expected, {10}, "cpu")));
  // Conversion in place, over the same bytes.
  const Storage bytes = from_data(counted(4), {4}, "cpu");
  bytes.reinterpret(DType::i32).copy_from(bytes);
  EXPECT_EQ(bytes.reinterpret(DType::i32).item<std::int32_t>({3}), 3);
}

TEST(CopyBytes, MovesRawMemoryBetweenDevices) {
  const Buffer device = make_buffer(100, "sim:0");
  std::vector<unsigned char> host(100);
  std::iota(host.begin(), host.end(), 0);
  copy_bytes(device.data(), "sim:0", host.data(), "cpu", 100);
  fill_bytes(static_cast<std::byte*>(device.data()) + 50, "sim:0", 0xab, 10);
  std::vector<unsigned char> back(100);
  copy_bytes(back.data(), "cpu", device.data(), "sim:0", 100);
  std::fill(host.begin() + 50, host.begin() + 60, 0xab);
  EXPECT_EQ(back, host);
  copy_bytes(nullptr, "cpu", nullptr, "sim:0", 0);
  EXPECT_ERROR(copy_bytes(nullptr, "cpu", device.data(), "sim:0", 1), ArgumentError, ErrorCode::invalid_argument);
  EXPECT_ERROR(copy_bytes(back.data(), "cpu", device.data(), "sim:0", SIZE_MAX), ArgumentError, ErrorCode::size_overflow);
  EXPECT_ERROR(copy_bytes(back.data(), "cpu", device.data(), "sim:0", 1 << 20), DeviceError, ErrorCode::out_of_bounds);
  // Overlapping host ranges.
  copy_bytes(back.data() + 10, "cpu", back.data(), "pinned", 80);
  EXPECT_EQ(back[89], host[79]);
}

TEST(Records, TellOfCopiesAndFillsAndCostNothingWhenUnobserved) {
  struct Collect : Sink {
    void on_record(const Record& record) noexcept override {
      if (record.kind == RecordKind::copied || record.kind == RecordKind::filled) seen.push_back(record);
    }
    std::vector<Record> seen;
  };
  const Storage x = zeros({8}, DType::f32, "cpu");
  const Storage y = zeros({8}, DType::f64, "sim:0");
  const auto sink = std::make_shared<Collect>();
  {
    const SinkAttachment attached = attach_sink(sink);
    y.copy_from(x);
    x.fill(1);
    x.copy_from(full({8}, 2, DType::f32, "cpu"));
  }
  y.copy_from(x);
  ASSERT_EQ(sink->seen.size(), 4U);
  EXPECT_EQ(sink->seen[0].kind, RecordKind::copied);
  EXPECT_EQ(Device::from_key(sink->seen[0].device), Device("sim:0"));
  EXPECT_EQ(Device::from_key(sink->seen[0].source_device), Device("cpu"));
  EXPECT_EQ(sink->seen[0].bytes, 64U);
  EXPECT_NE(to_string(sink->seen[0].site).find("copy_test.cc"), std::string::npos);
  EXPECT_EQ(sink->seen[1].kind, RecordKind::filled);
  EXPECT_EQ(sink->seen[1].bytes, 32U);
  EXPECT_EQ(sink->seen[3].kind, RecordKind::copied) << "a small copy within the host too";
  EXPECT_EQ(sink->seen[3].address, x.data_ptr());
}

TEST(Equal, ComparesShapeDtypeAndBits) {
  const Storage x = from_data(counted(6), {2, 3}, "cpu");
  EXPECT_TRUE(equal(x, x.clone()));
  EXPECT_TRUE(equal(x, x.to("sim:0")));
  EXPECT_TRUE(equal(x.transpose(0, 1), x.transpose(0, 1).contiguous()));
  EXPECT_FALSE(equal(x, x.reshape({3, 2})));
  EXPECT_FALSE(equal(x, x.to(DType::f64)));
  EXPECT_FALSE(equal(full({1}, 0.0, DType::f32, "cpu"), full({1}, -0.0, DType::f32, "cpu")));
  EXPECT_TRUE(equal(full({1}, NAN, DType::f32, "cpu"), full({1}, NAN, DType::f32, "cpu")));
  EXPECT_TRUE(equal(Storage(), zeros({0}, DType::f32, "cpu")));
}

// Otherwise the thread sanitizer reports a race.
TEST(Fill, ALargeTargetThatOverlapsItselfIsWrittenByOneThread) {
  const int before = copy_threads();
  set_copy_threads(4);
  const std::int64_t length = 4 << 20;
  const Storage x = zeros({length}, DType::u8, "cpu");
  x.as_strided({2, length - 1}, {1, 1}).fill(7);
  set_copy_threads(before);
  EXPECT_TRUE(equal(x, full({length}, 7, DType::u8, "cpu")));
}

}  // namespace
}  // namespace berth::testing
