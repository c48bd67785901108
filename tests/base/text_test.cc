// SPDX-License-Identifier: Apache-2.0
#include "base/text.h"

#include <gtest/gtest.h>

#include <chrono>
#include <utility>
#include <vector>

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>

#include "base/random.h"
#include "support/scale.h"

namespace {

using namespace berth;
using namespace berth::internal;

std::optional<std::uint64_t> parse(std::string_view text) {
  std::uint64_t count = 0;
  return text::parse_bytes(text, count) ? std::optional(count) : std::nullopt;
}

TEST(Text, WritesAndReadsDurations) {
  using std::chrono::milliseconds;
  for (const auto& [ms, shown] : std::vector<std::pair<std::int64_t, std::string>>{
           {0, "0 s"}, {1, "1 ms"}, {1000, "1 s"}, {1500, "1500 ms"}, {90'000, "90 s"}, {120'000, "2 min"}, {7'200'000, "2 h"}}) {
    EXPECT_EQ(text::duration(milliseconds(ms)), shown);
    milliseconds back{-1};
    EXPECT_TRUE(text::parse_duration(shown, back)) << shown;
    EXPECT_EQ(back.count(), ms);
  }
  milliseconds never{};
  EXPECT_TRUE(text::parse_duration("never", never));
  EXPECT_EQ(text::duration(never), "never");
  for (const char* wrong : {"", "5", "s", "-5s", "5.5s", "5sec", "1e3s", "99999999999999999999s", "9223372036854775807ms", "0x5s", "5s "}) {
    milliseconds untouched{7};
    EXPECT_FALSE(text::parse_duration(wrong, untouched)) << wrong;
    EXPECT_EQ(untouched.count(), 7);
  }
}

TEST(Text, JoinsPieces) {
  EXPECT_EQ(text::join("axis ", 2, " of ", std::size_t{3}), "axis 2 of 3");
  EXPECT_EQ(text::join('a', std::string("b"), std::string_view("c"), INT64_MIN), "abc-9223372036854775808");
  EXPECT_EQ(text::join(), "");
}

TEST(Text, WritesNumbersInHex) {
  EXPECT_EQ(text::hex(0), "0x0");
  EXPECT_EQ(text::hex(0xdeadbeef), "0xdeadbeef");
  EXPECT_EQ(text::hex(UINT64_MAX), "0xffffffffffffffff");
  EXPECT_EQ(text::pointer(nullptr), "0x0");
}

TEST(Bytes, AreWrittenForPeople) {
  const std::pair<std::uint64_t, std::string_view> rows[] = {
      {0, "0 B"},
      {1, "1 B"},
      {1023, "1023 B"},
      {1024, "1 KiB"},
      {1536, "1.5 KiB"},
      {1126, "1.1 KiB"},
      {20ULL << 20, "20 MiB"},
      {1ULL << 30, "1 GiB"},
      {1ULL << 40, "1 TiB"},
      {1ULL << 50, "1 PiB"},
      {1ULL << 60, "1 EiB"},
      {12700, "12.4 KiB"},
      {200'000, "195 KiB"},
      {UINT64_MAX, "16 EiB"},
  };
  for (const auto& [count, expected] : rows) EXPECT_EQ(text::bytes(count), expected) << count;
}

TEST(Bytes, NeverShowMoreThanThreeDigitsBut1000To1023) {
  Random random(berth::testing::seed());
  const auto check = [](std::uint64_t count) {
    const std::string text = text::bytes(count);
    std::string digits = text.substr(0, text.find(' '));
    std::erase(digits, '.');
    if (digits.size() <= 3) return;
    ASSERT_TRUE(digits.size() == 4 && digits >= "1000" && digits <= "1023" && text.find('.') == std::string::npos)
        << count << " as " << text;
  };
  // Just below each round number of each unit, where rounding carries, and at random.
  for (std::uint64_t shift = 10; shift < 60; shift += 10) {
    for (const std::uint64_t whole : {10ULL, 100ULL, 1000ULL, 1024ULL}) {
      for (std::uint64_t thousandth = 0; thousandth < 1000; ++thousandth)
        ASSERT_NO_FATAL_FAILURE(check((whole << shift) - (thousandth << shift) / 1000));
    }
  }
  for (int i = 0; i < 10'000; ++i) ASSERT_NO_FATAL_FAILURE(check(random.next() >> random.below(64)));
}

TEST(Bytes, RoundCountsReadBackTheSame) {
  for (std::uint64_t shift = 0; shift <= 50; shift += 10) {
    for (std::uint64_t count = 0; count < 1024; ++count)
      ASSERT_EQ(parse(text::bytes(count << shift)), count << shift) << text::bytes(count << shift);
  }
}

TEST(ParseBytes, ReadsCountsWithAndWithoutUnits) {
  const std::pair<std::string_view, std::uint64_t> rows[] = {
      {"0", 0},        {"4096", 4096},        {"64KiB", 65536},   {"1.5 GiB", 1610612736}, {"2M", 2097152}, {"1K", 1024}, {"7 B", 7},
      {"0.5KiB", 512}, {"3 TiB", 3ULL << 40}, {"2P", 2ULL << 50}, {"15 EiB", 15ULL << 60}, {"0 EiB", 0},    {"1.0", 1},
  };
  for (const auto& [text, count] : rows) EXPECT_EQ(parse(text), count) << text;
}

TEST(ParseBytes, RefusesEverythingElse) {
  const std::string_view texts[] = {"",
                                    " ",
                                    "KiB",
                                    "-1",
                                    "+1",
                                    "1.5",
                                    "0.3KiB",
                                    "1 kib",
                                    "1KB",
                                    "1 k",
                                    "1KiBs",
                                    "1 K iB",
                                    "1e3",
                                    "0x10",
                                    "inf",
                                    "nan",
                                    "16 EiB",
                                    "1.2.3",
                                    "1,000",
                                    "4096 \n",
                                    "\t1",
                                    "1B B",
                                    "20000000000000000000",
                                    "99999999999999999999999999 EiB",
                                    "12three"};
  for (const std::string_view text : texts) EXPECT_EQ(parse(text), std::nullopt) << text;
  EXPECT_EQ(parse(std::string_view("1\0", 2)), std::nullopt);
  EXPECT_EQ(parse(std::string(500, '9')), std::nullopt);
}

TEST(ParseBytes, ReadsEveryWholeCountExactly) {
  for (const std::uint64_t count : {~0ULL, ~0ULL - 1, (1ULL << 53) + 1, (1ULL << 63) - 1, (1ULL << 63) + 1}) {
    EXPECT_EQ(parse(std::to_string(count)), count) << count;
  }
}

TEST(Utf8, MeasuresWholeSequences) {
  EXPECT_EQ(text::utf8_length(""), 0U);
  EXPECT_EQ(text::utf8_length("a\xff"), 1U);
  EXPECT_EQ(text::utf8_length(std::string_view("\0", 1)), 1U);
  EXPECT_EQ(text::utf8_length("\xc2\x80"), 2U);
  EXPECT_EQ(text::utf8_length("\xdf\xbf!"), 2U);
  EXPECT_EQ(text::utf8_length("\xe0\xa0\x80"), 3U);
  EXPECT_EQ(text::utf8_length("\xed\x9f\xbf"), 3U);
  EXPECT_EQ(text::utf8_length("\xee\x80\x80"), 3U);
  EXPECT_EQ(text::utf8_length("\xf0\x90\x80\x80"), 4U);
  EXPECT_EQ(text::utf8_length("\xf4\x8f\xbf\xbf"), 4U);
}

std::string encode_plainly(std::uint32_t point, int length) {
  std::string out;
  for (int i = length - 1; i > 0; --i) {
    out.insert(out.begin(), static_cast<char>(0x80 | (point & 0x3f)));
    point >>= 6;
  }
  constexpr std::uint32_t kLead[] = {0, 0, 0xc0, 0xe0, 0xf0};
  out.insert(out.begin(), static_cast<char>(kLead[length] | point));
  return out;
}

TEST(Utf8, AcceptsEveryCodePointInItsShortestFormOnly) {
  for (std::uint32_t point = 0; point <= 0x13ffff; ++point) {
    const int shortest = point < 0x80 ? 1 : point < 0x800 ? 2 : point < 0x10000 ? 3 : 4;
    const bool valid = point <= 0x10ffff && !(point >= 0xd800 && point <= 0xdfff);
    for (int length = std::max(2, shortest); length <= 4; ++length) {
      const std::string text = encode_plainly(point, length);
      const std::size_t expected = valid && length == shortest ? static_cast<std::size_t>(length) : 0;
      ASSERT_EQ(text::utf8_length(text), expected) << std::hex << point << " in " << length << " bytes";
      ASSERT_EQ(text::utf8_length(std::string_view(text).substr(0, text.size() - 1)), 0U) << std::hex << point << " cut short";
    }
  }
}

TEST(Printable, LeavesPlainTextAlone) {
  EXPECT_EQ(text::printable("layer.0/weight (f32)"), "layer.0/weight (f32)");
  EXPECT_EQ(text::printable("gr\xc3\xb6\xc3\x9f"
                            "e \xf0\x9f\x98\x80"),
            "gr\xc3\xb6\xc3\x9f"
            "e \xf0\x9f\x98\x80");
  EXPECT_EQ(text::printable("\xc2\xa0"), "\xc2\xa0") << "U+00A0 is no control character";
  EXPECT_EQ(text::quoted("a"), "'a'");
}

TEST(Printable, EscapesWhatATerminalWouldObey) {
  EXPECT_EQ(text::printable("a\nb\r\t"), "a\\x0ab\\x0d\\x09");
  EXPECT_EQ(text::printable("\x1b[31mred"), "\\x1b[31mred");
  EXPECT_EQ(text::printable("\x7f"), "\\x7f");
  EXPECT_EQ(text::printable(std::string_view("\0", 1)), "\\x00");
  EXPECT_EQ(text::printable("\xc2\x9b"
                            "31m"),
            "\\xc2\\x9b31m")
      << "U+009B, the one-character escape";
  EXPECT_EQ(text::printable("\xff\xc0\xaf\xed\xa0\x80"), "\\xff\\xc0\\xaf\\xed\\xa0\\x80");
}

std::string utf8(std::uint32_t code) {
  if (code < 0x80) return {static_cast<char>(code)};
  std::string out;
  for (; code >= (out.empty() ? 0x40U : 0x40U >> out.size()); code >>= 6) out.insert(out.begin(), static_cast<char>(0x80 | (code & 0x3f)));
  return static_cast<char>((0xff00 >> (out.size() + 1)) | code) + out;
}

TEST(Printable, EscapesWhatReordersTextOrIsNotSeen) {
  EXPECT_EQ(text::printable("a" + utf8(0x202e) + "b"), "a\\xe2\\x80\\xaeb");
  for (const std::uint32_t bidi :
       {0x61cU, 0x200eU, 0x200fU, 0x202aU, 0x202bU, 0x202cU, 0x202dU, 0x202eU, 0x2066U, 0x2067U, 0x2068U, 0x2069U})
    EXPECT_EQ(text::printable(utf8(bidi))[0], '\\') << std::hex << bidi;
  for (const std::uint32_t unseen :
       {0xadU, 0x200bU, 0x200dU, 0x2028U, 0x2029U, 0x2060U, 0x3164U, 0xfe0fU, 0xfeffU, 0xfff9U, 0xe0001U, 0xe0041U, 0xe01efU})
    EXPECT_EQ(text::printable(utf8(unseen))[0], '\\') << std::hex << unseen;
  for (const std::uint32_t seen :
       {0xacU, 0xaeU, 0x600U, 0x61bU, 0x200aU, 0x2010U, 0x2027U, 0x202fU, 0x205fU, 0x2070U, 0xfffdU, 0x1f600U, 0xdfffeU, 0x10fffdU})
    EXPECT_EQ(text::printable(utf8(seen)), utf8(seen)) << std::hex << seen;
}

TEST(Printable, KnowsTheCodePointOfEveryCharacter) {
  for (std::uint32_t code = 0; code <= 0x10ffff; ++code) {
    if (code >= 0xd800 && code < 0xe000) continue;
    const std::string character = utf8(code);
    ASSERT_EQ(text::utf8_length(character), character.size()) << std::hex << code;
    ASSERT_EQ(text::code_point(character), code);
  }
}

TEST(Printable, CutsLongNamesBetweenCharacters) {
  EXPECT_EQ(text::printable(std::string(256, 'a')), std::string(256, 'a')) << "as long as it may be";
  EXPECT_EQ(text::printable(std::string(257, 'a')), std::string(256, 'a') + "…");
  EXPECT_EQ(text::printable("abcdef", 3), "abc…");
  EXPECT_EQ(text::printable("", 0), "");
  std::string wide;
  for (int i = 0; i < 1000; ++i) wide += "\xe2\x82\xac";
  std::string_view cut = wide = text::printable(wide);
  EXPECT_LE(cut.size(), 256U + 3 + 3);
  for (; !cut.empty(); cut.remove_prefix(text::utf8_length(cut))) ASSERT_GT(text::utf8_length(cut), 0U);
}

TEST(Printable, HoldsNoControlCharacterWhateverComesIn) {
  Random random(berth::testing::seed());
  for (int i = 0; i < 20'000; ++i) {
    std::string name;
    for (std::uint64_t length = random.below(12); length > 0; --length) name += static_cast<char>(random.below(256));
    const std::string safe = text::printable(name);
    std::string_view rest = safe;
    while (!rest.empty()) {
      const std::size_t length = text::utf8_length(rest);
      ASSERT_GT(length, 0U) << "not UTF-8";
      const auto first = static_cast<unsigned char>(rest[0]);
      ASSERT_TRUE(first >= 0x20 && first != 0x7f && !(first == 0xc2 && static_cast<unsigned char>(rest[1]) < 0xa0));
      rest.remove_prefix(length);
    }
  }
}

}  // namespace
