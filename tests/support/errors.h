// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gtest/gtest.h>

#include <cstddef>
#include <functional>
#include <string>
#include <vector>

#include "berth/base/error.h"

// Asserts that a statement throws a given class of error with a given code, and that its message is one a
// person can act on.
#define EXPECT_ERROR(statement, error_class, expected_code)                                           \
  do {                                                                                                \
    bool berth_thrown = false;                                                                        \
    try {                                                                                             \
      statement;                                                                                      \
    } catch (const error_class& error) {                                                              \
      berth_thrown = true;                                                                            \
      EXPECT_EQ(::berth::to_string(error.code()), ::berth::to_string(expected_code)) << error.what(); \
      EXPECT_FALSE(error.asked().empty()) << error.what();                                            \
      EXPECT_FALSE(error.why().empty()) << error.what();                                              \
      EXPECT_FALSE(error.help().empty()) << error.what();                                             \
    }                                                                                                 \
    EXPECT_TRUE(berth_thrown) << "no " #error_class " from: " #statement;                             \
  } while (false)

namespace berth::testing {

// What the error of an attempt says would help.
inline std::string help_of(const std::function<void()>& attempt) {
  try {
    attempt();
  } catch (const Error& error) {
    return error.help();
  }
  return "no error";
}

// Whether a text is as it should be, where … stands for anything.
inline bool is_like(const std::string& text, const std::string& expected) {
  const std::string anything = "…";
  std::size_t at = 0;
  for (std::size_t from = 0;;) {
    const std::size_t to = expected.find(anything, from);
    const std::string piece = expected.substr(from, to == std::string::npos ? to : to - from);
    const bool is_last = to == std::string::npos;
    at = is_last && from != 0 ? (text.ends_with(piece) ? text.size() - piece.size() : std::string::npos) : text.find(piece, at);
    if (at == std::string::npos || (from == 0 && at != 0)) return false;
    at += piece.size();
    if (is_last) return at == text.size();
    from = to + anything.size();
  }
}

// A mistake, the help that its error gives (… stands for what is computed), and that help followed.
struct HelpRow {
  std::string help;
  std::function<void()> mistake;
  std::function<void()> followed;
};

inline void follow(const std::vector<HelpRow>& rows) {
  for (const HelpRow& row : rows) {
    const std::string help = help_of(row.mistake);
    EXPECT_TRUE(is_like(help, row.help)) << help << "\n  is not\n" << row.help;
    EXPECT_EQ(help_of(row.followed), "no error") << "although it did what it was told: " << row.help;
  }
}

}  // namespace berth::testing
