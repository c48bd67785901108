// SPDX-License-Identifier: Apache-2.0
#include "cli/bindings.h"
#include "berth/base/error.h"
#include "fuzz/target.h"
#include "fuzz/words.h"

// What --bind says: sizes of symbolic dimensions, none of them negative, each name once.
namespace berth::testing::fuzz {
namespace {

void run(std::string_view bytes) {
  std::vector<std::string> texts;
  for (std::size_t at = 0; at <= bytes.size();) {
    const std::size_t end = std::min(bytes.find(',', at), bytes.size());
    texts.emplace_back(bytes.substr(at, end - at));
    at = end + 1;
  }
  const internal::cli::Bindings read = internal::cli::parse_bindings(texts);
  std::vector<std::string> again;
  for (const auto& [name, size] : read) {
    require(!name.empty() && size >= 0, "a dimension has a name, and a size that is not negative");
    again.push_back(name + '=' + std::to_string(size));
  }
  require(internal::cli::parse_bindings(again) == read, "what was read is written and read again the same");
}

const Registered bindings({.name = "bindings", .run = run, .words = text_words({"=", "batch=8", "=="})});

}  // namespace
}  // namespace berth::testing::fuzz
