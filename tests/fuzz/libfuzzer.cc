// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <optional>

#include "fuzz/target.h"

// The program fuzz_NAME: libFuzzer, which has the main function, around the one target that is linked with this.
namespace {

using namespace berth::testing::fuzz;

std::optional<Target>& taken() {
  static std::optional<Target> made;
  return made;
}
const Target& target() { return taken().value(); }

std::string_view text_of(const std::uint8_t* data, std::size_t size) { return {reinterpret_cast<const char*>(data), size}; }

}  // namespace

namespace berth::testing::fuzz {
void take(const Target& target) { taken() = target; }
}  // namespace berth::testing::fuzz

extern "C" {

std::size_t LLVMFuzzerMutate(std::uint8_t* data, std::size_t size, std::size_t most);

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);
int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  try {
    run(target(), text_of(data, size));
  } catch (const Finding& finding) {
    std::fprintf(stderr, "fuzz_%s: not true: %s\n", target().name.data(), finding.what.c_str());
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
