// SPDX-License-Identifier: Apache-2.0
#include "copy/host/stream_row.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <vector>

#include "base/random.h"
#include "support/scale.h"

// Rows written with non-temporal stores, around the boundaries of cache lines, pieces and halves.
namespace berth::testing {

using namespace internal;
using namespace internal::copy;
namespace {

constexpr std::size_t kPieceBytes = 8192;  // as in stream_row.cc; results must not depend on it
constexpr std::byte kUntouched{0xab};

std::vector<std::size_t> telling_counts(std::size_t size) {
  const std::size_t piece = kPieceBytes / size;
  std::vector<std::size_t> counts = {0, 1, 2, 63, 64, 65};
  for (const std::size_t pieces : {1U, 2U, 3U, 4U, 5U}) {
    for (const std::size_t more : {0U, 1U, 2U, 17U}) {
      counts.push_back(pieces * piece + more);
      counts.push_back(pieces * piece - more);
    }
  }
  return counts;
}

// One row between guard bytes that must stay as they are, against the same conversion with normal stores.
void expect_row(const Kernels& kernels, DType from, DType to, std::size_t count, std::size_t offset, const std::vector<std::byte>& source) {
  const Conversion conversion = find_conversion(kernels, from, to);
  const std::size_t bytes = count * size_bytes(to);
  std::vector<std::byte> expected(offset + bytes + 64, kUntouched);
  std::vector<std::byte> got = expected;
  conversion.run(source.data(), expected.data() + offset, count);
  StreamRow(kernels, conversion)(source.data(), got.data() + offset, count);
  ASSERT_TRUE(got == expected) << kernels.name << ": " << count << " of " << to_string(from) << " → " << to_string(to) << " at " << offset;
}

TEST(StreamRow, WritesWhatTheCachedWayWritesAndNothingElse) {
  constexpr DType kPairs[][2] = {{DType::u8, DType::u8},   {DType::i8, DType::f8e4m3}, {DType::bf16, DType::f32},
                                 {DType::i8, DType::f32},  {DType::f16, DType::bf16},  {DType::f32, DType::f64},
                                 {DType::i8, DType::i64},  {DType::c128, DType::c128}, {DType::f32, DType::bf16},
                                 {DType::f64, DType::f32}, {DType::i64, DType::i32},   {DType::f16, DType::i8}};
  Random random(seed());
  std::vector<std::byte> source(6 * kPieceBytes * 8);  // more than any row has
  std::ranges::generate(source, [&] { return static_cast<std::byte>(random.next()); });
  std::size_t rows = 0;
  for (const Kernels& kernels : all_kernels()) {
    for (const auto& [from, to] : kPairs) {
      for (const std::size_t count : telling_counts(size_bytes(to))) {
        for (const std::size_t offset : {0U, 1U, 4U, 16U, 63U}) {
          expect_row(kernels, from, to, count, offset, source);
          ++rows;
        }
      }
    }
  }
  did(std::to_string(rows) + " rows");
}

TEST(StreamRow, IsNotWorthItWhereElementsShrinkToLessThanHalfOrRowsAreShort) {
  const Kernels& kernels = best_kernels();
  const auto worth = [&](DType from, DType to, std::size_t count) {
    return StreamRow::is_worth(find_conversion(kernels, from, to), count);
  };
  EXPECT_TRUE(worth(DType::f32, DType::f32, 1024));
  EXPECT_TRUE(worth(DType::bf16, DType::f32, 1024));
  EXPECT_FALSE(worth(DType::bf16, DType::f32, 1023));
  EXPECT_TRUE(worth(DType::f32, DType::bf16, 2048));
  EXPECT_FALSE(worth(DType::f32, DType::bf16, 2047));
  EXPECT_FALSE(worth(DType::f32, DType::i8, 1 << 20));
}

}  // namespace
}  // namespace berth::testing
