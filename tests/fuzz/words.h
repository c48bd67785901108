// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <initializer_list>
#include <string_view>
#include <vector>

// Words that mutations insert: those of text formats, numbers at the borders of integers, and the given ones.
namespace berth::testing::fuzz {

inline std::vector<std::string_view> text_words(std::initializer_list<std::string_view> more) {
  std::vector<std::string_view> all = {"0",
                                       "1",
                                       "-1",
                                       "2",
                                       "3",
                                       "7",
                                       "8",
                                       "64",
                                       "255",
                                       "65536",
                                       "4294967295",
                                       "4294967296",
                                       "9223372036854775807",
                                       "9223372036854775808",
                                       "18446744073709551615",
                                       "18446744073709551616",
                                       "1.5",
                                       "1e3",
                                       "-0",
                                       ",",
                                       "\n",
                                       "\r\n",
                                       "\xff",
                                       "\xc3\xa9",
                                       "\xe2\x80\xae"};
  all.insert(all.end(), more);
  return all;
}

inline std::vector<std::string_view> json_words(std::initializer_list<std::string_view> more) {
  std::vector<std::string_view> all = text_words({"null", "true", "false", "{}", "[]", "\"\"", "\"a\"", "{", "}", "[", "]", ":", "\"",
                                                  "\\u0000", "\\ud800", "\"a\":0,", ",{}", ",[]"});
  all.insert(all.end(), more);
  return all;
}

}  // namespace berth::testing::fuzz
