// SPDX-License-Identifier: Apache-2.0
#include <pthread.h>
#include <time.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <stop_token>
#include <string_view>
#include <thread>

#include "plan/pack/exact/exact.h"
#include "plan/pack/hard_instances.h"
#include "plan/pack/parts.h"

// How many hard instances (tests/plan/pack/hard_instances.h) the exact search solves:
//   bench_hard [--count N] [--seconds S] [--held-out] [--each] [--csv FOLDER]
// Each shape has N instances of even numbers, or of odd ones, which are held out: look at these to judge, not to tune.
// An instance is solved when a packing within its answer is found in S seconds of the thread's CPU time.
// --each prints every instance; --csv writes them to files `id,lower,upper,size` instead, for other solvers.
namespace {

using namespace berth::internal::plan;
using namespace berth::testing;

struct Wish {
  std::uint64_t count = 21;
  double seconds = 1;
  bool held_out = false;
  bool each = false;
  const char* folder = nullptr;
};

std::uint64_t number_of(std::uint64_t index, const Wish& wish) { return 2 * index + (wish.held_out ? 1 : 0); }

double cpu_seconds(clockid_t clock = CLOCK_THREAD_CPUTIME_ID) {
  timespec now{};
  clock_gettime(clock, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

// Stops a search of the calling thread after so much of its CPU time: others that share the core do not count.
class CpuLimit {
 public:
  explicit CpuLimit(double seconds) {
    clockid_t clock{};
    pthread_getcpuclockid(pthread_self(), &clock);
    watch_ = std::jthread([this, clock, end = cpu_seconds(clock) + seconds](const std::stop_token& done) {
      while (!done.stop_requested() && cpu_seconds(clock) < end) std::this_thread::sleep_for(std::chrono::milliseconds(2));
      over_.request_stop();
    });
  }

  std::stop_token over() const { return over_.get_token(); }

 private:
  std::stop_source over_;
  std::jthread watch_;
};

bool is_solved(const HardInstance& one, double seconds) {
  const CpuLimit limit(seconds);
  // With a deadline, however late, the search does not end at its own limit of steps.
  const Patience patience(Patience::Clock::now() + std::chrono::hours(24), limit.over());
  for (const CutPart& cut : cut_into_parts(one.buffers))
    if (pack_exact({cut.part, SIZE_MAX / 4, patience, one.answer, 0, one.answer}, {}).end != PackEnd::done) return false;
  return true;
}

bool write(const HardInstance& one, const char* folder, std::size_t shape, std::uint64_t number) {
  char path[4096];
  std::snprintf(path, sizeof path, "%s/%02zu_%04llu.csv", folder, shape, static_cast<unsigned long long>(number));
  std::FILE* const file = std::fopen(path, "w");
  if (file == nullptr) return false;
  std::fprintf(file, "id,lower,upper,size\n");
  for (std::size_t i = 0; i < one.buffers.size(); ++i)
    std::fprintf(file, "%zu,%u,%u,%zu\n", i, one.buffers[i].begin, one.buffers[i].end, one.buffers[i].bytes);
  return std::fclose(file) == 0;
}

bool understand(int words, char** word, Wish& wish) {
  for (int i = 1; i < words; ++i) {
    const std::string_view name = word[i];
    const bool more = i + 1 < words;
    if (name == "--held-out") {
      wish.held_out = true;
    } else if (name == "--each") {
      wish.each = true;
    } else if (name == "--count" && more) {
      wish.count = std::strtoull(word[++i], nullptr, 10);
    } else if (name == "--seconds" && more) {
      wish.seconds = std::strtod(word[++i], nullptr);
    } else if (name == "--csv" && more) {
      wish.folder = word[++i];
    } else {
      return false;
    }
  }
  return true;
}

void print(const HardShape& shape, std::uint64_t number, const HardInstance& one, bool solved, double seconds) {
  std::printf("%.*s %llu: %zu buffers, simple %.3f of the answer, %s %.3f s\n", static_cast<int>(shape.name.size()), shape.name.data(),
              static_cast<unsigned long long>(number), one.buffers.size(),
              static_cast<double>(one.simple) / static_cast<double>(one.answer), solved ? "solved" : "not solved", seconds);
}

// The number of solved ones.
std::uint64_t solve(const HardShape& shape, const Wish& wish) {
  std::uint64_t solved = 0;
  for (std::uint64_t i = 0; i < wish.count; ++i) {
    const std::uint64_t number = number_of(i, wish);
    const HardInstance one = hard_instance(shape, number);
    const double begin = cpu_seconds();
    const bool found = is_solved(one, wish.seconds);
    const double took = cpu_seconds() - begin;
    const bool in_time = found && took <= wish.seconds;
    solved += in_time ? 1U : 0U;
    if (wish.each) print(shape, number, one, in_time, took);
  }
  std::printf("%-24.*s %3llu of %llu\n", static_cast<int>(shape.name.size()), shape.name.data(), static_cast<unsigned long long>(solved),
              static_cast<unsigned long long>(wish.count));
  std::fflush(stdout);
  return solved;
}

bool write_all(const Wish& wish) {
  for (std::size_t shape = 0; shape < hard_shapes().size(); ++shape)
    for (std::uint64_t i = 0; i < wish.count; ++i) {
      const std::uint64_t number = number_of(i, wish);
      if (!write(hard_instance(hard_shapes()[shape], number), wish.folder, shape, number)) return false;
    }
  return true;
}

}  // namespace

int main(int words, char** word) {
  Wish wish;
  if (!understand(words, word, wish)) {
    std::fprintf(stderr, "usage: bench_hard [--count N] [--seconds S] [--held-out] [--each] [--csv FOLDER]\n");
    return 2;
  }
  if (wish.folder != nullptr) {
    if (write_all(wish)) return 0;
    std::perror(wish.folder);
    return 1;
  }
  std::uint64_t all = 0;
  for (const HardShape& shape : hard_shapes()) all += solve(shape, wish);
  std::printf("%s within %g s: %llu of %llu\n", wish.held_out ? "held out" : "looked at", wish.seconds,
              static_cast<unsigned long long>(all), static_cast<unsigned long long>(wish.count * hard_shapes().size()));
}
