// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "support/errors.h"
#include "support/everything.h"

namespace berth::testing {
namespace {

using enum TraceEvent::Operation;

TEST(TextTrace, ReadsLinesWithAndWithoutAHeader) {
  const std::vector<TraceEvent> expected = {{allocate, 7, 4096, 2, 0}, {free, 7, 0, 0, 0}};
  EXPECT_EQ(read_trace("op,id,bytes,stream\na,7,4096,2\nf,7,0,0\n").events, expected);
  EXPECT_EQ(read_trace("a,7,4096,2\nf,7,0,0").events, expected);
  EXPECT_EQ(read_trace("op,id,bytes,stream\r\na,7,4096,2\r\n\r\nf,7,0,0\r\n").events, expected);
  EXPECT_TRUE(read_trace("").events.empty());
}

TEST(TextTrace, AnIdMayBeUsedAgainOnceFreed) {
  const Trace trace = read_trace("a,1,8,0\nf,1,8,0\na,1,16,0\n");
  EXPECT_EQ(trace.events.size(), 3U);
  EXPECT_TRUE(trace.complete);
}

TEST(TextTrace, ReadsTagsWhereTheHeaderNamesThem) {
  const Trace trace = read_trace("op,id,bytes,stream,tag\na,1,8,0,kv\na,2,8,0,a tag, with a comma\r\nf,1,0,0\na,3,8,0,\na,4,8,0,kv\n");
  EXPECT_EQ(trace.words, (std::vector<std::string>{"", "kv", "a tag, with a comma"}));
  EXPECT_EQ(trace.tags, (std::vector<std::uint16_t>{1, 2, 0, 0, 1}));
  EXPECT_TRUE(read_trace("op,id,bytes,stream\na,1,8,0\n").tags.empty());
}

TEST(TextTrace, RefusesMoreTagsThanItCounts) {
  std::string text = "op,id,bytes,stream,tag\n";
  for (int i = 0; i < 65'535; ++i) text += "a," + std::to_string(i) + ",8,0,t" + std::to_string(i) + "\n";
  EXPECT_EQ(read_trace(text).words.size(), 65'536U);
  text += "a,70000,8,0,one more\n";
  EXPECT_THROW(read_trace(text), FormatError);
}

TEST(TextTrace, ReadsWhatTheTraceAdaptorWrites) {
  const auto traced = trace(direct("cpu"));
  const Block block = traced->allocate({.bytes = 100});
  traced->deallocate(block);
  const Trace read = read_trace(traced->to_csv());
  ASSERT_EQ(read.events.size(), 2U);
  EXPECT_EQ(read.events[0].bytes, 100U);
  EXPECT_EQ(read.events[1].serial, block.serial);
  EXPECT_TRUE(read.tags.empty());
}

TEST(TextTrace, ReadsTheTagsThatTheTraceAdaptorWrites) {
  const auto traced = trace(direct("cpu"));
  const Block odd = traced->allocate({.bytes = 100, .tag = "two\nlines, and a comma"});
  const Block none = traced->allocate({.bytes = 100});
  traced->deallocate(odd);
  traced->deallocate(none);
  const Trace read = read_trace(traced->to_csv());
  EXPECT_EQ(read.words, (std::vector<std::string>{"", "two\\x0alines, and a comma"}));
  EXPECT_EQ(read.tags, (std::vector<std::uint16_t>{1, 0, 0, 0}));
}

// Each error names the line at fault.
TEST(TextTrace, RefusesABadLineAndSaysWhich) {
  const std::pair<const char*, const char*> bad[] = {
      {"x,1,8,0\n", "1"},
      {"a,1,8,0\nop,id,bytes,stream\n", "2"},
      {"a,1,8,0\na,2,8\n", "2"},
      {"a,1,8,0,9\n", "1"},
      {"a,1,8,0,\n", "1"},
      {"a,,8,0\n", "1"},
      {"a,1,-8,0\n", "1"},
      {"a,1, 8,0\n", "1"},
      {"a,1,8.5,0\n", "1"},
      {"a,1,99999999999999999999999,0\n", "1"},
      {"a,1,9223372036854775808,0\n", "1"},
      {"\n\na,1,8,0\na,1,8,0\n", "4"},
      {"a,1,8,0\nf,2,8,0\n", "2"},
      {"a,1,8,0\nf,1,8,0\nf,1,8,0\n", "3"},
      {"allocate,1,8,0", "1"},
      {"\x1f\x8b\x08 packed", "1"},
  };
  for (const auto& [text, line] : bad) {
    EXPECT_ERROR(read_trace(text, "bad.csv"), FormatError, ErrorCode::format_error);
    try {
      read_trace(text, "bad.csv");
    } catch (const FormatError& error) {
      EXPECT_EQ(error.fact("line"), line) << error.what();
      EXPECT_NE(std::string(error.what()).find("bad.csv"), std::string::npos) << error.what();
    }
  }
}

}  // namespace
}  // namespace berth::testing
