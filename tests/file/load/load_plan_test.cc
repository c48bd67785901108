// SPDX-License-Identifier: Apache-2.0
// How loads are split into pieces: a pure function of numbers.
#include <gtest/gtest.h>

#include "base/random.h"
#include "file/load/load_plan.h"
#include "support/scale.h"

namespace berth::testing {

using namespace internal;
using namespace internal::file;
namespace {

using namespace internal::file::load;

FileTensor bytes_at(std::uint64_t offset, std::size_t bytes, std::size_t file = 0) {
  return {.file = file, .offset = offset, .elements = bytes};
}

TEST(LoadPlan, PutsNeighboursTogetherAndCutsWhatIsLarge) {
  // The drawing of load_plan.h, with 64 bytes for each letter.
  const std::vector<FileTensor> tensors = {bytes_at(0, 640),  bytes_at(640, 64),  bytes_at(704, 64),
                                           bytes_at(768, 64), bytes_at(2000, 64), bytes_at(2064, 0)};
  const LoadPlan plan = plan_load(tensors, 256);
  const std::vector<Piece> pieces = {{0, 0, 256, 0, 1}, {0, 256, 256, 1, 2}, {0, 512, 256, 2, 5}, {0, 768, 64, 5, 6}, {0, 2000, 64, 6, 7}};
  const std::vector<Part> parts = {{0, 0, 256}, {0, 256, 256}, {0, 512, 128}, {1, 0, 64}, {2, 0, 64}, {3, 0, 64}, {4, 0, 64}};
  EXPECT_EQ(plan.pieces, pieces);
  EXPECT_EQ(plan.parts, parts);
  EXPECT_EQ(plan.bytes, 896U);
}

TEST(LoadPlan, TakesTensorsInTheOrderOfTheirBytesAndNeverAcrossFiles) {
  const std::vector<FileTensor> tensors = {bytes_at(64, 64, 1), bytes_at(64, 64, 0), bytes_at(0, 64, 1), bytes_at(0, 64, 0)};
  const LoadPlan plan = plan_load(tensors, 4096);
  const std::vector<Piece> pieces = {{0, 0, 128, 0, 2}, {1, 0, 128, 2, 4}};
  const std::vector<Part> parts = {{3, 0, 64}, {1, 0, 64}, {2, 0, 64}, {0, 0, 64}};
  EXPECT_EQ(plan.pieces, pieces);
  EXPECT_EQ(plan.parts, parts);
}

TEST(LoadPlan, CountsThePartAtItsLargestDType) {
  // Eight times as large on the device as in the file.
  const std::vector<FileTensor> tensors = {
      {.elements = 1000, .in_file = DType::f8e4m3, .from_host = DType::f8e4m3, .at_target = DType::f64}};
  const LoadPlan plan = plan_load(tensors, 1024);
  ASSERT_EQ(plan.pieces.size(), 8U);
  for (const Part& part : plan.parts) EXPECT_LE(part.count * 8, 1024U);
}

TEST(LoadPlan, CoversEveryElementOnceWithinItsPieces) {
  Random random(seed());
  const auto rounds = scaled(20'000, 1'000);
  constexpr DType kDTypes[] = {DType::u8, DType::bf16, DType::f32, DType::f64, DType::c128};
  for (std::uint64_t round = 0; round < rounds; ++round) {
    std::vector<FileTensor> tensors;
    std::uint64_t at = random.below(100);
    for (std::uint64_t i = 0; i < 1 + random.below(400); ++i) {
      const DType dtypes[3] = {kDTypes[random.below(5)], kDTypes[random.below(5)], kDTypes[random.below(5)]};
      tensors.push_back({.file = i / 300,
                         .offset = at,
                         .elements = random.below(i % 7 == 0 ? 3000 : 20),
                         .in_file = dtypes[0],
                         .from_host = dtypes[1],
                         .at_target = dtypes[2]});
      at += tensors.back().file_bytes();
      if (random.one_in(5)) at += random.below(50);
    }
    const std::size_t piece_bytes = kPartAlignment * (1 + random.below(100));
    const LoadPlan plan = plan_load(tensors, piece_bytes);
    std::vector<std::size_t> covered(tensors.size());
    std::size_t next_part = 0;
    for (const Piece& piece : plan.pieces) {
      ASSERT_EQ(piece.begin, next_part);
      next_part = piece.end;
      std::uint64_t offset = piece.offset;
      std::size_t room[3] = {};
      for (const Part& part : plan.parts_of(piece)) {
        const FileTensor& tensor = tensors[part.tensor];
        ASSERT_EQ(tensor.file, piece.file);
        ASSERT_EQ(tensor.offset + part.first * size_bytes(tensor.in_file), offset) << "a piece is one run of the file";
        ASSERT_EQ(part.first, covered[part.tensor]) << "in order, and none twice";
        covered[part.tensor] += part.count;
        offset += part.count * size_bytes(tensor.in_file);
        room[0] += padded(part.count * size_bytes(tensor.in_file));
        room[1] += padded(part.count * size_bytes(tensor.from_host));
        room[2] += padded(part.count * size_bytes(tensor.at_target));
      }
      ASSERT_EQ(offset, piece.offset + piece.bytes);
      for (const std::size_t bytes : room) ASSERT_LE(bytes, piece_bytes);
    }
    ASSERT_EQ(next_part, plan.parts.size());
    for (std::size_t i = 0; i < tensors.size(); ++i) ASSERT_EQ(covered[i], tensors[i].elements) << "seed " << seed() << ", round " << round;
  }
  did(std::to_string(rounds) + " plans, seed " + std::to_string(seed()));
}

}  // namespace
}  // namespace berth::testing
