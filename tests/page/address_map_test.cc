// SPDX-License-Identifier: Apache-2.0
#include "page/address_map.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "base/random.h"
#include "page/coverage.h"
#include "support/scale.h"

namespace berth::testing {
namespace {

using page::AddressMap;
using page::MapBox;
using ::testing::ElementsAre;

constexpr std::uint64_t kHuge = 1'000'000'000'000'000'000;

TEST(LiveBytes, ChangeWhereSomethingBeginsOrEnds) {
  const std::vector<MapBox> boxes = {{0, 3, 0, 10}, {1, 2, 10, 5}, {2, 4, 10, 7}};
  EXPECT_THAT(page::live_bytes(boxes), ElementsAre(page::LivePoint{0, 10}, page::LivePoint{1, 15}, page::LivePoint{2, 17},
                                                   page::LivePoint{3, 7}, page::LivePoint{4, 0}));
  EXPECT_TRUE(page::live_bytes({}).empty());
}

TEST(LiveBytes, AreTheMostThereIsWhenTheSumDoesNotFit) {
  const std::vector<MapBox> boxes(20, MapBox{0, 1, 0, kHuge});
  EXPECT_THAT(page::live_bytes(boxes), ElementsAre(page::LivePoint{0, UINT64_MAX}, page::LivePoint{1, 0}));
}

TEST(LiveBytes, InColumnsAreTheMostOfEach) {
  const AddressMap map{.end = 4, .bytes = 20, .boxes = {{0, 3, 0, 10}, {1, 2, 10, 5}}};
  EXPECT_THAT(page::live_columns(map, 4), ElementsAre(10, 15, 10, 0));
  EXPECT_THAT(page::live_columns(map, 2), ElementsAre(15, 10));
  EXPECT_THAT(page::live_columns(map, 8), ElementsAre(10, 10, 15, 15, 10, 10, 0, 0));
}

TEST(BoxTones, DifferWhereBoxesTouch) {
  const std::vector<MapBox> boxes = {{0, 4, 0, 10}, {0, 4, 10, 10}, {0, 4, 20, 10}, {4, 8, 0, 10}, {4, 8, 10, 20}};
  const auto tones = page::box_tones(boxes, 4);
  EXPECT_NE(tones[0], tones[1]);
  EXPECT_NE(tones[1], tones[2]);
  EXPECT_NE(tones[3], tones[4]);
  EXPECT_NE(tones[3], tones[0]);
  EXPECT_NE(tones[4], tones[1]);
  EXPECT_NE(tones[4], tones[2]);
}

// Each is given its tone before or after its neighbours; three tones are enough.
TEST(BoxTones, DifferInAStackThatIsBuiltInAnyOrder) {
  Random random(seed());
  std::vector<MapBox> boxes(scaled(1000, 100));
  for (std::uint64_t i = 0; i < boxes.size(); ++i) boxes[i] = {random.below(50), 50, i * 10, 10};
  const auto tones = page::box_tones(boxes, 3);
  for (std::size_t i = 1; i < boxes.size(); ++i) ASSERT_NE(tones[i], tones[i - 1]) << i;
}

TEST(BoxTones, StayBelowTheirNumberForAnyBoxes) {
  Random random(seed());
  std::vector<MapBox> boxes(scaled(20'000, 1000));
  for (MapBox& box : boxes) box = {random.below(100), 100 + random.below(100), random.below(1000), random.below(50)};
  boxes.push_back({0, 1, UINT64_MAX - 1, 100});
  for (const std::uint8_t tone : page::box_tones(boxes, 4)) ASSERT_LT(tone, 4);
}

TEST(BoxText, SaysAllThatIsKnown) {
  const AddressMap map{
      .begin = 2, .end = 9, .bytes = 8192, .boxes = {{3, 5, 64, 1536, "a\n", "shared with b"}}, .steps = {"MatMul", "Relu r"}};
  EXPECT_EQ(page::box_text(map, map.boxes[0]), "a\\x0a\n1.5 KiB (1536 bytes) at 64\nsteps 3 to 4\nmade by Relu r\nshared with b");
  EXPECT_EQ(page::life_text({3, 4}), "step 3");
}

TEST(MapJson, HasOneEntryForEachBox) {
  const AddressMap map{.title = "cpu:0",
                       .end = 9,
                       .bytes = 8192,
                       .boxes = {{3, 5, 64, 1536, "a", "n"}, {0, 9, 0, 64, "b"}},
                       .marks = {{"lower bound", 1600}},
                       .steps = {"x"}};
  const auto json = nlohmann::json::parse(page::map_json(map));
  for (const char* key : {"begin", "end", "offset", "size", "tone", "names"}) EXPECT_EQ(json[key].size(), 2U) << key;
  EXPECT_EQ(json["names"], nlohmann::json({"a", "b"}));
  EXPECT_EQ(json["notes"], nlohmann::json({{"0", "n"}}));
  EXPECT_EQ(json["size"], nlohmann::json({1536, 64}));
  EXPECT_EQ(json["marks"][0][1], 1600);
}

TEST(MapJson, WritesWhatADoubleCannotHoldAsText) {
  const AddressMap map{.end = 1, .bytes = 2 * kHuge, .boxes = {{0, 1, kHuge + 1, kHuge - 1}}};
  const auto json = nlohmann::json::parse(page::map_json(map));
  EXPECT_EQ(json["offset"][0], "1000000000000000001");
  EXPECT_EQ(json["bytes"], "2000000000000000000");
}

TEST(Coverage, IsTheShareOfEachCell) {
  const AddressMap map{.end = 4, .bytes = 100, .boxes = {{0, 2, 0, 50}, {2, 3, 0, 25}}};
  const page::Grid grid = page::coverage(map, 2, 2);
  EXPECT_DOUBLE_EQ(grid.at(0, 0).covered, 1);
  EXPECT_DOUBLE_EQ(grid.at(1, 0).covered, 0.25);
  EXPECT_EQ(grid.at(1, 0).box, 1U);
  EXPECT_DOUBLE_EQ(grid.at(0, 1).covered, 0);
  EXPECT_DOUBLE_EQ(page::coverage(map, 2, 2, std::vector<std::uint8_t>{0, 1}).at(0, 0).covered, 0);
}

// Whatever the grid, the boxes cover it as much as they cover the map.
TEST(Coverage, LosesNothing) {
  Random random(seed());
  for (std::uint64_t round = 0; round < scaled(200, 20); ++round) {
    AddressMap map{.begin = 5, .end = 5 + 1 + random.below(50), .bytes = 1 + random.below(kHuge)};
    double area = 0;
    for (std::size_t i = 0; i < 10; ++i) {
      const std::uint64_t begin = map.begin + random.below(map.end - map.begin), offset = random.below(map.bytes);
      map.boxes.push_back({begin, begin + 1 + random.below(map.end - begin), offset, 1 + random.below(map.bytes - offset)});
      const MapBox& box = map.boxes.back();
      area += static_cast<double>(box.end - box.begin) / static_cast<double>(map.end - map.begin) * static_cast<double>(box.bytes) /
              static_cast<double>(map.bytes);
    }
    const page::Grid grid = page::coverage(map, 1 + random.below(90), 1 + random.below(20));
    double covered = 0;
    for (const page::Cell& cell : grid.cells) covered += cell.covered;
    ASSERT_NEAR(covered / static_cast<double>(grid.cells.size()), area, 1e-9 * area + 1e-12);
  }
}

}  // namespace
}  // namespace berth::testing
