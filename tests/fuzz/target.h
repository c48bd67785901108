// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "base/random.h"

// A fuzz target: what must hold for any bytes from outside. Each file of tests/fuzz/targets/ registers one:
//
//     void run(std::string_view bytes) {
//       const Graph graph = read_graph_text(bytes);          // an Error: the bytes are refused, as is their right
//       require(written(graph) == written(read_again(graph)), "what is accepted is read again equal");
//     }
//     const Registered graph_text({.name = "graph_text", .run = run});
//
// It is built twice. The program fuzzer has libFuzzer around all of them (-DBERTH_FUZZ=ON, scripts/fuzz). In every build the
// test Fuzz.Name runs each file of tests/fuzz/corpus/NAME, and mutations of them. To add one: its file, its line in
// tests/CMakeLists.txt, and at least one seed in its folder of the corpus. A thread at a time.
namespace berth::testing::fuzz {

using internal::base::Random;

// An invariant that does not hold.
struct Finding {
  std::string what;
};
inline void require(bool holds, std::string_view invariant) {
  if (!holds) throw Finding{std::string(invariant)};
}

// Changes a few bytes anywhere, knowing nothing of them.
using Change = std::function<std::string(std::string bytes)>;

struct Target {
  std::string_view name;                // of the program, and of the folder of the corpus
  void (*run)(std::string_view bytes);  // throws Error: refused
  // Changes an input of a format with sums, lengths or offsets, and corrects these, so that the rest is parsed.
  std::string (*mutate)(Random& random, std::string bytes, const Change& change) = nullptr;
  std::vector<std::string_view> words = {};  // that the format is made of
};

// What runs the targets takes each of them, before main: tests/fuzz/fuzz_test.cc, or tests/fuzz/libfuzzer.cc.
void take(const Target& target);
class Registered {
 public:
  explicit Registered(const Target& target) { take(target); }
};

// Runs it. True: accepted. Throws Finding for a broken invariant, an Error that does not explain itself, and any other
// exception.
bool run(const Target& target, std::string_view bytes);

// Mutates an input by `change`, the words of the format, and what knows its structure.
std::string mutated(const Target& target, Random& random, std::string bytes, const Change& change);
// A change where there is no libFuzzer. `other` is another input, to take parts from.
std::string changed(Random& random, std::string bytes, std::string_view other);

// Numbers and bytes taken from an input, for targets whose input is no text: zeros when it is at its end.
class Draw {
 public:
  explicit Draw(std::string_view from) : from_(from) {}

  bool empty() const noexcept { return from_.empty(); }
  template <class T>
  T number() {
    T value{};
    const std::string_view taken = bytes(sizeof value);
    taken.copy(reinterpret_cast<char*>(&value), taken.size());
    return value;
  }
  std::uint8_t byte() { return number<std::uint8_t>(); }
  std::uint8_t below(std::uint8_t bound) { return static_cast<std::uint8_t>(byte() % bound); }
  std::string_view bytes(std::size_t most) {
    const std::string_view taken = from_.substr(0, most);
    from_.remove_prefix(taken.size());
    return taken;
  }
  std::string_view rest() { return bytes(from_.size()); }

 private:
  std::string_view from_;
};

}  // namespace berth::testing::fuzz
