// SPDX-License-Identifier: Apache-2.0
// Tags and call sites, which are both interned.
#include "berth/record/tag.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <set>
#include <string>
#include <thread>
#include <vector>

#include "berth/record/site.h"
#include "support/heap_faults.h"

namespace {

using namespace berth;

TEST(Tag, EqualWordsAreEqualTags) {
  const std::string copy = "weights";
  EXPECT_EQ(Tag("weights"), Tag(copy));
  EXPECT_EQ(Tag("weights").id(), Tag(std::string_view("weights and more").substr(0, 7)).id());
  EXPECT_FALSE(Tag("weights") == Tag("weight"));
  EXPECT_FALSE(Tag("weights") == Tag("Weights"));
  EXPECT_EQ(Tag("weights").word(), "weights");
  EXPECT_TRUE(Tag("weights"));
}

TEST(Tag, TheEmptyWordIsNoTag) {
  EXPECT_EQ(Tag(""), Tag());
  EXPECT_EQ(Tag("").id(), 0);
  EXPECT_EQ(Tag().word(), "");
  EXPECT_FALSE(Tag(""));
}

TEST(Tag, WordsMayHoldAnyBytes) {
  const std::string_view word("a\0b\xff\n", 5);
  EXPECT_EQ(Tag(word).word(), word);
  EXPECT_FALSE(Tag(word) == Tag("a"));
}

TEST(Tag, TheFirst255BytesOfAWordCount) {
  const std::string longest(255, 'a');
  EXPECT_EQ(Tag(longest).word(), longest);
  EXPECT_EQ(Tag(longest + "b"), Tag(longest + "c"));
  EXPECT_EQ(Tag(std::string(100'000, 'a')), Tag(longest));
  EXPECT_FALSE(Tag(longest) == Tag(std::string_view(longest).substr(1)));
}

TEST(Tag, AWordStaysWhereItIs) {
  const std::string_view word = Tag("stays").word();
  for (int i = 0; i < 1000; ++i) (void)Tag("word " + std::to_string(i));
  EXPECT_EQ(Tag("stays").word().data(), word.data());
  EXPECT_EQ(word, "stays");
}

TEST(Tag, ThreadsThatInternTheSameWordsGetTheSameTags) {
  constexpr int kThreads = 4;
  constexpr int kWords = 2000;
  std::vector<std::vector<std::uint16_t>> ids(kThreads);
  std::vector<std::thread> threads;
  for (auto& mine : ids) {
    threads.emplace_back([&mine] {
      for (int i = 0; i < kWords; ++i) mine.push_back(Tag("shared " + std::to_string(i)).id());
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (const auto& mine : ids) EXPECT_EQ(mine, ids[0]);
  EXPECT_EQ(std::set(ids[0].begin(), ids[0].end()).size(), std::size_t{kWords});
  for (int i = 0; i < kWords; ++i) ASSERT_EQ(Tag("shared " + std::to_string(i)).word(), "shared " + std::to_string(i));
}

TEST(TagScope, NestsAndTheInnermostCounts) {
  EXPECT_EQ(current_tag(), Tag());
  {
    const TagScope outer("outer");
    EXPECT_EQ(current_tag(), Tag("outer"));
    {
      const TagScope inner("inner");
      EXPECT_EQ(current_tag(), Tag("inner"));
      const TagScope none{Tag()};
      EXPECT_FALSE(current_tag());
    }
    EXPECT_EQ(current_tag(), Tag("outer"));
  }
  EXPECT_EQ(current_tag(), Tag());
}

TEST(TagScope, EndsWhenAnExceptionPasses) {
  try {
    const TagScope scope("thrown through");
    throw 1;
  } catch (int) {
  }
  EXPECT_EQ(current_tag(), Tag());
}

TEST(TagScope, BelongsToItsThread) {
  const TagScope scope("here");
  std::thread([] {
    EXPECT_EQ(current_tag(), Tag()) << "another thread has none";
    const TagScope other("there");
    EXPECT_EQ(current_tag(), Tag("there"));
  }).join();
  EXPECT_EQ(current_tag(), Tag("here"));
}

Site called_from(Site site = Site::here()) { return site; }

TEST(Site, AsADefaultArgumentIsThatOfTheCaller) {
  const Site site = called_from();
  EXPECT_EQ(site.line, static_cast<unsigned>(__LINE__ - 1));
  EXPECT_TRUE(std::string_view(site.file).ends_with("record/tag_test.cc")) << site.file;
  EXPECT_EQ(std::string_view(site.function), "TestBody");
  EXPECT_NE(called_from().line, site.line);
}

TEST(Site, KeepsItsNumber) {
  const Site site = called_from();
  const SiteId id = intern(site);
  EXPECT_NE(id, SiteId{});
  EXPECT_EQ(intern(site), id);
  EXPECT_FALSE(intern(called_from()) == id);
  const Site back = site_of(id);
  EXPECT_EQ(back.file, site.file);
  EXPECT_EQ(back.function, site.function);
  EXPECT_EQ(back.line, site.line);
}

TEST(Site, PrintsWithoutItsFolder) {
  EXPECT_EQ(to_string(intern({.file = "/a/b/decoder.cc", .function = "grow", .line = 118})), "decoder.cc:118 (grow)");
  EXPECT_EQ(to_string(intern({.file = "main.cc", .function = "main", .line = 1})), "main.cc:1 (main)");
  EXPECT_EQ(to_string(SiteId{}), "unknown");
  EXPECT_EQ(to_string(SiteId{65000}), "unknown") << "a number never given";
  EXPECT_EQ(to_string(SiteId{UINT32_MAX}), "unknown") << "a number beyond the table";
}

TEST(Site, WithoutAFileIsUnknown) {
  EXPECT_EQ(intern(Site{}), SiteId{});
  EXPECT_EQ(site_of(SiteId{}).file, nullptr);
}

// In processes of their own, because they fill the tables, which are never cleared.
class InternDeathTest : public ::testing::Test {
 protected:
  InternDeathTest() { GTEST_FLAG_SET(death_test_style, "threadsafe"); }
};

TEST_F(InternDeathTest, ASiteWithoutAFunctionPrints) {
  EXPECT_EXIT(_exit(to_string(intern({.file = "a.cc", .line = 3})).starts_with("a.cc:3") ? 0 : 1), ::testing::ExitedWithCode(0), "");
}

TEST_F(InternDeathTest, WordsPastTheTableAreOther) {
  EXPECT_EXIT(
      {
        const Tag early("early");
        for (int i = 0; i < 70'000; ++i) (void)Tag("word " + std::to_string(i));
        const Tag late("late");
        const bool right = late.word() == "(other)" && late && Tag("later") == late && Tag("early") == early && early.word() == "early" &&
                           Tag("word 100").word() == "word 100" && Tag("(other)") == late;
        _exit(right ? 0 : 1);
      },
      ::testing::ExitedWithCode(0), "");
}

TEST_F(InternDeathTest, SitesPastTheTableAreUnknown) {
  EXPECT_EXIT(
      {
        const auto site = [](std::uint32_t line) { return intern({.file = "a.cc", .function = "f", .line = line}); };
        const SiteId early = site(1);
        std::uint32_t line = 2;
        while (line < 100'000 && site(line) != SiteId{}) ++line;
        _exit(line == 65'536 && site(1) == early && site(200'000) == SiteId{} && site_of(early).line == 1 ? 0 : 1);
      },
      ::testing::ExitedWithCode(0), "");
}

// "Never fails": not even when the very first tag is made while the heap is exhausted.
TEST_F(InternDeathTest, ATagMadeWithoutAHeapIsOtherOrRight) {
  for (std::uint64_t nth = 1; nth <= 6; ++nth) {
    EXPECT_EXIT(
        {
          Tag tag;
          {
            const berth::testing::FailNthNew fail(nth);
            tag = Tag("a word that is too long to be kept inline");
          }
          const bool right = tag.word() == "(other)" || tag.word() == "a word that is too long to be kept inline";
          _exit(right && Tag("next").word() == "next" && Tag("(other)").word() == "(other)" ? 0 : 1);
        },
        ::testing::ExitedWithCode(0), "")
        << "allocation " << nth;
  }
}

TEST_F(InternDeathTest, ASiteMadeWithoutAHeapIsUnknownOrRight) {
  for (std::uint64_t nth = 1; nth <= 3; ++nth) {
    EXPECT_EXIT(
        {
          SiteId id;
          const Site site = Site::here();
          {
            const berth::testing::FailNthNew fail(nth);
            id = intern(site);
          }
          _exit((id == SiteId{} || id == intern(site)) && intern(site) != SiteId{} ? 0 : 1);
        },
        ::testing::ExitedWithCode(0), "")
        << "allocation " << nth;
  }
}

}  // namespace
