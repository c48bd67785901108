// SPDX-License-Identifier: Apache-2.0
#include <array>
#include <chrono>

#include "berth/base/error.h"
#include "fuzz/target.h"
#include "fuzz/words.h"
#include "memory/option_text.h"

// The options of a strategy, as BERTH_CPU_ALLOCATOR has them: what is accepted names known options alone, each once.
namespace berth::testing::fuzz {
namespace {

using internal::memory::read_options;
using internal::memory::TextOption;

struct Options {
  std::size_t limit = 1;
  std::chrono::milliseconds decay{1};
  double factor = 1;
  std::uint32_t count = 1;
  friend bool operator==(const Options&, const Options&) = default;
};

Options read(std::string_view text) {
  Options made;
  const std::array<TextOption, 4> known = {
      TextOption{.name = "limit", .bytes = &made.limit}, TextOption{.name = "decay", .time = &made.decay},
      TextOption{.name = "factor", .number = &made.factor}, TextOption{.name = "count", .count = &made.count}};
  read_options("fuzz", text, known, "limit=8GiB");
  return made;
}

void run(std::string_view bytes) {
  const Options made = read(bytes);
  require(made == read(bytes), "two readings agree");
  require(made.factor == made.factor, "a number is a number");
  require((made == Options{}) || bytes.find('=') != std::string_view::npos, "what has no value keeps its own");
}

const Registered allocator_options({.name = "allocator_options",
                                    .run = run,
                                    .words = text_words({"limit=", "decay=", "factor=", "count=", "8GiB", "5s", "never", "1.05", "nan",
                                                         "inf", "0x1p3", "e9", "="})});

}  // namespace
}  // namespace berth::testing::fuzz
