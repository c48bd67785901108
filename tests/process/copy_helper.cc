// SPDX-License-Identifier: Apache-2.0
#include <pthread.h>
#include <sched.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <string>
#include <thread>
#include <vector>

#include "berth/berth.h"
#include "berth/extend.h"
#include "berth/observe.h"
#include "copy/host/host_copy.h"
#include "copy/host/workers.h"

// The program that copy_process_test.cc starts: each argument names a situation that copies by several threads
// must survive. It exits with 0 on success, and otherwise prints what is wrong to standard error.
namespace {

using namespace berth;
using namespace berth::internal::copy;

void require(bool right, const char* claim) {
  if (right) return;
  std::fprintf(stderr, "not so: %s\n", claim);
  std::_Exit(1);
}

// Large enough for several threads: transposed, and converted.
bool copy_works(int threads) {
  constexpr std::int64_t kSide = 1200;
  std::vector<float> source(kSide * kSide);
  std::vector<std::int32_t> target(source.size(), -1);
  for (std::size_t i = 0; i < source.size(); ++i) source[i] = static_cast<float>(i);
  const std::int64_t shape[] = {kSide, kSide};
  const std::int64_t across[] = {kSide, 1};
  const std::int64_t down[] = {1, kSide};
  copy_on_host(shape, {reinterpret_cast<std::byte*>(source.data()), DType::f32, across},
               {reinterpret_cast<std::byte*>(target.data()), DType::i32, down}, threads);
  for (std::int64_t row = 0; row < kSide; ++row) {
    for (std::int64_t column = 0; column < kSide; ++column) {
      if (target[static_cast<std::size_t>(column * kSide + row)] != row * kSide + column) return false;
    }
  }
  return true;
}

// Items that wait until all are running: returns only when that many threads take part.
void meet(int threads) {
  std::atomic<int> inside{0};
  run_in_parallel(static_cast<std::size_t>(threads), threads, [&](std::size_t) noexcept {
    ++inside;
    for (int seen = inside; seen < threads; seen = inside) inside.wait(seen);
    inside.notify_all();
  });
}

int threads_of_this_process() {
  int count = 0;
  for ([[maybe_unused]] const auto& entry : std::filesystem::directory_iterator("/proc/self/task")) ++count;
  return count;
}

void in_child(void (*child)()) {
  const pid_t pid = fork();
  require(pid >= 0, "fork works");
  if (pid == 0) {
    alarm(20);
    child();
    std::fflush(nullptr);
    _exit(0);
  }
  int status = 0;
  require(waitpid(pid, &status, 0) == pid, "the child ends");
  require(WIFEXITED(status) && WEXITSTATUS(status) == 0, "the child ends well");
}

void use_threads() {
  for (int i = 0; i < 5; ++i) {
    meet(4);
    require(copy_works(4), "copies are right");
  }
}

void fork_after_copies() {
  use_threads();
  require(threads_of_this_process() == 4, "there are three workers");
  for (int i = 0; i < 10; ++i) {
    in_child([] {
      require(threads_of_this_process() == 1, "a child begins without workers");
      use_threads();
      in_child(use_threads);
    });
    use_threads();
  }
}

// Other threads are in the middle of jobs when the process forks.
void fork_while_copying() {
  std::atomic<bool> stop{false};
  std::vector<std::thread> callers;
  for (int i = 0; i < 3; ++i) {
    callers.emplace_back([&] {
      while (!stop) run_in_parallel(20, 3, [](std::size_t) noexcept {});
    });
  }
  for (int i = 0; i < 50; ++i) in_child(use_threads);
  stop = true;
  for (std::thread& caller : callers) caller.join();
}

// New threads get a stack that no address space has room for.
void set_stack_of_new_threads(std::size_t bytes) {
  pthread_attr_t attributes;
  require(pthread_attr_init(&attributes) == 0 && pthread_attr_setstacksize(&attributes, bytes) == 0 &&
              pthread_setattr_default_np(&attributes) == 0,
          "the size of stacks can be set");
}

void no_threads_to_be_had() {
  set_stack_of_new_threads(std::size_t{1} << 55);
  for (int i = 0; i < 3; ++i) require(copy_works(4), "a copy without helpers is right");
  require(threads_of_this_process() == 1, "no thread could be started");
  set_stack_of_new_threads(std::size_t{1} << 20);
  meet(2);
  require(threads_of_this_process() == 2, "one was started when that was possible again");
  // Some workers exist, and more cannot be started.
  set_stack_of_new_threads(std::size_t{1} << 55);
  for (int i = 0; i < 3; ++i) require(copy_works(8), "a copy with fewer helpers than wished is right");
  meet(2);
  require(threads_of_this_process() == 2, "no other could be started");
}

void one_thread_starts_none() {
  require(copy_threads() == 1, "BERTH_THREADS=1 counts");
  require(copy_works(copy_threads()), "copies are right");
  require(threads_of_this_process() == 1, "no worker was started");
}

void say_threads() {
  try {
    std::printf("%d\n", copy_threads());
  } catch (const ArgumentError& error) {
    std::printf("%s: %s\n", to_string(error.code()).data(), error.what());
  }
}

void say_threads_of_one_processor() {
  cpu_set_t allowed;
  require(sched_getaffinity(0, sizeof allowed, &allowed) == 0, "the processors are known");
  cpu_set_t one;
  CPU_ZERO(&one);
  for (int i = 0; i < CPU_SETSIZE && CPU_COUNT(&one) == 0; ++i) {
    if (CPU_ISSET(i, &allowed)) CPU_SET(i, &one);
  }
  require(sched_setaffinity(0, sizeof one, &one) == 0, "they can be restricted");
  say_threads();
}

// A number that is set in code overrides the variable, whether that is valid or not.
void set_threads() {
  set_copy_threads(3);
  say_threads();
}

// The process ends while workers sleep, and while one is working.
void leave_workers_behind() {
  use_threads();
  std::thread([] {
    run_in_parallel(1000, 3, [](std::size_t) noexcept { std::this_thread::sleep_for(std::chrono::milliseconds(5)); });
  }).detach();
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
}

}  // namespace

int main(int argc, char** argv) {
  const std::map<std::string, void (*)()> ways = {
      {"fork-after-copies", fork_after_copies},
      {"fork-while-copying", fork_while_copying},
      {"no-threads-to-be-had", no_threads_to_be_had},
      {"one-thread-starts-none", one_thread_starts_none},
      {"say-threads", say_threads},
      {"say-threads-of-one-processor", say_threads_of_one_processor},
      {"set-threads", set_threads},
      {"leave-workers-behind", leave_workers_behind},
  };
  const auto way = argc == 2 ? ways.find(argv[1]) : ways.end();
  if (way == ways.end()) return 2;
  way->second();
  return 0;
}
