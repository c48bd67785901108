// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <time.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <iostream>
#include <memory>
#include <new>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "berth/berth.h"
#include "berth/extend.h"

// What the benchmarks of the pool have in common: the two allocators, whose blocks are aligned to 64 bytes, a
// clock, and random sizes.
namespace berth::bench {

class PoolMemory {
 public:
  using Handle = Block;
  Handle take(std::size_t bytes) { return pool_->allocate({.bytes = bytes}); }
  void drop(const Handle& handle) noexcept { pool_->deallocate(handle); }
  static void* address(const Handle& handle) noexcept { return handle.data; }

 private:
  std::shared_ptr<Allocator> pool_ = pool("cpu");
};

class MallocMemory {
 public:
  using Handle = void*;
  Handle take(std::size_t bytes) {
    void* const data = std::aligned_alloc(kAlignment, (bytes + kAlignment - 1) / kAlignment * kAlignment);
    if (data == nullptr) [[unlikely]]
      throw std::bad_alloc();
    return data;
  }
  void drop(Handle handle) noexcept { std::free(handle); }
  static void* address(Handle handle) noexcept { return handle; }

 private:
  static constexpr std::size_t kAlignment = 64;
};

// Keeps the compiler from optimizing the pointer away.
inline void keep(const void* pointer) noexcept { asm volatile("" ::"r"(pointer) : "memory"); }

inline double now_ns() {
  const auto since = std::chrono::steady_clock::now().time_since_epoch();
  return static_cast<double>(std::chrono::duration_cast<std::chrono::nanoseconds>(since).count());
}

// CPU time of the calling thread.
inline double thread_cpu_ns() {
  timespec used{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &used);
  return static_cast<double>(used.tv_sec) * 1e9 + static_cast<double>(used.tv_nsec);
}

struct Sizes {
  std::size_t least = 0;
  std::size_t most = 0;
};

class Chance {
 public:
  explicit Chance(std::uint64_t seed = 20240229) : bits_(seed) {}
  std::size_t below(std::size_t end) { return static_cast<std::size_t>((static_cast<unsigned __int128>(bits_()) * end) >> 64U); }
  // Log-uniform: every power of two is equally likely.
  std::size_t size(Sizes sizes) {
    if (sizes.least == sizes.most) return sizes.least;
    const double share = static_cast<double>(bits_() >> 11U) * 0x1p-53;
    return static_cast<std::size_t>(static_cast<double>(sizes.least) *
                                    std::exp2(share * std::log2(static_cast<double>(sizes.most) / static_cast<double>(sizes.least))));
  }

 private:
  std::mt19937_64 bits_;
};

// ---- The command line: [--strategy pool|malloc] [--only FIGURE]... [--quick].

struct Command {
  std::string strategy = "pool";
  std::vector<std::string> only;
  bool quick = false;

  bool wants(std::string_view figure) const { return only.empty() || std::ranges::find(only, figure) != only.end(); }
};

inline bool read_arguments(int argc, char** argv, Command& command) {
  for (int i = 1; i < argc; ++i) {
    const std::string_view word = argv[i];
    const bool has_value = i + 1 < argc;
    if (word == "--quick") {
      command.quick = true;
    } else if (word == "--strategy" && has_value) {
      command.strategy = argv[++i];
    } else if (word == "--only" && has_value) {
      command.only.emplace_back(argv[++i]);
    } else {
      return false;
    }
  }
  return command.strategy == "pool" || command.strategy == "malloc";
}

// Prints what `write(command, json)` writes as one JSON object.
template <class Write>
int bench_main(int argc, char** argv, std::string_view name, Write write) {
  Command command;
  if (!read_arguments(argc, argv, command)) {
    std::cerr << "usage: " << name << " [--strategy pool|malloc] [--only FIGURE]... [--quick]\n";
    return 2;
  }
  JsonWriter json(JsonWriter::Style::pretty);
  json.begin_object();
  write(command, json);
  json.end_object();
  std::cout << json.take() << '\n';
  return 0;
}

}  // namespace berth::bench
