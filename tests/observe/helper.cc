// SPDX-License-Identifier: Apache-2.0
#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <new>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "berth/berth.h"
#include "berth/extend.h"
#include "berth/observe.h"
#include "berth/storage/create.h"
#include "berth/storage/dlpack.h"

// Programs that are observed through their environment, for process_test.cc.
using namespace berth;

namespace {

// Destroyed when the program ends: not a leak.
Storage g_static = empty({4}, DType::f32, "cpu", {.tag = "static"});

// Makes an object that is never destroyed.
template <class T>
T& leak(T value) {
  return *new T(std::move(value));
}

void plant(const std::string& kind) {
  if (kind == "storage") leak(empty({2, 3}, DType::f32, "cpu", {.tag = "planted"}));
  if (kind == "view") leak(empty({8, 4}, DType::f32, "cpu", {.tag = "planted"}).slice(0, 2, 4));
  if (kind == "shared") share(leak(empty({1024}, DType::f32, "cpu", {.tag = "planted"})));
  if (kind == "mapped") {
    const std::filesystem::path path = std::filesystem::temp_directory_path() / ("berth-planted-" + std::to_string(getpid()));
    leak(map_file(path.string(), {3, 5}, DType::f32, FileMode::create));
    std::filesystem::remove(path);
  }
  if (kind == "named") {
    const std::string name = "berth-planted-" + std::to_string(getpid());
    leak(create_shared(name, {7}, DType::f64));
    (void)unlink_shared(name);
  }
  if (kind == "exported") (void)to_dlpack(empty({5}, DType::i32, "cpu", {.tag = "planted"})).take();
  if (kind == "imported") leak(from_dlpack(to_dlpack(leak(empty({5}, DType::i32, "cpu", {.tag = "planted"})))));
  if (kind == "outside") {
    static float values[6];
    leak(from_blob(values, {2, 3}, DType::f32, "cpu"));
  }
  if (kind == "block") (void)default_allocator("cpu")->allocate({.bytes = 100, .tag = "planted"});
  if (kind == "buffer") leak(make_buffer(100, "cpu", {.tag = "planted"}));
}

int count_files(const char* folder) {
  int count = 0;
  for (const auto& file : std::filesystem::directory_iterator(folder)) count += file.path().extension() == ".json" ? 1 : 0;
  return count;
}

int wait_for_files(const char* folder, int count) {
  for (int i = 0; i < 1000; ++i) {
    if (count_files(folder) >= count) return 0;
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  return 1;
}

// Sends itself the signal in the middle of an allocation.
int get_signals(const char* folder) {
  const auto memory = default_allocator("cpu");
  const Storage kept = empty({100}, DType::f32, "cpu", {.tag = "kept"});
  for (int i = 0; i < 2; ++i) {
    for (int n = 0; n < 1000; ++n) {
      memory->deallocate(memory->allocate({.bytes = 100}));
      if (n == 500) (void)kill(getpid(), SIGUSR2);
    }
    if (wait_for_files(folder, i + 1) != 0) return 1;
  }
  return 0;
}

// Closes descriptors as daemons do, which then open their own files under the same numbers.
int get_signals_without_descriptors(const char* folder) {
  for (int number = 3; number < 1024; ++number) (void)close(number);
  const std::string path = std::string(folder) + "/strange";
  for (int i = 0; i < 20; ++i) (void)!open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  const int failed = get_signals(folder);
  return failed != 0 || std::filesystem::file_size(path) != 0 ? 1 : 0;
}

int run_out(int times) {
  const auto memory = limit(pool("cpu"), 1_MiB);
  const Block kept = memory->allocate({.bytes = 500'000, .tag = "greedy"});
  for (int i = 0; i < times; ++i) {
    try {
      (void)memory->allocate({.bytes = 1_MiB});
    } catch (const OutOfMemory&) {
    }
  }
  memory->deallocate(kept);
  return 0;
}

// A child that exits like its parent, with the parent's leak.
int fork_and_exit() {
  plant("storage");
  const pid_t child = fork();
  int status = 0;
  if (child > 0) (void)waitpid(child, &status, 0);
  return status;
}

// Runs until it is killed.
int stay(const std::string& how) {
  for (int number = 3; number < 1024 && how == "without-descriptors"; ++number) (void)close(number);
  std::vector<std::shared_ptr<Allocator>> pools;
  for (int i = 0; i < 1000 && how == "with-many-pools"; ++i) (void)pools.emplace_back(direct("cpu"))->allocate({.bytes = 64});
  const Storage kept = empty({1000}, DType::f32, "cpu", {.tag = "kept"});
  std::puts("ready");
  std::fflush(stdout);
  while (true) pause();
}

}  // namespace

int main(int argc, char** argv) {
  const std::string what = argc > 1 ? argv[1] : "";
  const std::string argument = argc > 2 ? argv[2] : "";
  if (what == "plant") {
    for (int i = 2; i < argc; ++i) plant(argv[i]);
    { const Storage gone = empty({100}, DType::f32, "cpu").transpose(0, 0).clone(); }
    return 0;
  }
  if (what == "signal") return get_signals(argument.c_str());
  if (what == "signal-without-descriptors") return get_signals_without_descriptors(argument.c_str());
  if (what == "oom") return run_out(std::atoi(argument.c_str()));
  if (what == "fork") return fork_and_exit();
  if (what == "stay") return stay(argument);
  return 2;
}
