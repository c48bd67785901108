// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gtest/gtest.h>

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

// A mistake, the help that its error gives, and that help followed.
struct HelpRow {
  std::string help;
  std::function<void()> mistake;
  std::function<void()> followed;
};

inline void follow(const std::vector<HelpRow>& rows) {
  for (const HelpRow& row : rows) {
    EXPECT_EQ(help_of(row.mistake), row.help);
    EXPECT_EQ(help_of(row.followed), "no error") << "although it did what it was told: " << row.help;
  }
}

}  // namespace berth::testing
