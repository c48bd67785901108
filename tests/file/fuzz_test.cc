// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>

#include "base/random.h"
#include "berth/base/error.h"
#include "file/bad_files.h"
#include "file/file_support.h"
#include "file/judges.h"
#include "support/scale.h"

// Damaged files: whatever the input, the result is an Error, or offsets and sizes that are inside the file and
// agree with a slow, obvious parser. The corpus is the table of bad files and the good ones beside them. A
// parser that is given a wrong file size stands for one with a bounds bug, which must be found.
namespace berth::testing {

using namespace internal;
namespace {

using Judge = std::function<Finding(const std::string& bytes)>;

// ---- Damage.

std::string word(Random& random) {
  constexpr const char* kWords[] = {"0",
                                    "1",
                                    "-1",
                                    "4",
                                    "8",
                                    "18446744073709551615",
                                    "9223372036854775808",
                                    "1e3",
                                    "1.0",
                                    "null",
                                    "true",
                                    "{}",
                                    "[]",
                                    "\"\"",
                                    "\"U8\"",
                                    "\"F64\"",
                                    "[",
                                    "]",
                                    "{",
                                    "}",
                                    ",",
                                    ":",
                                    "\\u0000",
                                    "\\ud800",
                                    "..",
                                    "/",
                                    "\"",
                                    "'",
                                    "(",
                                    ")",
                                    "'|O'",
                                    "(1,)",
                                    "dtype",
                                    "shape",
                                    "data_offsets",
                                    "__metadata__",
                                    "\xff"};
  return kWords[random.below(std::size(kWords))];
}

std::string damaged(Random& random, std::string bytes) {
  const std::uint64_t changes = 1 + random.below(3);
  for (std::uint64_t i = 0; i < changes; ++i) {
    const auto at = static_cast<std::size_t>(random.below(bytes.size() + 1));
    switch (random.below(7)) {
      case 0: bytes.insert(at, 1, static_cast<char>(random.below(256))); break;
      case 1: bytes.erase(at, 1 + random.below(4)); break;
      case 2:
        if (at < bytes.size()) bytes[at] = static_cast<char>(random.below(256));
        break;
      case 3: bytes.insert(at, word(random)); break;
      case 4:
        if (at < bytes.size()) bytes[at] = static_cast<char>(bytes[at] + (random.one_in(2) ? 1 : -1));
        break;
      case 5: bytes.resize(at); break;
      default: bytes.insert(at, bytes.substr(static_cast<std::size_t>(random.below(bytes.size() + 1)), 1 + random.below(20))); break;
    }
  }
  return bytes;
}

// Usually corrects the length in front: otherwise nothing after it would be parsed.
std::string with_length(Random& random, std::string bytes) {
  if (bytes.size() < 8 || random.one_in(4)) return bytes;
  const std::size_t end = bytes.rfind("}}", bytes.size());
  const std::size_t length = end == std::string::npos ? bytes.size() - 8 : end + 2 - std::min<std::size_t>(8, end + 2);
  return little(length, 8) + bytes.substr(8);
}

using Damage = std::function<std::string(Random&, const std::string&)>;

// The seeds of the mutations: large files take long, and find little more.
std::vector<std::string> corpus(const std::vector<BadFile>& bad, const std::vector<std::string>& good) {
  std::vector<std::string> seeds;
  for (const BadFile& file : bad) {
    if (file.bytes.size() < 2000) seeds.push_back(file.bytes);
  }
  const std::size_t bad_ones = seeds.size();
  // A fifth of all.
  for (std::size_t i = 0; i < std::max(bad_ones / 4, good.size()); ++i) seeds.push_back(good[i % good.size()]);
  return seeds;
}

Finding judged(const Judge& judge, const std::string& bytes, bool& accepted) {
  try {
    Finding found = judge(bytes);
    accepted = true;
    return found;
  } catch (const Error& error) {
    return std::string_view(error.what()).empty() ? Finding("an error without words") : std::nullopt;
  }
}

void survives(const std::vector<std::string>& seeds, const Damage& damage, const Judge& judge) {
  Random random(seed());
  const std::uint64_t runs = scaled(1'000'000, 2000);
  std::uint64_t accepted = 0;
  bool taken = false;
  for (std::uint64_t i = 0; i < runs; ++i) {
    const std::string bytes = damage(random, seeds[random.below(seeds.size())]);
    taken = false;
    ASSERT_EQ(judged(judge, bytes, taken), std::nullopt) << "run " << i << ": " << bytes;
    accepted += taken ? 1 : 0;
  }
  did(std::to_string(runs) + " inputs, " + std::to_string(accepted) + " accepted");
}

bool is_found(const std::vector<std::string>& seeds, const Damage& damage, const Judge& judge) {
  Random random(seed());
  bool taken = false;
  for (int i = 0; i < 100'000; ++i) {
    if (judged(judge, damage(random, seeds[random.below(seeds.size())]), taken)) return true;
  }
  return false;
}

const Damage kPlain = [](Random& random, const std::string& bytes) { return damaged(random, bytes); };
const Damage kWithLength = [](Random& random, const std::string& bytes) { return with_length(random, damaged(random, bytes)); };

// Each file of the corpus unmodified, of every size; the good ones are accepted.
void all_judged(const std::vector<BadFile>& bad, const std::vector<std::string>& good, const Judge& judge) {
  bool taken = false;
  for (const BadFile& file : bad) EXPECT_EQ(judged(judge, file.bytes, taken), std::nullopt) << file.what;
  for (const std::string& bytes : good) {
    taken = false;
    EXPECT_EQ(judged(judge, bytes, taken), std::nullopt) << bytes;
    EXPECT_TRUE(taken) << bytes;
  }
}

TEST(FileCorpus, Safetensors) {
  for (const bool lax : {false, true})
    all_judged(bad_safetensors(), all_good_safetensors(), [&](const std::string& bytes) { return judge_safetensors(bytes, 0, lax); });
}
TEST(FileCorpus, Indices) {
  for (const bool lax : {false, true})
    all_judged(bad_indices(), all_good_indices(), [&](const std::string& bytes) { return judge_index(bytes, lax); });
}
TEST(FileCorpus, Npy) {
  all_judged(bad_npy(), all_good_npy(), [](const std::string& bytes) { return judge_npy(bytes, 0); });
}
TEST(FileCorpus, Npz) {
  all_judged(bad_npz(), all_good_npz(), [](const std::string& bytes) { return judge_npz(bytes, 0); });
}

TEST(FileFuzz, Safetensors) {
  survives(corpus(bad_safetensors(), all_good_safetensors()), kWithLength,
           [](const std::string& bytes) { return judge_safetensors(bytes, 0, false); });
}
TEST(FileFuzz, SafetensorsReadLax) {
  survives(corpus(bad_safetensors(), all_good_safetensors()), kWithLength,
           [](const std::string& bytes) { return judge_safetensors(bytes, 0, true); });
}
TEST(FileFuzz, Indices) {
  survives(corpus(bad_indices(), all_good_indices()), kPlain, [](const std::string& bytes) { return judge_index(bytes, false); });
}
TEST(FileFuzz, IndicesReadLax) {
  survives(corpus(bad_indices(), all_good_indices()), kPlain, [](const std::string& bytes) { return judge_index(bytes, true); });
}
TEST(FileFuzz, Npy) {
  survives(corpus(bad_npy(), all_good_npy()), kPlain, [](const std::string& bytes) { return judge_npy(bytes, 0); });
}
TEST(FileFuzz, Npz) {
  survives(corpus(bad_npz(), all_good_npz()), kPlain, [](const std::string& bytes) { return judge_npz(bytes, 0); });
}

// One byte too many is the smallest possible bounds error; eight is what a parser gets wrong that forgets the
// length in front.
TEST(FileFuzz, APlantedBoundsBugIsFound) {
  for (const std::uint64_t more : {1U, 8U}) {
    EXPECT_TRUE(is_found({good_safetensors()}, kWithLength, [&](const std::string& bytes) {
      return judge_safetensors(bytes, more, false);
    })) << more;
    EXPECT_TRUE(is_found({good_npy()}, kPlain, [&](const std::string& bytes) { return judge_npy(bytes, more); })) << more;
    EXPECT_TRUE(is_found({good_npz()}, kPlain, [&](const std::string& bytes) { return judge_npz(bytes, more); })) << more;
  }
}

}  // namespace
}  // namespace berth::testing
