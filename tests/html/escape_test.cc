// SPDX-License-Identifier: Apache-2.0
#include "html/escape.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "base/text.h"
#include "berth/base/json.h"
#include "html/number.h"

namespace berth::testing {

using namespace internal;
namespace {

TEST(Escape, LeavesNothingThatMeansSomethingToAPage) {
  EXPECT_EQ(html::escaped("</script><img onerror=\"a('b')\">&"), "&lt;/script&gt;&lt;img onerror=&quot;a(&#39;b&#39;)&quot;&gt;&amp;");
  EXPECT_EQ(html::escaped("größe ×2"), "größe ×2");
  EXPECT_EQ(html::escaped(""), "");
}

TEST(Escape, ShowsControlCharactersAndBrokenBytes) {
  EXPECT_EQ(html::escaped(std::string_view("a\0b\n\x1b\xff\xc2\x85", 8)), "a\\x00b\\x0a\\x1b\\xff\\xc2\\x85");
}

TEST(Escape, ReplacesWhatUtf8HoldsAndXmlDoesNot) {
  EXPECT_EQ(html::escaped("a\xef\xbf\xbf<\xef\xbf\xbe"), "a\xef\xbf\xbd&lt;\xef\xbf\xbd");
}

TEST(Escape, CutsWhatIsTooLongForATip) {
  const std::string cut = html::escaped(std::string(100'000, '<'), 10);
  EXPECT_EQ(cut, "&lt;&lt;&lt;&lt;&lt;&lt;&lt;&lt;&lt;&lt;…");
}

TEST(Escape, JsonInAScriptIsTheSameDataWithoutABracket) {
  const std::string hostile = "</script><!--<script>\xff\"\\";
  JsonWriter json;
  json.begin_array().value(hostile).end_array();
  const std::string plain = json.take();
  const std::string safe = html::in_script(plain);
  EXPECT_EQ(safe.find('<'), std::string::npos) << safe;
  EXPECT_EQ(nlohmann::json::parse(safe), nlohmann::json::parse(plain));
}

// A script shows names as they are: the escapes are in the data.
TEST(Escape, JsonInAScriptShowsWhatIsUnseen) {
  const auto shown = [](std::string_view name) {
    JsonWriter json;
    json.begin_object().member(name, name).end_object();
    const auto parsed = nlohmann::json::parse(html::in_script(json.take()));
    EXPECT_EQ(parsed.begin().key(), parsed.begin().value());
    return parsed.begin().value().get<std::string>();
  };
  EXPECT_EQ(shown("abc\xe2\x80\xaetxt.exe"), "abc\\xe2\\x80\\xaetxt.exe");
  EXPECT_EQ(shown("\xe2\x81\xa6x\xe2\x81\xa9"), "\\xe2\\x81\\xa6x\\xe2\\x81\\xa9");
  EXPECT_EQ(shown(std::string_view("\x00\x1b[2J\n\t\x7f\xc2\x85", 10)), "\\x00\\x1b[2J\\x0a\\x09\\x7f\\xc2\\x85");
  EXPECT_EQ(shown("größe \"×2\" C:\\new\\u202e"), "größe \"×2\" C:\\new\\u202e") << "backslashes are no escapes of ours";
  for (std::uint32_t c = 0; c < 0x800; ++c) {
    const std::string name = c < 0x80 ? std::string(1, static_cast<char>(c))
                                      : std::string{static_cast<char>(0xc0 | c >> 6), static_cast<char>(0x80 | (c & 0x3f))};
    EXPECT_EQ(shown(name), text::printable(name)) << c;
  }
  EXPECT_EQ(shown("\xf3\xa0\x80\x81 😀"), "\\xf3\\xa0\\x80\\x81 😀") << "of two units";
  EXPECT_EQ(html::in_script("{\n  \"a\": [1,\t2]\n}"), "{\n  \"a\": [1,\t2]\n}");
}

TEST(Decimal, HasNoMoreDigitsThanItNeeds) {
  EXPECT_EQ(html::decimal(0, 2), "0");
  EXPECT_EQ(html::decimal(-0.001, 2), "0");
  EXPECT_EQ(html::decimal(100, 0), "100");
  EXPECT_EQ(html::decimal(1.5, 2), "1.5");
  EXPECT_EQ(html::decimal(1.0 / 3, 2), "0.33");
  EXPECT_EQ(html::decimal(1e300, 2).size(), 301U);
  EXPECT_EQ(html::decimal(std::numeric_limits<double>::infinity(), 2), "?");
}

}  // namespace
}  // namespace berth::testing
