// SPDX-License-Identifier: Apache-2.0
#include "berth/base/json.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <limits>
#include <nlohmann/json.hpp>
#include <string>

#include "base/random.h"
#include "support/scale.h"

namespace {

using namespace berth;
using namespace berth::internal;
using Json = nlohmann::json;

constexpr JsonWriter::Style kStyles[] = {JsonWriter::Style::compact, JsonWriter::Style::pretty};
const std::string kReplacement = "\xef\xbf\xbd";

std::string written(const auto& value) {
  JsonWriter json;
  json.value(value);
  return json.take();
}

std::string read_back(std::string_view text) { return Json::parse(written(text)).get<std::string>(); }

// Writes a value of nlohmann with the writer under test.
void write(JsonWriter& json, const Json& value) {
  if (value.is_object()) {
    json.begin_object();
    for (const auto& [key, child] : value.items()) write(json.key(key), child);
    json.end_object();
  } else if (value.is_array()) {
    json.begin_array();
    for (const Json& child : value) write(json, child);
    json.end_array();
  } else if (value.is_string()) {
    json.value(value.get<std::string>());
  } else if (value.is_boolean()) {
    json.value(value.get<bool>());
  } else if (value.is_number_unsigned()) {
    json.value(value.get<std::uint64_t>());
  } else if (value.is_number_integer()) {
    json.value(value.get<std::int64_t>());
  } else if (value.is_number_float()) {
    json.value(value.get<double>());
  } else {
    json.null();
  }
}

Json random_json(Random& random, int depth) {
  switch (random.below(depth == 0 ? 6 : 9)) {
    case 0: return nullptr;
    case 1: return random.one_in(2);
    case 2: return random.next();
    case 3: return -static_cast<std::int64_t>(random.next() >> 1) - 1;
    case 4: return static_cast<double>(random.below(1000)) + 0.25;
    case 5: return std::string(random.below(5), static_cast<char>(random.below(128)));
    case 6: {
      Json object = Json::object();
      for (std::uint64_t i = random.below(4); i > 0; --i) object["k\"" + std::to_string(i) + "\n"] = random_json(random, depth - 1);
      return object;
    }
    default: {
      Json array = Json::array();
      for (std::uint64_t i = random.below(4); i > 0; --i) array.push_back(random_json(random, depth - 1));
      return array;
    }
  }
}

TEST(Json, WritesTheExampleOfTheHeader) {
  JsonWriter json;
  json.begin_object().member("device", "cpu:0").member("bytes", 4096).end_object();
  EXPECT_EQ(json.take(), R"({"device":"cpu:0","bytes":4096})");
}

TEST(Json, IndentsInPrettyStyleAndKeepsEmptyOnesShort) {
  JsonWriter json(JsonWriter::Style::pretty);
  json.begin_object().member("a", 1).key("b").begin_array().value(true).null().end_array();
  json.key("c").begin_array().end_array().key("d").begin_object().end_object().end_object();
  EXPECT_EQ(json.take(), "{\n  \"a\": 1,\n  \"b\": [\n    true,\n    null\n  ],\n  \"c\": [],\n  \"d\": {}\n}");
}

TEST(Json, IsEmptyAfterTake) {
  JsonWriter json;
  json.begin_array().value(1).end_array();
  EXPECT_EQ(json.take(), "[1]");
  EXPECT_EQ(json.take(), "");
  json.begin_array().value(2).end_array();
  EXPECT_EQ(json.take(), "[2]");
}

TEST(Json, NestedStructuresReadBackEqualInBothStyles) {
  Random random(berth::testing::seed());
  const std::uint64_t count = berth::testing::scaled(3000, 100);
  for (std::uint64_t i = 0; i < count; ++i) {
    const Json value = random_json(random, 5);
    for (const JsonWriter::Style style : kStyles) {
      JsonWriter json(style);
      write(json, value);
      const std::string text = json.take();
      ASSERT_EQ(Json::parse(text, nullptr, false), value) << text;
      ASSERT_TRUE(style == JsonWriter::Style::pretty || text.find_first_of("\n\r\t") == std::string::npos) << "one line: " << text;
    }
  }
  berth::testing::did(std::to_string(count) + " values in both styles, seed " + std::to_string(berth::testing::seed()));
}

TEST(Json, NestsDeeply) {
  JsonWriter json;
  for (int i = 0; i < 500; ++i) json.begin_array().begin_object().key("k");
  json.value(7);
  for (int i = 0; i < 500; ++i) json.end_object().end_array();
  Json read = Json::parse(json.take());
  for (int i = 0; i < 500; ++i) {
    Json inner = read[0]["k"];
    read = std::move(inner);
  }
  EXPECT_EQ(read, 7);
}

TEST(Json, MakesValidTextOfEveryByte) {
  std::string all;
  std::string expected;
  for (int byte = 0; byte < 256; ++byte) {
    const std::string one(1, static_cast<char>(byte));
    EXPECT_EQ(read_back(one), byte < 128 ? one : kReplacement) << byte;
    all += one;
    expected += byte < 128 ? one : kReplacement;
  }
  EXPECT_EQ(read_back(all), expected);
  for (const char c : written(all)) EXPECT_TRUE(static_cast<unsigned char>(c) >= 0x20 && c != 0x7f) << "a raw control character";
}

TEST(Json, KeepsValidUtf8AndReplacesTheRest) {
  const std::string valid = "\xc2\x80 \xc3\xa9 \xe2\x82\xac \xed\x9f\xbf \xee\x80\x80 \xf0\x9f\x98\x80 \xf4\x8f\xbf\xbf";
  EXPECT_EQ(read_back(valid), valid);
  struct Row {
    std::string_view text;
    std::size_t replaced;  // bytes
  };
  const Row rows[] = {{"\xc0\xaf", 2}, {"\xe0\x80\xaf", 3}, {"\xed\xa0\x80", 3}, {"\xf4\x90\x80\x80", 4}, {"\xf0\x8f\xbf\xbf", 4},
                      {"\xe2\x82", 2}, {"\xf0\x9f\x98", 3}, {"\x80", 1},         {"\xff\xfe", 2},         {"\xc2", 1}};
  for (const Row& row : rows) {
    std::string expected = "a";
    for (std::size_t i = 0; i < row.replaced; ++i) expected += kReplacement;
    EXPECT_EQ(read_back("a" + std::string(row.text) + "z"), expected + "z");
  }
}

// What a terminal would obey, or not show, is escaped, and is the same when it is read back.
TEST(Json, EscapesWhatIsNotSeenExactly) {
  EXPECT_EQ(written(std::string_view("a\u202e"
                                     "b")),
            "\"a\\u202eb\"");
  EXPECT_EQ(written(std::string_view("\xc2\x85\U000e0041\x7f")), "\"\\u0085\\udb40\\udc41\\u007f\"");
  for (const std::string_view text : {"\u061c", "\u200f", "\u2069", "\ufeff", "\U000e0001", "\U000e0fff", "\u00e9\U0001f600"})
    EXPECT_EQ(read_back(text), text);
}

TEST(Json, EscapesKeysAsItEscapesValues) {
  JsonWriter json;
  json.begin_object().member("a\"\\\n\xff", 1).end_object();
  EXPECT_EQ(Json::parse(json.take()), Json({{"a\"\\\n" + kReplacement, 1}}));
}

TEST(Json, WritesIntegersExactly) {
  EXPECT_EQ(written(UINT64_MAX), "18446744073709551615");
  EXPECT_EQ(written(INT64_MIN), "-9223372036854775808");
  EXPECT_EQ(written(std::uint8_t{200}), "200");
  EXPECT_EQ(written(std::int8_t{-5}), "-5");
  EXPECT_EQ(written(true), "true");
  EXPECT_EQ(written("text"), "\"text\"") << "a literal is text, not a flag";
}

TEST(Json, WritesWhatJsonLacksAsNull) {
  using Limits = std::numeric_limits<double>;
  for (const double value : {Limits::quiet_NaN(), Limits::infinity(), -Limits::infinity()}) EXPECT_EQ(written(value), "null");
}

TEST(Json, WritesTheShortestDoubleThatReadsBackTheSame) {
  EXPECT_EQ(written(0.1), "0.1");
  EXPECT_EQ(written(1.0), "1");
  EXPECT_EQ(written(0.1 + 0.2), "0.30000000000000004");
  EXPECT_EQ(written(5e-324), "5e-324");
  EXPECT_EQ(written(1e300), "1e+300");
  Random random(berth::testing::seed());
  const std::uint64_t count = berth::testing::scaled(100'000, 1000);
  for (std::uint64_t i = 0; i < count; ++i) {
    const double value = i % 2 == 0 ? std::bit_cast<double>(random.next()) : static_cast<double>(random.below(100'000)) / 1000;
    if (!std::isfinite(value)) continue;
    const std::string text = written(value);
    ASSERT_EQ(std::bit_cast<std::uint64_t>(std::strtod(text.c_str(), nullptr)), std::bit_cast<std::uint64_t>(value)) << text;
    ASSERT_TRUE(Json::parse(text, nullptr, false).is_number()) << text;
    // The first of printf's precisions that round-trips; its text is never shorter.
    char digits[40];
    int precision = 1;
    do std::snprintf(digits, sizeof digits, "%.*g", precision, value);
    while (std::strtod(digits, nullptr) != value && ++precision <= 17);
    ASSERT_LE(text.size(), std::string(digits).size()) << text << " and " << digits;
  }
  berth::testing::did(std::to_string(count) + " doubles, seed " + std::to_string(berth::testing::seed()));
}

TEST(Json, TakesInNumbersAndValuesAlreadyMade) {
  JsonWriter inner;
  inner.begin_array().value(1).value(2).end_array();
  JsonWriter json;
  json.begin_object().key("made").json(inner.take()).key("number").number("1e3").end_object();
  EXPECT_EQ(Json::parse(json.take()), Json({{"made", {1, 2}}, {"number", 1000.0}}));
}

}  // namespace
