// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "berth/observe/html.h"
#include "html/report_data.h"

namespace berth::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

TagProfile tag_profile(std::string_view word, std::int64_t bytes, std::int64_t peak_bytes) {
  TagProfile row;
  row.tag = Tag(word);
  row.counts.bytes = bytes;
  row.counts.peak_bytes = peak_bytes;
  row.counts.allocations = 1;
  return row;
}

CopyProfile copy_profile(std::string route) {
  CopyProfile row;
  row.route = std::move(route);
  row.copies = 3;
  row.waited = 1;
  row.time_ns = 1500;
  return row;
}

Profile small_profile() {
  Profile profile;
  profile.duration_ns = 1000;
  profile.devices = {tag_profile("", 0, 300)};
  profile.tags = {tag_profile("kv", -5, 200), tag_profile(kHostile, 0, 100)};
  profile.copies = {copy_profile(kHostile)};
  profile.samples = {{100, "", {200}}, {500, kHostile, {150, 100}}, {900, "", {-5, 0}}};
  profile.sizes[10] = 7;
  return profile;
}

TEST(ProfileReport, DrawsItsSamples) {
  const std::string page = profile_html(small_profile(), "a run");
  const std::size_t begin = page.find("json\">") + 6;
  const nlohmann::json line = nlohmann::json::parse(page.substr(begin, page.find("</script>", begin) - begin));
  EXPECT_EQ(line["clock"], "since");
  EXPECT_EQ(line["groups"], nlohmann::json({"kv", kHostile}));
  EXPECT_THAT(summed(unpacked(line["steps"].get<std::string>())), ElementsAre(0, 100, 500, 900));
  EXPECT_THAT(summed_signed(unpacked(line["columns"][0].get<std::string>())), ElementsAre(0, 200, 150, 0))
      << "less than nothing is drawn as nothing";
  EXPECT_THAT(summed_signed(unpacked(line["columns"][1].get<std::string>())), ElementsAre(0, 0, 100, 0));
  EXPECT_EQ(line["labels"], nlohmann::json::parse("[[500, \"" + kHostile + "\"]]"));
}

TEST(ProfileReport, HasTagsCopiesAndSizes) {
  const std::string page = profile_html(small_profile(), "a run");
  for (const char* const part :
       {"By device and tag", "Copies and conversions", ">1.5 µs</td>", "Requests by size", ">1 KiB</td>", "peak on cpu:0"})
    EXPECT_THAT(page, HasSubstr(part));
  EXPECT_THAT(page, Not(HasSubstr("By call site"))) << "there are none";
}

TEST(ProfileReport, EscapesEveryName) { EXPECT_THAT(profile_html(small_profile(), kHostile), Not(HasSubstr("<img"))); }

TEST(ProfileReport, OfARealProfileIsAPage) {
  Profiler profiler;
  profiler.mark("start");
  EXPECT_THAT(profile_html(profiler.profile(), "real"), HasSubstr("a profile of "));
  EXPECT_THAT(profile_html(Profile{}, "empty"), HasSubstr("a profile of 0 ns"));
}

}  // namespace
}  // namespace berth::testing
