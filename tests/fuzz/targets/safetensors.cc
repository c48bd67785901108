// SPDX-License-Identifier: Apache-2.0
#include "base/namespace.h"
#include "berth/base/error.h"
#include "file/file_support.h"
#include "file/judges.h"
#include "fuzz/target.h"
#include "fuzz/words.h"

// Whole safetensors files, read as the format is and lax: what is accepted agrees with a slow parser and the file's size,
// and what the strict reading accepts, the lax one does.
namespace berth::testing::fuzz {
namespace {

void run(std::string_view bytes) {
  const std::string file(bytes);
  const auto lax = judge_safetensors(file, 0, true);
  require(!lax, lax.value_or(""));
  const auto strict = judge_safetensors(file, 0, false);
  require(!strict, strict.value_or(""));
}

// Corrects the length in front, if the header still ends as one.
std::string mutate(Random&, std::string bytes, const Change& change) {
  bytes = change(std::move(bytes));
  const std::size_t end = bytes.rfind('}');
  if (bytes.size() < 8 || end == std::string::npos || end < 8) return bytes;
  return little(end + 1 - 8, 8) + bytes.substr(8);
}

const Registered safetensors({.name = "safetensors",
                              .run = run,
                              .mutate = mutate,
                              .words = json_words({"\"dtype\"", "\"shape\"", "\"data_offsets\"", "\"__metadata__\"", "\"U8\"", "\"F32\"",
                                                   "\"F64\"", "\"BF16\"", "\"F4\"", "\"F8_E8M0\""})});

}  // namespace
}  // namespace berth::testing::fuzz
