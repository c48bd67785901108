// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string_view>
#include <vector>

#include "fuzz/target.h"

// The program fuzzer: libFuzzer, which has the main function, around the target that --target=NAME names.
namespace {

using namespace berth::testing::fuzz;

std::vector<Target>& taken() {
  static std::vector<Target> made;
  return made;
}

std::string_view chosen;

const Target& target() {
  static const Target& found = [&]() -> const Target& {
    const auto named = std::ranges::find(taken(), chosen, &Target::name);
    if (named != taken().end()) return *named;
    std::fprintf(stderr, "fuzzer: say --target=NAME; a NAME is that of a file of tests/fuzz/targets/\n");
    std::exit(2);
  }();
  return found;
}

std::string_view text_of(const std::uint8_t* data, std::size_t size) { return {reinterpret_cast<const char*>(data), size}; }

}  // namespace

namespace berth::testing::fuzz {
void take(const Target& target) { taken().push_back(target); }
}  // namespace berth::testing::fuzz

extern "C" {

std::size_t LLVMFuzzerMutate(std::uint8_t* data, std::size_t size, std::size_t most);

// libFuzzer takes what starts with two dashes for ours.
int LLVMFuzzerInitialize(int* count, char*** arguments);
int LLVMFuzzerInitialize(int* count, char*** arguments) {
  constexpr std::string_view kOption = "--target=";
  for (const std::string_view argument : std::vector<const char*>(*arguments, *arguments + *count)) {
    if (argument.starts_with(kOption)) chosen = argument.substr(kOption.size());
  }
  (void)target();
  return 0;
}

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);
int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  try {
    run(target(), text_of(data, size));
  } catch (const Finding& finding) {
    std::fprintf(stderr, "%s: not true: %s\n", target().name.data(), finding.what.c_str());
    std::abort();
  }
  return 0;
}

std::size_t LLVMFuzzerCustomMutator(std::uint8_t* data, std::size_t size, std::size_t most, unsigned int seed);
std::size_t LLVMFuzzerCustomMutator(std::uint8_t* data, std::size_t size, std::size_t most, unsigned int seed) {
  Random random(seed);
  const Change change = [most](std::string bytes) {
    const std::size_t before = std::min(bytes.size(), most);
    bytes.resize(most);
    bytes.resize(LLVMFuzzerMutate(reinterpret_cast<std::uint8_t*>(bytes.data()), before, most));
    return bytes;
  };
  const std::string made = mutated(target(), random, std::string(text_of(data, size)), change);
  const std::size_t kept = std::min(made.size(), most);
  std::memcpy(data, made.data(), kept);
  return kept;
}

}  // extern "C"
