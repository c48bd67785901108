// SPDX-License-Identifier: Apache-2.0
#include "berth/base/error.h"

#include <gtest/gtest.h>

#include <cerrno>
#include <memory>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <type_traits>

#include "berth/base/result.h"
#include "support/heap_faults.h"

namespace {

using namespace berth;
using Json = nlohmann::json;

ArgumentError example_error() {
  return {ErrorCode::invalid_shape,
          {"a shape [2, -3]", "dimension 1 is -3", "use 0 or more"},
          {{"axis", 1}, {"value", -3}, {"device", "cpu:0"}}};
}

TEST(Error, SaysWhatWasAskedWhyAndWhatHelps) {
  const ArgumentError error = example_error();
  EXPECT_STREQ(error.what(), "a shape [2, -3]: dimension 1 is -3; help: use 0 or more");
  EXPECT_EQ(error.asked(), "a shape [2, -3]");
  EXPECT_EQ(error.why(), "dimension 1 is -3");
  EXPECT_EQ(error.help(), "use 0 or more");
  EXPECT_EQ(error.code(), ErrorCode::invalid_shape);
}

TEST(Error, LeavesOutTheHelpThatIsNotThere) {
  EXPECT_STREQ(DeviceError(ErrorCode::device_lost, {"a copy", "the device is gone", ""}).what(), "a copy: the device is gone");
}

TEST(Error, CarriesItsFacts) {
  const ArgumentError error = example_error();
  ASSERT_EQ(error.facts().size(), 3U);
  EXPECT_EQ(error.fact("axis"), "1");
  EXPECT_EQ(error.fact("value"), "-3");
  EXPECT_EQ(error.fact("device"), "cpu:0");
  EXPECT_EQ(error.fact("none"), "");
  EXPECT_TRUE(error.facts()[0].is_number);
  EXPECT_FALSE(error.facts()[2].is_number);
  EXPECT_EQ(Fact("bytes", SIZE_MAX).value, std::to_string(SIZE_MAX));
}

TEST(Error, WritesItselfAsJson) {
  const Json expected = {{"error", "invalid_shape"},
                         {"asked", "a shape [2, -3]"},
                         {"why", "dimension 1 is -3"},
                         {"help", "use 0 or more"},
                         {"facts", {{"axis", 1}, {"value", -3}, {"device", "cpu:0"}}}};
  EXPECT_EQ(Json::parse(to_json(example_error())), expected);
}

TEST(Error, WritesValidJsonWhateverItsTextHolds) {
  const FormatError error(ErrorCode::format_error, {"file \"\xff\n\x1b\"", "bad\\ \xc0\x80", "\x7f"},
                          {{"name", "\xed\xa0\x80\""}, {"bytes", UINT64_MAX}});
  const Json read = Json::parse(to_json(error));
  EXPECT_EQ(read["asked"], "file \"\xef\xbf\xbd\n\x1b\"");
  EXPECT_EQ(read["help"], "\x7f");
  EXPECT_EQ(read["facts"]["name"], "\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\"");
  EXPECT_EQ(read["facts"]["bytes"], UINT64_MAX);
}

TEST(Error, CopiesKeepTheTextAfterTheFirstIsGone) {
  auto first = std::make_unique<ArgumentError>(example_error());
  const Error copy = *first;
  Error assigned(ErrorCode::busy, {"another", "error", ""});
  assigned = *first;
  first.reset();
  EXPECT_STREQ(copy.what(), example_error().what());
  EXPECT_STREQ(assigned.what(), example_error().what());
  EXPECT_EQ(assigned.code(), ErrorCode::invalid_shape);
  EXPECT_EQ(assigned.fact("device"), "cpu:0");
}

TEST(Error, IsCopiedWithoutTheHeap) {
  static_assert(std::is_nothrow_copy_constructible_v<ArgumentError> && std::is_nothrow_copy_assignable_v<ArgumentError>);
  const ArgumentError error = example_error();
  const berth::testing::FailNthNew fail(1);
  const ArgumentError copy = error;
  EXPECT_FALSE(fail.happened());
  EXPECT_EQ(copy.what(), error.what()) << "the text is shared";
}

TEST(Error, LacksOfHeapPassThroughItsConstruction) {
  const std::string longer(100, 'x');
  for (std::uint64_t nth = 1;; ++nth) {
    ErrorText text{longer, longer, longer};
    const std::int64_t live = berth::testing::live_news();
    bool thrown = false;
    {
      const berth::testing::FailNthNew fail(nth);
      try {
        const ArgumentError error(ErrorCode::busy, text, {{"name", "a name too long to be kept inline"}});
      } catch (const std::bad_alloc&) {
        thrown = true;
      }
      ASSERT_EQ(thrown, fail.happened());
    }
    EXPECT_EQ(berth::testing::live_news(), live);
    if (!thrown) {
      EXPECT_GT(nth, 3U);
      return;
    }
  }
}

template <class Class>
void expect_catchable(ErrorCode code) {
  const auto raise = [&] { throw Class(code, {"asked", "why", "help"}); };
  EXPECT_THROW(raise(), Class);
  EXPECT_THROW(raise(), Error);
  EXPECT_THROW(raise(), std::exception);
  try {
    raise();
  } catch (const std::exception& error) {
    EXPECT_STREQ(error.what(), "asked: why; help: help");
  }
}

TEST(Error, IsCaughtByItsClassAsErrorAndAsException) {
  expect_catchable<ArgumentError>(ErrorCode::out_of_bounds);
  expect_catchable<AccessError>(ErrorCode::read_only);
  expect_catchable<DeviceError>(ErrorCode::no_such_device);
  expect_catchable<FormatError>(ErrorCode::format_error);
  static_assert(!std::is_base_of_v<ArgumentError, AccessError> && !std::is_base_of_v<DeviceError, FormatError>);
}

TEST(Error, EveryCodeHasItsOwnName) {
  std::set<std::string_view> names;
  const int count = static_cast<int>(ErrorCode::cancelled) + 1;
  for (int code = 0; code < count; ++code) names.insert(to_string(static_cast<ErrorCode>(code)));
  EXPECT_EQ(names.size(), static_cast<std::size_t>(count));
  EXPECT_EQ(names.count("unknown_error"), 0U);
  EXPECT_EQ(to_string(ErrorCode::invalid_argument), "invalid_argument");
  EXPECT_EQ(to_string(ErrorCode::overlapping_view), "overlapping_view");
  EXPECT_EQ(to_string(ErrorCode::already_consumed), "already_consumed");
  EXPECT_EQ(to_string(ErrorCode::unsupported), "unsupported");
  EXPECT_EQ(to_string(ErrorCode::out_of_memory), "out_of_memory");
  EXPECT_EQ(to_string(ErrorCode::cancelled), "cancelled");
  EXPECT_EQ(to_string(static_cast<ErrorCode>(255)), "unknown_error");
}

TEST(Result, HoldsAValueOrAFailure) {
  Result<std::unique_ptr<int>> good = std::make_unique<int>(7);
  ASSERT_TRUE(good.ok());
  EXPECT_EQ(**good, 7);
  EXPECT_EQ(*good->get(), 7);
  const Result<std::unique_ptr<int>> bad = Failure{ErrorCode::out_of_memory, ENOMEM, "full"};
  ASSERT_FALSE(bad);
  EXPECT_EQ(bad.failure().code, ErrorCode::out_of_memory);
  EXPECT_EQ(bad.failure().os_error, ENOMEM);
  EXPECT_STREQ(bad.failure().why, "full");
}

TEST(Status, IsDoneUnlessAFailureIsPutIn) {
  EXPECT_TRUE(Status().ok());
  EXPECT_FALSE(Status(Failure{}).ok()) << "a failure without words is a failure";
  EXPECT_EQ(Status(Failure{ErrorCode::unsupported, 5, "no"}).failure().os_error, 5);
}

}  // namespace
