// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "fuzz/target.h"
#include "support/scale.h"

// Every target of tests/fuzz/targets/ on every file of its corpus, and on mutations of them, in any build. The fuzzers
// themselves look farther: scripts/fuzz.
namespace berth::testing {
namespace {

using fuzz::Target;
using Inputs = std::vector<std::string>;

Inputs corpus_of(const Target& target) {
  std::vector<std::filesystem::path> files;
  for (const auto& file : std::filesystem::directory_iterator("tests/fuzz/corpus/" + std::string(target.name)))
    files.push_back(file.path());
  std::ranges::sort(files);  // mutations are drawn by a seed, so the order matters
  Inputs all;
  for (const std::filesystem::path& file : files) {
    std::ostringstream bytes;
    bytes << std::ifstream(file, std::ios::binary).rdbuf();
    all.push_back(bytes.str());
  }
  return all;
}

// Bytes as they can be pasted into a terminal, to make a file of them.
std::string escaped(std::string_view bytes) {
  std::string out;
  char two[sizeof "\\xff"];
  for (const char byte : bytes) {
    (void)std::snprintf(two, sizeof two, "\\x%02x", static_cast<unsigned>(static_cast<unsigned char>(byte)));
    out += two;
  }
  return out;
}

// Whether it is accepted; fails the test for a finding.
bool is_accepted(const Target& target, std::string_view bytes) {
  try {
    return fuzz::run(target, bytes);
  } catch (const fuzz::Finding& finding) {
    ADD_FAILURE() << finding.what << "\nprintf '" << escaped(bytes) << "' >found";
    return false;
  }
}

class Fuzz : public ::testing::Test {
 public:
  explicit Fuzz(const Target& target) : target_(target) {}
  void TestBody() override {
    const Inputs corpus = corpus_of(target_);
    ASSERT_FALSE(corpus.empty()) << "a target has seeds";
    const auto accepted = std::ranges::count_if(corpus, [&](const std::string& bytes) { return is_accepted(target_, bytes); });
    EXPECT_GT(accepted, 0) << "a corpus of which nothing is accepted tests little";
    Random random(seed());
    const std::uint64_t runs = scaled(100'000, 500);
    const auto any = [&]() -> const std::string& { return corpus[random.below(corpus.size())]; };
    std::uint64_t taken = 0;
    for (std::uint64_t i = 0; i < runs && !HasFailure(); ++i) {
      const fuzz::Change change = [&](std::string bytes) { return fuzz::changed(random, std::move(bytes), any()); };
      taken += is_accepted(target_, fuzz::mutated(target_, random, any(), change));
    }
    did(std::to_string(corpus.size()) + " files, " + std::to_string(accepted) + " accepted; " + std::to_string(runs) + " mutations, " +
        std::to_string(taken) + " accepted");
  }

 private:
  using Random = fuzz::Random;
  const Target target_;
};

// "segment_headers" as the name of a test: SegmentHeaders.
std::string test_name(std::string_view name) {
  std::string made;
  for (std::size_t i = 0; i < name.size(); ++i) {
    if (name[i] == '_') continue;
    const bool starts = i == 0 || name[i - 1] == '_';
    made += starts ? static_cast<char>(std::toupper(static_cast<unsigned char>(name[i]))) : name[i];
  }
  return made;
}

}  // namespace

void fuzz::take(const Target& target) {
  ::testing::RegisterTest("Fuzz", test_name(target.name).c_str(), nullptr, nullptr, __FILE__, __LINE__,
                          [target]() -> Fuzz* { return new Fuzz(target); });
}

}  // namespace berth::testing
