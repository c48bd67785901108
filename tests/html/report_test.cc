// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "html/html.h"
#include "html/map_svg.h"
#include "html/palette.h"
#include "html/report_data.h"
#include "support/scale.h"

namespace berth::testing {

using namespace internal;
namespace {

using html::AddressMap;
using html::HtmlReport;
using html::maps_svg;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr std::uint64_t kHugeArena = 1'000'000'000'000'000'000;
const std::string kHostileBytes("</script><img src=x onerror=alert(1)>\x01\xff\0'\"&", 43);

std::size_t count(std::string_view text, std::string_view part) {
  std::size_t found = 0;
  for (std::size_t at = text.find(part); at != std::string_view::npos; at = text.find(part, at + part.size())) ++found;
  return found;
}

AddressMap small_map() {
  return {.title = "cpu:0", .end = 4, .bytes = 100, .boxes = {{0, 2, 0, 50, "a"}, {1, 4, 50, 50, "b"}}, .marks = {{"lower bound", 100}}};
}

AddressMap hostile_map() {
  AddressMap map = small_map();
  map.title = kHostileBytes;
  map.boxes[0].name = map.boxes[0].note = kHostileBytes;
  map.steps = {kHostileBytes};
  return map;
}

html::Timeline hostile_timeline() {
  html::Timeline line = live_timeline(hostile_map(), kHostileBytes);
  line.step = kHostileBytes;
  line.groups[0].name = kHostileBytes;
  line.lines = {{kHostileBytes, {{0, 1}}}};
  line.marks = {{kHostileBytes, 1}};
  return line;
}

AddressMap wide_map(std::uint64_t boxes) {
  AddressMap map{.title = "wide", .end = boxes, .bytes = 1'000'000};
  map.boxes.push_back({0, boxes, 500'000, 500'000, "large"});
  for (std::uint64_t i = 1; i < boxes; ++i) map.boxes.push_back({i, i + 1, 0, 400'000, "small"});
  return map;
}

std::string html(const AddressMap& map) { return HtmlReport(map.title, "").map(map).take(); }

TEST(MapsSvg, DrawsOneRectForEachBox) {
  const std::string svg = maps_svg(std::vector{small_map()}, "two boxes");
  EXPECT_EQ(count(svg, "<title>"), 2U);
  EXPECT_THAT(svg, HasSubstr("<title>a\n50 B (50 bytes) at 0\nsteps 0 to 1</title>"));
  EXPECT_THAT(svg, HasSubstr("lower bound 100 B"));
}

TEST(MapsSvg, DrawsAPanelForEachMap) {
  const std::string svg = maps_svg(std::vector{small_map(), small_map(), small_map()}, "");
  EXPECT_EQ(count(svg, "class=\"ink title\""), 3U);
}

TEST(MapsSvg, EscapesEveryName) {
  const std::string svg = maps_svg(std::vector{hostile_map()}, kHostileBytes);
  EXPECT_THAT(svg, Not(HasSubstr("<img")));
  EXPECT_THAT(svg, HasSubstr("&lt;/script&gt;&lt;img"));
  EXPECT_EQ(svg.find_first_of(std::string_view("\x01\xff\0", 3)), std::string::npos);
}

TEST(MapsSvg, SaysThatThereIsNothing) { EXPECT_THAT(maps_svg({}, "a plan"), HasSubstr("a plan: there is nothing to draw")); }

TEST(MapsSvg, LeavesOutWhatCannotBeSeenAndSaysSo) {
  const std::uint64_t boxes = scaled(250'000, 10'000);
  const std::string svg = maps_svg(std::vector{wide_map(boxes)}, "");
  EXPECT_EQ(count(svg, "<title>"), 1U);
  EXPECT_THAT(svg, HasSubstr(std::to_string(boxes - 1) + " of " + std::to_string(boxes) + " boxes are too small"));
  EXPECT_THAT(svg, HasSubstr("class=\"faint\""));
  EXPECT_LT(svg.size(), 100'000U);
}

TEST(MapsSvg, DrawsAllOfAMapThatIsNotLarge) {
  const std::string svg = maps_svg(std::vector{wide_map(html::kDrawAll)}, "");
  EXPECT_EQ(count(svg, "<title>"), html::kDrawAll);
  EXPECT_THAT(svg, Not(HasSubstr("too small")));
}

TEST(MapsSvg, HoldsHugeSizesAndEmptyMaps) {
  const AddressMap huge{.end = 1, .bytes = 4 * kHugeArena, .boxes = {{0, 1, 3 * kHugeArena, kHugeArena, "huge"}}};
  const AddressMap none{};
  for (const std::string& svg : {maps_svg(std::vector{huge}, ""), maps_svg(std::vector{none}, "")}) {
    EXPECT_THAT(svg, Not(HasSubstr("nan")));
    EXPECT_THAT(svg, Not(HasSubstr("inf")));
    EXPECT_THAT(svg, Not(HasSubstr("?\"")));
  }
}

TEST(MapsSvg, NamesNoAddressButThatOfItsFormat) {
  const std::string svg = maps_svg(std::vector{small_map()}, "");
  EXPECT_EQ(count(svg, "http"), 1U);
  EXPECT_THAT(svg, HasSubstr("xmlns=\"http://www.w3.org/2000/svg\""));
}

TEST(HtmlReport, NeedsNoNetwork) {
  const std::string page = HtmlReport("a", "b")
                               .figures({{"peak", "1 B"}})
                               .timeline(live_timeline(small_map(), "live"))
                               .map(small_map())
                               .table({"t", {{"c"}}, {{{"x"}}}})
                               .take();
  for (const char* part :
       {"http:", "https:", "//cdn", "@import", "url(", " src=", "fetch(", "XMLHttpRequest", "WebSocket", "import(", "localStorage"})
    EXPECT_EQ(count(page, part), 0U) << part;
  EXPECT_EQ(count(page, "href="), 1U);  // the icon, which is embedded
  EXPECT_THAT(page, HasSubstr("content=\"default-src 'none';")) << "and a browser is told to allow none";
}

TEST(HtmlReport, EscapesEveryNameWhereverItStands) {
  const std::string page = HtmlReport(kHostileBytes, kHostileBytes)
                               .figures({{kHostileBytes, kHostileBytes, kHostileBytes}})
                               .paragraph(kHostileBytes)
                               .timeline(hostile_timeline())
                               .map(hostile_map())
                               .table({kHostileBytes,
                                       {{kHostileBytes}},
                                       {{{kHostileBytes, kHostileBytes}}, {{kHostileBytes, "", {{1, "tone-0", kHostileBytes}}}}},
                                       kHostileBytes,
                                       true})
                               .take();
  EXPECT_THAT(page, Not(HasSubstr("<img")));
  EXPECT_EQ(count(page, "</script>"), 3U);  // the data of two figures, and the code
  EXPECT_EQ(page.find_first_of(std::string_view("\x01\xff\0", 3)), std::string::npos);
}

TEST(HtmlReport, CarriesItsMapAsData) {
  AddressMap map = hostile_map();
  const auto data = data_of(html(map), "map");
  EXPECT_EQ(data["names"].size(), 2U);
  EXPECT_EQ(data["names"][0], "</script><img src=x onerror=alert(1)>\\x01\\xff\\x00'\"&");
}

TEST(HtmlReport, HoldsManyBoxes) {
  const std::uint64_t boxes = scaled(250'000, 1000);
  const std::string page = html(wide_map(boxes));
  EXPECT_EQ(data_of(page, "map")["names"].size(), boxes);
  EXPECT_LT(page.size(), 50'000 + boxes * 16);
}

TEST(HtmlReport, HoldsAMapOfNothing) { EXPECT_EQ(data_of(html(AddressMap{}), "map")["names"].size(), 0U); }

TEST(HtmlReport, SortsNumbersByTheirKeys) {
  const std::string page =
      HtmlReport("", "")
          .table({"sizes", {{"name"}, {"bytes", true}}, {{{"a"}, html::bytes_cell(1536)}, {{"b"}, html::bytes_cell(kHugeArena)}}})
          .take();
  EXPECT_THAT(page, HasSubstr("<td class=\"number\" data-key=\"1536\">1.5 KiB</td>"));
  EXPECT_THAT(page, HasSubstr("data-key=\"1000000000000000000\">888 PiB</td>"));
}

TEST(HtmlReport, SearchesATableThatSaysSo) {
  EXPECT_EQ(count(HtmlReport("", "").table({"t", {{"c"}}, {}, "", true}).take(), "type=\"search\""), 1U);
  EXPECT_EQ(count(HtmlReport("", "").table({"t", {{"c"}}, {}}).take(), "type=\"search\""), 0U);
}

TEST(HtmlReport, DrawsBarsOfTheirShares) {
  const std::string page = HtmlReport("", "").table({"t", {{"c"}}, {{{"half", "1", {{0.5, "tone-2", "half of it"}}}}}}).take();
  EXPECT_THAT(page, HasSubstr("<td class=\"bar\" data-key=\"1\"><span role=\"img\" aria-label=\"half\"><i "
                              "style=\"width:50%;background:var(--tone-2)\" title=\"half of it\"></i></span></td>"));
}

TEST(Grouped, SeparatesThousands) {
  EXPECT_EQ(html::grouped(0), "0");
  EXPECT_EQ(html::grouped(999), "999");
  EXPECT_EQ(html::grouped(1000), "1,000");
  EXPECT_EQ(html::grouped(UINT64_MAX), "18,446,744,073,709,551,615");
}

TEST(HtmlReport, IsUsableWithTheKeyboardAndInBothLights) {
  const std::string page = html(small_map());
  EXPECT_THAT(page, HasSubstr("<canvas tabindex=\"0\""));
  EXPECT_THAT(page, HasSubstr("aria-label=\"cpu:0: 2 boxes, steps 0 to 4, 100 B."));
  EXPECT_THAT(page, HasSubstr("@media (prefers-color-scheme:dark)"));
  EXPECT_THAT(page, HasSubstr(":root[data-theme=dark]"));
}

TEST(Reports, OfEqualDataAreEqual) {
  EXPECT_EQ(html(wide_map(1000)), html(wide_map(1000)));
  EXPECT_EQ(maps_svg(std::vector{wide_map(6000)}, "x"), maps_svg(std::vector{wide_map(6000)}, "x"));
}

TEST(Palette, HasAColourForEveryTone) {
  for (std::size_t tone = 0; tone < html::kTones; ++tone) {
    const std::string name = "tone-" + std::to_string(tone);
    EXPECT_EQ(count(html::report_colours(), "--" + name + ":#"), 4U);
    EXPECT_EQ(count(html::drawing_colours(), "." + name + "{"), 2U);
  }
}

}  // namespace
}  // namespace berth::testing
