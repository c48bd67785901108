// SPDX-License-Identifier: Apache-2.0
#include <chrono>

#include "base/text.h"
#include "berth/base/dtype.h"
#include "berth/device/device.h"
#include "fuzz/target.h"
#include "fuzz/words.h"
#include "record/check_words.h"

// The words of the command line and the environment: byte counts (as in BERTH_LIMIT, BERTH_TRACE_LIMIT, BERTH_SIM_CAPACITY and
// BERTH_SIM_PAGE), times, lists of words (BERTH_CHECK), dtypes, devices. What a word was read as is written as a word of the same
// meaning. BERTH_THREADS and BERTH_STACK_DEPTH are each one std::from_chars, and what they say is of the whole process.
namespace berth::testing::fuzz {
namespace {

using namespace internal::base;

void byte_count(std::string_view word) {
  std::uint64_t count = 0;
  std::uint64_t again = 0;
  if (!text::parse_bytes(word, count)) return;
  require(text::parse_bytes(std::to_string(count), again) && again == count, "a count in digits is that count");
  require(!text::bytes(count).empty(), "a count is written for people");
}

void time(std::string_view word) {
  std::chrono::milliseconds read{};
  std::chrono::milliseconds again{};
  if (!text::parse_duration(word, read)) return;
  require(text::parse_duration(text::duration(read), again) && again == read, "a time is written without loss");
}

bool is_bare(unsigned char byte) { return byte < 0x20 || byte == 0x7f; }

void name(std::string_view word) {
  const std::string shown = text::printable(word);
  for (const char byte : shown) require(!is_bare(static_cast<unsigned char>(byte)), "a name that is shown has no control characters");
  for (std::size_t at = 0; at < shown.size();) {
    const std::size_t length = text::utf8_length(std::string_view(shown).substr(at));
    require(length > 0, "a name that is shown is UTF-8");
    at += length;
  }
}

void list(std::string_view words) {
  std::string again;
  bool is_first = true;
  for (std::string_view left = words; !left.empty(); is_first = false) {
    const std::string_view word = internal::record::take_word(left);
    require(internal::record::has_word(words, word), "a list has each of its words");
    require(word.find(',') == word.npos, "a word has no comma");
    again += (is_first ? "" : ",") + std::string(word);
  }
  require(again == words || again + ',' == words, "the words are the whole list");
}

// The first byte says what the rest is read as by those that throw.
void run(std::string_view bytes) {
  Draw draw(bytes);
  const std::uint8_t kind = draw.below(2);
  const std::string_view word = draw.rest();
  byte_count(word);
  time(word);
  name(word);
  list(word);
  if (kind == 0) {
    const DType dtype = parse_dtype(word);
    require(parse_dtype(to_string(dtype)) == dtype, "a dtype's name is its name");
  } else {
    const Device device{std::string(word)};
    require(Device(device.to_string()) == device, "a device's name is its name");
  }
}

const Registered words({.name = "words",
                        .run = run,
                        .words = text_words({"KiB",     "GiB",           "M",    "never",     "ms",     "min",   "h",      "f32",
                                             "bf16",    "float8_e4m3fn", "<f4",  "complex64", "cpu",    "cuda:", "abort,", "zero,",
                                             "streams", "guard=16",      "sim:", "pinned",    "shared", ":",     "."})});

}  // namespace
}  // namespace berth::testing::fuzz
