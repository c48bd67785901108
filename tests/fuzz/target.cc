// SPDX-License-Identifier: Apache-2.0
#include "fuzz/target.h"

#include <simdjson.h>

#include <algorithm>
#include <cctype>
#include <exception>
#include <utility>

#include "berth/base/error.h"
#include "berth/base/json.h"

namespace berth::testing::fuzz {

namespace {

bool is_json(const std::string& text) {
  static simdjson::dom::parser parser;
  return parser.parse(text).error() == simdjson::SUCCESS;
}

void judge(const Error& error) {
  require(!error.why().empty() && !error.help().empty(), "an error says why, and what would help");
  require(is_json(to_json(error)), "an error about any input is valid JSON");
}

}  // namespace

bool run(const Target& target, std::string_view bytes) {
  try {
    target.run(bytes);
    return true;
  } catch (const Error& error) {
    judge(error);
    return false;
  } catch (const std::exception& other) {
    throw Finding{std::string("an exception that is no Error of berth: ") + other.what()};
  }
}

namespace {

void change_once(Random& random, std::string& bytes, std::string_view other) {
  const auto at = static_cast<std::size_t>(random.below(bytes.size() + 1));
  const auto from = static_cast<std::size_t>(random.below(other.size() + 1));
  const auto count = static_cast<std::size_t>(1 + random.below(random.one_in(8) ? 64 : 4));
  switch (random.below(7)) {
    case 0: bytes.insert(at, 1, static_cast<char>(random.below(256))); break;
    case 1: bytes.erase(at, count); break;
    case 2: bytes.insert(at, other.substr(from, count)); break;
    case 3: bytes.replace(at, count, other.substr(from, count)); break;
    case 4: bytes.insert(at, bytes.substr(static_cast<std::size_t>(random.below(bytes.size() + 1)), count)); break;
    case 5:
      if (at < bytes.size()) bytes[at] = static_cast<char>(random.below(256));
      break;
    default:
      if (at < bytes.size()) bytes[at] = static_cast<char>(bytes[at] + (random.one_in(2) ? 1 : -1));
  }
}

// In the place of as many bytes, of none, or of a run of letters or digits.
std::string with_word(Random& random, std::string bytes, std::string_view word) {
  const auto at = static_cast<std::size_t>(random.below(bytes.size() + 1));
  std::size_t end = at;
  if (random.one_in(2)) {
    while (end < bytes.size() && std::isalnum(static_cast<unsigned char>(bytes[end])) != 0) ++end;
  } else if (random.one_in(2)) {
    end = std::min(bytes.size(), at + word.size());
  }
  return bytes.replace(at, end - at, word);
}

}  // namespace

std::string changed(Random& random, std::string bytes, std::string_view other) {
  for (std::uint64_t left = 1 + random.below(4); left > 0; --left) change_once(random, bytes, other);
  return bytes;
}

std::string mutated(const Target& target, Random& random, std::string bytes, const Change& change) {
  constexpr std::uint64_t kBlind = 8;  // one in so many keeps wrong sums and lengths: they are input too
  if (!target.words.empty() && random.one_in(3))
    return with_word(random, std::move(bytes), target.words[random.below(target.words.size())]);
  if (target.mutate == nullptr || random.one_in(kBlind)) return change(std::move(bytes));
  return target.mutate(random, std::move(bytes), change);
}

}  // namespace berth::testing::fuzz
