// SPDX-License-Identifier: Apache-2.0
#include "html/escape.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

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
  const std::string hostile = "</script><!--<script>\x01\xff\"\\";
  JsonWriter json;
  json.begin_array().value(hostile).end_array();
  const std::string plain = json.take();
  const std::string safe = html::in_script(plain);
  EXPECT_EQ(safe.find('<'), std::string::npos) << safe;
  EXPECT_EQ(nlohmann::json::parse(safe), nlohmann::json::parse(plain));
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
