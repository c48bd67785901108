// SPDX-License-Identifier: Apache-2.0
#include "html/address_map.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "base/random.h"
#include "html/coverage.h"
#include "html/report_data.h"
#include "support/scale.h"

namespace berth::testing {

using namespace internal;
namespace {

using html::AddressMap;
using html::MapBox;
using ::testing::ElementsAre;

constexpr std::uint64_t kHuge = 1'000'000'000'000'000'000;

TEST(LiveBytes, ChangeWhereSomethingBeginsOrEnds) {
  const std::vector<MapBox> boxes = {{0, 3, 0, 10}, {1, 2, 10, 5}, {2, 4, 10, 7}};
  EXPECT_THAT(html::live_bytes(boxes), ElementsAre(html::LivePoint{0, 10}, html::LivePoint{1, 15}, html::LivePoint{2, 17},
                                                   html::LivePoint{3, 7}, html::LivePoint{4, 0}));
  EXPECT_TRUE(html::live_bytes({}).empty());
}

TEST(LiveBytes, AreTheMostThereIsWhenTheSumDoesNotFit) {
  const std::vector<MapBox> boxes(20, MapBox{0, 1, 0, kHuge});
  EXPECT_THAT(html::live_bytes(boxes), ElementsAre(html::LivePoint{0, UINT64_MAX}, html::LivePoint{1, 0}));
}

TEST(LiveBytes, InColumnsAreTheMostOfEach) {
  const AddressMap map{.end = 4, .bytes = 20, .boxes = {{0, 3, 0, 10}, {1, 2, 10, 5}}};
  EXPECT_THAT(html::live_columns(map, 4), ElementsAre(10, 15, 10, 0));
  EXPECT_THAT(html::live_columns(map, 2), ElementsAre(15, 10));
  EXPECT_THAT(html::live_columns(map, 8), ElementsAre(10, 10, 15, 15, 10, 10, 0, 0));
}

TEST(BoxTones, DifferWhereBoxesTouch) {
  const std::vector<MapBox> boxes = {{0, 4, 0, 10}, {0, 4, 10, 10}, {0, 4, 20, 10}, {4, 8, 0, 10}, {4, 8, 10, 20}};
  const auto tones = html::box_tones(boxes, 4);
  EXPECT_NE(tones[0], tones[1]);
  EXPECT_NE(tones[1], tones[2]);
  EXPECT_NE(tones[3], tones[4]);
  EXPECT_NE(tones[3], tones[0]);
  EXPECT_NE(tones[4], tones[1]);
  EXPECT_NE(tones[4], tones[2]);
}

// A box may get its tone before or after its neighbours; three tones suffice.
TEST(BoxTones, DifferInAStackThatIsBuiltInAnyOrder) {
  Random random(seed());
  std::vector<MapBox> boxes(scaled(1000, 100));
  for (std::uint64_t i = 0; i < boxes.size(); ++i) boxes[i] = {random.below(50), 50, i * 10, 10};
  const auto tones = html::box_tones(boxes, 3);
  for (std::size_t i = 1; i < boxes.size(); ++i) ASSERT_NE(tones[i], tones[i - 1]) << i;
}

TEST(BoxTones, StayBelowTheirNumberForAnyBoxes) {
  Random random(seed());
  std::vector<MapBox> boxes(scaled(20'000, 1000));
  for (MapBox& box : boxes) box = {random.below(100), 100 + random.below(100), random.below(1000), random.below(50)};
  boxes.push_back({0, 1, UINT64_MAX - 1, 100});
  for (const std::uint8_t tone : html::box_tones(boxes, 4)) ASSERT_LT(tone, 4);
}

TEST(BoxText, SaysAllThatIsKnown) {
  const AddressMap map{
      .begin = 2, .end = 9, .bytes = 8192, .boxes = {{3, 5, 64, 1536, "a\n", "shared with b"}}, .steps = {"MatMul", "Relu r"}};
  EXPECT_EQ(html::box_text(map, map.boxes[0]), "a\\x0a\n1.5 KiB (1536 bytes) at 64\nsteps 3 to 4\nmade by Relu r\nshared with b");
  EXPECT_EQ(html::life_text(map, {3, 4}), "step 3");
  const AddressMap trace{.one = "block", .step = "event", .end = 9, .bytes = 10, .boxes = {{.begin = 3, .end = 5, .bytes = 4, .id = 77}}};
  EXPECT_EQ(html::box_text(trace, trace.boxes[0]), "block 77\n4 B (4 bytes) at 0\nevents 3 to 4");
}

TEST(MapJson, HasItsBoxesInTheOrderInWhichTheyBegin) {
  const AddressMap map{.title = "cpu:0",
                       .end = 9,
                       .bytes = 8192,
                       .boxes = {{3, 5, 64, 1536, "a", "n"}, {0, 9, 0, 64, "b"}, {5, 6, 64, 1536, "c"}},
                       .marks = {{"lower bound", 1600}},
                       .steps = {"x"}};
  const auto json = nlohmann::json::parse(html::map_json(map));
  EXPECT_THAT(summed(numbers(json, "begin")), ElementsAre(0, 3, 5));
  EXPECT_THAT(numbers(json, "lives"), ElementsAre(9, 2, 1));
  EXPECT_THAT(summed(numbers(json, "place_offsets")), ElementsAre(0, 64)) << "a place that is used twice is written once";
  EXPECT_THAT(numbers(json, "place_bytes"), ElementsAre(64, 1536));
  EXPECT_THAT(numbers(json, "places"), ElementsAre(0, 1, 1));
  EXPECT_EQ(numbers(json, "tone").size(), 3U);
  EXPECT_EQ(json["names"], nlohmann::json({"b", "a", "c"}));
  EXPECT_EQ(json["notes"], nlohmann::json({{"1", "n"}}));
  EXPECT_EQ(json["marks"][0][1], 1600);
}

TEST(MapJson, NamesBoxesByTheirIdsAndTags) {
  const AddressMap map{.one = "block",
                       .end = 9,
                       .bytes = 64,
                       .boxes = {{.end = 9, .bytes = 8, .id = 900, .tag = 1}, {.begin = 1, .end = 9, .offset = 8, .bytes = 8, .id = 7}},
                       .tags = {{"no tag", 5}, {"</script>", 3}}};
  const auto json = nlohmann::json::parse(html::map_json(map));
  EXPECT_FALSE(json.contains("names"));
  EXPECT_THAT(summed_signed(numbers(json, "ids")), ElementsAre(900, 7));
  EXPECT_THAT(numbers(json, "tag"), ElementsAre(1, 0));
  EXPECT_EQ(json["tags"], nlohmann::json({"no tag", "</script>"}));
  EXPECT_EQ(json["tag_tones"], nlohmann::json({5, 3}));
}

TEST(MapJson, WritesWhatADoubleCannotHoldAsText) {
  const AddressMap map{.end = 1, .bytes = 2 * kHuge, .boxes = {{.end = 1, .offset = kHuge + 1, .bytes = kHuge - 1, .id = UINT64_MAX}}};
  const auto json = nlohmann::json::parse(html::map_json(map));
  EXPECT_EQ(json["exact"], nlohmann::json({{"offset 0", "1000000000000000001"}, {"size 0", "999999999999999999"}}));
  EXPECT_EQ(json["bytes"], "2000000000000000000");
  EXPECT_EQ(json["names"][0], "box 18446744073709551615");
}

TEST(MapJson, ReadsBackAsItWas) {
  Random random(seed());
  AddressMap map{.end = 10'000, .bytes = 1 << 30};
  for (std::uint64_t i = 0; i < scaled(20'000, 2000); ++i) {
    const std::uint64_t begin = random.below(9000);
    map.boxes.push_back(
        {.begin = begin, .end = begin + random.below(1000), .offset = random.below(1 << 20), .bytes = random.below(1 << 10), .id = i});
  }
  const auto json = nlohmann::json::parse(html::map_json(map));
  const auto begin = summed(numbers(json, "begin"));
  const auto lives = numbers(json, "lives");
  const auto offsets = summed(numbers(json, "place_offsets"));
  const auto bytes = numbers(json, "place_bytes");
  const auto places = numbers(json, "places");
  const auto ids = summed_signed(numbers(json, "ids"));
  ASSERT_EQ(ids.size(), map.boxes.size());
  for (std::size_t at = 0; at < ids.size(); ++at) {
    const MapBox& box = map.boxes[ids[at]];
    ASSERT_EQ(std::tuple(begin[at], lives[at], offsets[places[at]], bytes[places[at]]),
              std::tuple(box.begin, box.end - box.begin, box.offset, box.bytes));
  }
}

TEST(FoldAddresses, LeavesOutWhatNobodyEverHas) {
  AddressMap map{.end = 9,
                 .boxes = {{.end = 9, .offset = 5'000'400, .bytes = 400},
                           {.end = 4, .offset = 1000, .bytes = 300},
                           {.begin = 4, .end = 9, .offset = 1350, .bytes = 50}}};
  html::fold_addresses(map);
  EXPECT_EQ(map.boxes[1].offset, 0U);
  EXPECT_EQ(map.boxes[2].offset, 350U) << "a short gap stays as long as it is";
  EXPECT_EQ(map.boxes[0].offset, 418U) << "a long one is a fortieth of what is used";
  EXPECT_EQ(map.bytes, 818U);
  EXPECT_EQ(map.folds, (std::vector<html::MapFold>{{409, 4'999'000, 4'998'982}}));
}

TEST(FoldAddresses, KeepsWhatLiesTogetherApart) {
  Random random(seed());
  AddressMap map{.end = 1};
  for (std::uint64_t i = 0; i < scaled(2000, 200); ++i)
    map.boxes.push_back({.end = 1, .offset = random.below(1 << 20) + (random.below(3) << 40), .bytes = random.below(4096)});
  const AddressMap before = map;
  html::fold_addresses(map);
  EXPECT_LE(map.bytes, 4U << 20);
  for (std::size_t i = 1; i < map.boxes.size(); ++i) {
    const MapBox& a = before.boxes[i - 1];
    const MapBox& b = before.boxes[i];
    ASSERT_TRUE(a.offset >= b.offset || map.boxes[i - 1].offset <= map.boxes[i].offset);
    ASSERT_TRUE(a.offset + a.bytes > b.offset || map.boxes[i - 1].offset + a.bytes <= map.boxes[i].offset);
    ASSERT_LE(map.boxes[i].offset + b.bytes, map.bytes);
  }
}

TEST(FoldAddresses, OfNothingIsNothing) {
  AddressMap map;
  html::fold_addresses(map);
  EXPECT_EQ(map.bytes, 0U);
  EXPECT_TRUE(map.folds.empty());
}

TEST(Coverage, IsTheShareOfEachCell) {
  const AddressMap map{.end = 4, .bytes = 100, .boxes = {{0, 2, 0, 50}, {2, 3, 0, 25}}};
  const html::Grid grid = html::coverage(map, 2, 2);
  EXPECT_DOUBLE_EQ(grid.at(0, 0).covered, 1);
  EXPECT_DOUBLE_EQ(grid.at(1, 0).covered, 0.25);
  EXPECT_EQ(grid.at(1, 0).box, 1U);
  EXPECT_DOUBLE_EQ(grid.at(0, 1).covered, 0);
  EXPECT_DOUBLE_EQ(html::coverage(map, 2, 2, std::vector<std::uint8_t>{0, 1}).at(0, 0).covered, 0);
}

// Whatever the grid, the boxes cover as much of it as they cover of the map.
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
    const html::Grid grid = html::coverage(map, 1 + random.below(90), 1 + random.below(20));
    double covered = 0;
    for (const html::Cell& cell : grid.cells) covered += cell.covered;
    ASSERT_NEAR(covered / static_cast<double>(grid.cells.size()), area, 1e-9 * area + 1e-12);
  }
}

}  // namespace
}  // namespace berth::testing
