// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <functional>
#include <string>

#include "berth/base/units.h"
#include "berth/plan.h"
#include "cli/samples/model_writer.h"
#include "support/errors.h"
#include "support/heap_faults.h"

// Reading takes at most 40 times the bytes, or 256 MiB where that is more: whatever the bytes describe is refused
// before it is built. The small rooms below stand for large files.
namespace berth {
namespace {

using namespace std::chrono_literals;

std::string repeated(std::string_view piece, std::size_t count) {
  std::string out;
  out.reserve(piece.size() * count);
  for (std::size_t i = 0; i < count; ++i) out += piece;
  return out;
}

std::string length_of(std::size_t bytes) {
  std::string out;
  for (; bytes >= 128; bytes >>= 7) out += static_cast<char>(bytes | 128);
  return out + static_cast<char>(bytes);
}
std::string field(char tag, const std::string& bytes) { return tag + length_of(bytes.size()) + bytes; }

// A model whose graph is these bytes.
std::string model_of(const std::string& graph) { return "\x08\x07" + field('\x3a', graph); }

std::string numbered(std::size_t count, const std::function<std::string(std::string)>& line) {
  std::string out;
  for (std::size_t i = 0; i < count; ++i) out += line(std::to_string(i));
  return out;
}

struct Hostile {
  std::string name;
  std::string bytes;
  bool onnx = false;
};

std::vector<Hostile> hostile_files() {
  constexpr std::size_t kCount = 100'000;
  const std::string constant = field('\x0a', field('\x12', "a") + field('\x22', "ConstantOfShape"));
  return {
      {"empty nodes", model_of(repeated(std::string("\x0a\x00", 2), kCount)), true},
      {"nodes of attributes", model_of(field('\x0a', repeated(std::string("\x2a\x00", 2), kCount))), true},
      {"empty initializers", model_of(repeated(std::string("\x2a\x00", 2), kCount)), true},
      {"empty inputs", model_of(repeated(std::string("\x5a\x00", 2), kCount)), true},
      {"empty value_info", model_of(repeated(std::string("\x6a\x00", 2), kCount)), true},
      {"inputs of a node", model_of(field('\x0a', repeated(std::string("\x0a\x00", 2), kCount))), true},
      {"empty functions", model_of("") + repeated(std::string("\xca\x01\x00", 3), kCount), true},
      {"constants", model_of(repeated(constant, 20'000)), true},
      {"empty values", R"({"berth":"graph","version":1,"values":[{})" + repeated(",{}", kCount) + R"(],"nodes":[]})"},
      {"empty nodes in JSON", R"({"berth":"graph","version":1,"values":[],"nodes":[{"inputs":[],"outputs":[]})" +
                                  repeated(R"(,{"inputs":[],"outputs":[]})", kCount) + "]}"},
      {"short rows", "id,lower,upper,size\n" + numbered(kCount, [](const std::string& i) { return i + ",0,1,1\n"; })},
      {"a time for each row",
       "id,lower,upper,size\n" + numbered(kCount, [](const std::string& i) { return i + "," + i + "0," + i + "1,1\n"; })},
      {"short lines of text", numbered(kCount, [](const std::string& i) { return i + " x||\n"; })},
      {"lines of many outputs", "0 x||" + repeated("1 ", kCount) + "\n"},
  };
}

// Returns the peak of the heap while a file is read, and whether it was refused for its room.
std::pair<std::size_t, bool> read_within(const Hostile& file, std::size_t room) {
  bool refused = false;
  const testing::PeakOfNews heap;
  try {
    if (file.onnx)
      (void)read_onnx(file.bytes, {.allow_unknown = true, .limits = {.memory_bytes = room}});
    else
      (void)read_graph(file.bytes, "hostile", {.memory_bytes = room});
  } catch (const Error& error) {
    refused = error.code() == ErrorCode::limit_exceeded;
  }
  return {static_cast<std::size_t>(heap.peak_bytes()), refused};
}

TEST(ReadLimits, WhatIsBuiltStaysWithinTheRoom) {
  for (const Hostile& file : hostile_files()) {
    const std::size_t room = 40 * file.bytes.size();
    const auto [peak, refused] = read_within(file, room);
    EXPECT_LE(peak, room) << file.name << (refused ? " (refused)" : "");
    RecordProperty(file.name, static_cast<int>(peak / file.bytes.size()));
    const auto [large, refused_again] = read_within(file, 100 * room);
    EXPECT_FALSE(refused_again) << file.name << " takes " << large / file.bytes.size() << " times its bytes";
  }
}

TEST(ReadLimits, TheErrorNamesTheLimitAndTheOption) {
  const std::string model = model_of(repeated(std::string("\x0a\x00", 2), 100'000));
  try {
    (void)read_onnx(model, {.limits = {.memory_bytes = 1_MiB}});
    FAIL();
  } catch (const FormatError& error) {
    EXPECT_EQ(error.code(), ErrorCode::limit_exceeded);
    EXPECT_EQ(error.fact("limit"), "1048576");
    EXPECT_NE(error.help().find("--max-memory"), std::string::npos) << error.what();
  }
}

TEST(ReadLimits, SmallFilesMayTakeMore) {
  const std::string model = model_of(repeated(std::string("\x0a\x00", 2), 10'000));
  EXPECT_GT(read_within({"", model, true}, 0).first, 40 * model.size());
  EXPECT_FALSE(read_within({"", model, true}, 0).second);
}

TEST(ReadLimits, ATimeThatIsTooShortSaysHowLongReadingTakes) {
  const std::string rows = "id,lower,upper,size\n" + numbered(20'000, [](const std::string& i) { return i + ",0,1,1\n"; });
  try {
    (void)read_graph(rows, "rows.csv", {.time = 0s});
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::timeout);
    EXPECT_NE(error.why().find("it takes about"), std::string::npos) << error.what();
    EXPECT_GE(std::stol(std::string(error.fact("needed_ms"))), 1);
  }
}

TEST(ReadLimits, AnIdThatIsThereTwiceIsNamedWithItsLine) {
  const std::string rows = "size,id,lower,upper\n\n" + numbered(5'000, [](const std::string& i) { return "1," + i + ",0,1\n"; });
  try {
    (void)read_graph(rows + "1,77,0,1\n1,78,0,1\n", "rows.csv");
    FAIL();
  } catch (const ArgumentError& error) {
    EXPECT_EQ(error.code(), ErrorCode::duplicate_value);
    EXPECT_EQ(error.fact("line"), "5003");
    EXPECT_EQ(error.fact("value"), "77");
  }
}

}  // namespace
}  // namespace berth
