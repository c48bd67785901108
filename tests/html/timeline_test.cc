// SPDX-License-Identifier: Apache-2.0
#include "html/timeline.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/random.h"
#include "html/packed.h"
#include "html/report_data.h"
#include "support/scale.h"

namespace berth::testing {

using namespace internal;
namespace {

using html::Packed;
using html::Timeline;
using html::TimelineMaker;
using ::testing::ElementsAre;

std::vector<html::TimelineGroup> groups(std::size_t count) {
  std::vector<html::TimelineGroup> all;
  for (std::size_t g = 0; g < count; ++g) all.push_back({"g" + std::to_string(g), static_cast<std::uint8_t>(g)});
  return all;
}

// The live bytes at each step, computed the slow way: bytes[step][group].
struct Story {
  std::vector<std::vector<std::uint64_t>> bytes;

  std::uint64_t total(std::uint64_t step) const {
    std::uint64_t sum = 0;
    for (const std::uint64_t one : bytes[step]) sum += one;
    return sum;
  }
};

// Random changes, with quiet stretches, also passed to the maker.
Story tell_story(TimelineMaker& maker, std::uint64_t steps, std::size_t group_count, Random& random) {
  Story story;
  std::vector<std::uint64_t> now(group_count);
  bool quiet = false;
  for (std::uint64_t step = 0; step < steps; ++step) {
    if (random.below(20) == 0) quiet = !quiet;
    const std::uint64_t changes = quiet ? 0 : random.below(3);
    for (std::uint64_t k = 0; k < changes; ++k) {
      const std::size_t group = random.below(group_count);
      const std::uint64_t bytes = random.below(1000);
      if (random.below(2) == 0) {
        now[group] += bytes;
        maker.add(step, group, bytes);
      } else {
        const std::uint64_t less = std::min(bytes, now[group]);
        now[group] -= less;
        maker.remove(step, group, less);
      }
    }
    story.bytes.push_back(now);
  }
  return story;
}

std::vector<std::uint64_t> moment(const Timeline& line, std::size_t i) {
  const auto begin = line.bytes.begin() + static_cast<std::ptrdiff_t>(i * line.groups.size());
  return {begin, begin + static_cast<std::ptrdiff_t>(line.groups.size())};
}

std::uint64_t total(const std::vector<std::uint64_t>& bytes) {
  std::uint64_t sum = 0;
  for (const std::uint64_t one : bytes) sum += one;
  return sum;
}

TEST(Packed, HoldsAnyNumbers) {
  std::vector<std::uint64_t> numbers = {0, 1, 127, 128, 16'383, 16'384, UINT64_MAX, std::uint64_t{1} << 63};
  Random random(seed());
  for (int i = 0; i < 1000; ++i) numbers.push_back(random.below(UINT64_MAX) >> random.below(64));
  for (std::size_t count = 0; count < 12; ++count) {  // every length of the last group of three bytes
    Packed packed;
    for (std::size_t i = 0; i < count; ++i) packed.add(numbers[i]);
    EXPECT_EQ(unpacked(packed.take()), std::vector(numbers.begin(), numbers.begin() + static_cast<std::ptrdiff_t>(count)));
  }
  Packed packed;
  for (const std::uint64_t number : numbers) packed.add(number);
  EXPECT_EQ(unpacked(packed.take()), numbers);
  EXPECT_EQ(packed.take(), "") << "taken once";
}

TEST(Packed, FoldsSmallNumbersOfEitherSign) {
  Packed packed;
  for (const std::uint64_t number : {std::uint64_t{0}, UINT64_MAX, std::uint64_t{1}, UINT64_MAX - 1}) packed.add_signed(number);
  EXPECT_THAT(unpacked(packed.take()), ElementsAre(0, 1, 2, 3));
}

TEST(Timeline, HasEveryMomentOfAShortStory) {
  TimelineMaker maker(10, 20, groups(2));
  maker.add(12, 0, 100);
  maker.add(12, 1, 5);
  maker.remove(15, 0, 100);
  const Timeline line = maker.take();
  EXPECT_THAT(line.steps, ElementsAre(10, 12, 15));
  EXPECT_THAT(line.bytes, ElementsAre(0, 0, 100, 5, 0, 5));
}

TEST(Timeline, OfNothingHasItsBeginning) {
  const Timeline line = TimelineMaker(0, 0, groups(1)).take();
  EXPECT_THAT(line.steps, ElementsAre(0));
  EXPECT_THAT(line.bytes, ElementsAre(0));
}

// Against the slow computation: every moment that is kept is exact, the maximum and minimum of each part are
// those of the story, and bytes that live across parts are not lost.
TEST(Timeline, KeepsThePeaksOfALongStoryExactly) {
  Random random(seed());
  const std::uint64_t stories = scaled(200, 20);
  std::uint64_t checked = 0;
  for (std::uint64_t n = 0; n < stories; ++n) {
    const std::uint64_t steps = 1 + random.below(3000);
    const std::uint64_t parts = 1 + random.below(60);
    const std::size_t group_count = 1 + random.below(4);
    TimelineMaker maker(0, steps, groups(group_count), parts);
    const Story story = tell_story(maker, steps, group_count, random);
    const Timeline line = maker.take();
    ASSERT_LE(line.steps.size(), std::max<std::uint64_t>(3 * parts + 1, 3 * (parts + 1)));
    ASSERT_EQ(line.steps.front(), 0U);
    for (std::size_t i = 0; i < line.steps.size(); ++i) ASSERT_EQ(moment(line, i), story.bytes[line.steps[i]]) << "step " << line.steps[i];

    const std::uint64_t length = steps / 3 <= parts ? 1 : (steps + parts - 1) / parts;
    std::size_t at = 0;
    for (std::uint64_t begin = 0; begin < steps; begin += length, ++checked) {
      const std::uint64_t end = std::min(steps, begin + length);
      std::uint64_t most = 0;
      std::uint64_t least = UINT64_MAX;
      for (std::uint64_t step = begin; step < end; ++step) {
        most = std::max(most, story.total(step));
        least = std::min(least, story.total(step));
      }
      // The state at the beginning of the part.
      while (at + 1 < line.steps.size() && line.steps[at + 1] <= begin) ++at;
      std::uint64_t kept_most = total(moment(line, at));
      std::uint64_t kept_least = kept_most;
      for (std::size_t i = at; i < line.steps.size() && line.steps[i] < end; ++i) {
        kept_most = std::max(kept_most, total(moment(line, i)));
        kept_least = std::min(kept_least, total(moment(line, i)));
      }
      ASSERT_EQ(kept_most, std::max(most, total(moment(line, at)))) << "part at " << begin << " of " << steps << " in " << parts;
      ASSERT_LE(kept_least, least);
      ASSERT_GE(kept_most, most);
    }
    ASSERT_EQ(moment(line, line.steps.size() - 1), story.bytes.back()) << "what is there at the end";
  }
  did(std::to_string(checked) + " parts of " + std::to_string(stories) + " stories, seed " + std::to_string(seed()));
}

TEST(Timeline, OfManyStepsStaysSmall) {
  const std::uint64_t steps = scaled(2'000'000, 200'000);
  TimelineMaker maker(0, steps, groups(8));
  Random random(seed());
  std::vector<std::uint64_t> now(8);
  for (std::uint64_t step = 0; step < steps; ++step) {
    const std::size_t g = random.below(8);
    now[g] += 4096;
    maker.add(step, g, 4096);
  }
  const Timeline line = maker.take();
  EXPECT_LE(line.steps.size(), 3 * TimelineMaker::kMostParts + 1);
  EXPECT_LT(html::timeline_json(line).size(), 2'500'000U);
}

TEST(Timeline, OfAMapIsWhatItsBoxesHold) {
  const html::AddressMap map{.end = 5, .bytes = 30, .boxes = {{0, 3, 0, 10}, {1, 2, 10, 5}, {2, 5, 10, 7}}, .marks = {{"lower bound", 17}}};
  const Timeline line = html::live_timeline(map, "live");
  EXPECT_THAT(line.steps, ElementsAre(0, 1, 2, 3));
  EXPECT_THAT(line.bytes, ElementsAre(10, 15, 17, 7));
  EXPECT_EQ(line.marks.size(), 1U);
}

TEST(TimelineJson, ReadsBackAsItWas) {
  TimelineMaker maker(3, 2000, groups(2));
  Random random(seed());
  for (std::uint64_t step = 3; step < 2000; step += 1 + random.below(5)) maker.add(step, random.below(2), random.below(1 << 20));
  Timeline line = maker.take();
  line.groups[1].name = "</script>\xff";
  line.lines = {{"committed", {{3, 100}, {70, 50}}}};
  const auto json = nlohmann::json::parse(html::timeline_json(line));
  EXPECT_EQ(summed(unpacked(json["steps"].get<std::string>())), line.steps);
  for (std::size_t g = 0; g < 2; ++g) {
    const auto column = summed_signed(unpacked(json["columns"][g].get<std::string>()));
    ASSERT_EQ(column.size(), line.steps.size());
    for (std::size_t i = 0; i < column.size(); ++i) ASSERT_EQ(column[i], line.bytes[2 * i + g]);
  }
  EXPECT_EQ(json["groups"][1], "</script>\\xff");
  EXPECT_THAT(summed(unpacked(json["lines"][0]["steps"].get<std::string>())), ElementsAre(3, 70));
  EXPECT_THAT(summed_signed(unpacked(json["lines"][0]["bytes"].get<std::string>())), ElementsAre(100, 50));
}

}  // namespace
}  // namespace berth::testing
