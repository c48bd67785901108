// SPDX-License-Identifier: Apache-2.0
#include "html/range_map.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "html/html.h"
#include "html/report_data.h"

namespace berth::testing {

using namespace internal;
namespace {

using html::PieceKind;
using html::RangeMap;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

RangeMap small_range() {
  return {.title = kHostile,
          .base = 0x1000,
          .bytes = 1000,
          .pieces = {{.offset = 500, .bytes = 100, .kind = PieceKind::free},
                     {.offset = 100, .bytes = 64, .asked_bytes = 60, .age_ns = 7, .stream_id = 3, .tag = 1, .site = 1},
                     {.offset = 200, .bytes = 64, .asked_bytes = 64, .kind = PieceKind::waiting}},
          .tags = {{"no tag", 4}, {kHostile, 2}},
          .sites = {"", kHostile}};
}

TEST(RangeJson, HasItsPiecesByAddress) {
  const auto json = nlohmann::json::parse(html::range_json(small_range()));
  EXPECT_THAT(summed(numbers(json, "offsets")), ElementsAre(100, 200, 500));
  EXPECT_THAT(numbers(json, "bytes_of"), ElementsAre(64, 64, 100));
  EXPECT_THAT(numbers(json, "slack"), ElementsAre(4, 0, 100));
  EXPECT_THAT(numbers(json, "ages"), ElementsAre(7, 0, 0));
  EXPECT_THAT(numbers(json, "streams"), ElementsAre(3, 0, 0));
  EXPECT_THAT(numbers(json, "tag"), ElementsAre(1, 0, 0));
  EXPECT_THAT(numbers(json, "site"), ElementsAre(1, 0, 0));
  EXPECT_THAT(numbers(json, "kinds"), ElementsAre(0, 1, 2));
  EXPECT_EQ(json["tags"], nlohmann::json({"no tag", kHostile}));
  EXPECT_EQ(json["sites"], nlohmann::json({"", kHostile}));
}

TEST(RangeMap, KeepsTheAddressesOfWhatIsMoved) {
  RangeMap map = small_range();
  map.pieces.push_back({.offset = 1'000'000, .bytes = 10});
  html::fold_addresses(map);
  EXPECT_EQ(map.base, 0x1000 + 100U);
  EXPECT_EQ(map.pieces[1].offset, 0U);
  ASSERT_EQ(map.folds.size(), 2U);
  EXPECT_EQ(map.base + map.pieces[0].offset + map.folds[0].moved, 0x1000 + 500U);
  EXPECT_EQ(map.base + map.pieces[3].offset + map.folds[1].moved, 0x1000 + 1'000'000U);
  EXPECT_EQ(map.bytes, map.pieces[3].offset + 10);
}

TEST(RangeMap, InAPageIsEscaped) {
  const std::string page = html::HtmlReport("a", "b").range(small_range(), {{kHostile, 2}}).take();
  EXPECT_THAT(page, Not(HasSubstr("<img")));
  EXPECT_THAT(page, HasSubstr("data-kind=\"range\""));
  EXPECT_THAT(page, HasSubstr("</i>waiting</li>"));
  EXPECT_THAT(page, HasSubstr("</i>free</li>"));
}

}  // namespace
}  // namespace berth::testing
