// SPDX-License-Identifier: Apache-2.0
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <map>
#include <string>
#include <thread>
#include <vector>

#include "berth/berth.h"

// The program that process_test.cc starts: each argument is a way to begin, fork or end that has gone wrong in other libraries. It exits
// with 0 when all is well and says on standard error what is not.
namespace {

using namespace berth;

void require(bool right, const char* claim) {
  if (right) return;
  std::fprintf(stderr, "not so: %s\n", claim);
  std::_Exit(1);
}

// Runs `child` in a forked process and requires that it ends with 0 within ten seconds.
void in_child(const std::function<void()>& child) {
  const pid_t pid = fork();
  require(pid >= 0, "fork works");
  if (pid == 0) {
    alarm(10);
    child();
    std::fflush(nullptr);
    _exit(0);
  }
  int status = 0;
  require(waitpid(pid, &status, 0) == pid, "the child ends");
  require(WIFEXITED(status) && WEXITSTATUS(status) == 0, "the child ends well");
}

// Threads that allocate, copy and free without pause, so that a fork finds every lock taken at some time.
class Busy {
 public:
  explicit Busy(const std::function<void()>& work) {
    for (int i = 0; i < 3; ++i) {
      threads_.emplace_back([this, work] {
        while (!stop_) work();
      });
    }
  }
  ~Busy() {
    stop_ = true;
    for (std::thread& thread : threads_) thread.join();
  }

 private:
  std::atomic<bool> stop_{false};
  std::vector<std::thread> threads_;
};

Storage g_static_storage;
Stream g_static_stream;
thread_local Storage t_storage;

struct AfterMain {
  ~AfterMain() {
    // Static objects die in an order nobody controls; everything must still work here.
    const Storage late = full({16}, 3, DType::f32, "sim:0");
    require(late.to("cpu").item<float>({5}) == 3.0F, "storages can be made after main");
    require(misuse_count() == 0, "no misuse was reported");
  }
} g_after_main;

void static_storages() {
  g_static_storage = full({1000}, 1, DType::f32, "cpu");
  g_static_stream = make_stream("cpu");
  g_static_storage.fill(2, {.stream = g_static_stream, .non_blocking = true});
  static const Storage local = zeros({10}, DType::u8, "sim:0");
  static const auto scratch = arena("sim:0", 1_MiB);
  static const Storage in_arena = zeros({10}, DType::u8, scratch);
  g_static_stream.synchronize();
}

void thread_exit() {
  const auto tracked = track(direct("cpu"));
  std::thread([&] {
    const TagScope scope("thread");
    t_storage = zeros({100}, DType::f32, tracked);
  }).join();
  require(tracked->live().empty(), "a thread's storages die with it");
  Storage survivor;
  std::thread([&] { survivor = full({4}, 9, DType::i32, tracked); }).join();
  require(survivor.item<std::int32_t>({3}) == 9, "memory outlives the thread that asked for it");
}

void fork_while_busy() {
  const auto limited = limit(track(direct("cpu")), 1_GiB);
  const auto scratch = arena("cpu", 64_MiB);
  {
    const Busy busy([&] {
      const Storage x = full({64}, 1, DType::f32, limited);
      const TagScope scope("busy");
      (void)x.to(DType::bf16);
      (void)empty({8}, DType::u8, "sim:0");
      const Stream stream = make_stream("cpu");
      stream.enqueue([] {});
    });
    for (int i = 0; i < 30; ++i) {
      in_child([&] {
        const Storage x = full({64}, 2, DType::f32, limited);
        require(x.to(DType::f64).item<double>({63}) == 2.0, "a child allocates, fills and converts");
        const Storage y = zeros({100000}, DType::u8, scratch);
        const Stream stream = make_stream("cpu");
        int ran = 0;
        stream.enqueue([&] { ran = 1; });
        stream.synchronize();
        require(ran == 1, "a child's own streams work");
        (void)Tag("made in a child");
        (void)backend("pinned");
      });
    }
  }
  require(limited->audit().empty(), "the parent's allocator is sound");
}

void fork_with_devices() {
  Storage on_sim = full({4}, 5, DType::i32, "sim:0");
  Storage on_cpu = full({4}, 6, DType::i32, "cpu");
  auto scratch = arena("sim:0", 1_MiB);
  Storage in_arena = full({4}, 7, DType::i32, scratch);
  const Stream cpu_stream = make_stream("cpu");
  const Stream sim_stream = make_stream("sim:0");
  const Event event = cpu_stream.record();
  const std::size_t committed = sim_control("sim:0").committed_bytes();
  in_child([&] {
    require(on_cpu.item<std::int32_t>({0}) == 6, "inherited host memory can be read");
    on_cpu = {};
    const auto refuses = [](const std::function<void()>& use) {
      try {
        use();
        return false;
      } catch (const DeviceError& error) {
        return error.code() == ErrorCode::fork_unsafe;
      }
    };
    require(refuses([&] { on_sim.to("cpu"); }), "an inherited device says fork_unsafe");
    require(refuses([&] { on_sim.fill(0); }), "also to a fill");
    require(refuses([&] { zeros({1}, DType::u8, "sim:0"); }), "and to an allocation");
    require(refuses([&] { cpu_stream.enqueue([] {}); }), "an inherited stream says fork_unsafe");
    require(refuses([&] { sim_stream.synchronize(); }), "a simulated one too");
    require(refuses([&] { event.wait(); }), "and an event");
    on_sim = {};
    in_arena = {};
    scratch = nullptr;
  });
  require(sim_control("sim:0").committed_bytes() == committed, "a child's destructors leave the device alone");
  require(on_sim.to("cpu").item<std::int32_t>({3}) == 5, "the parent's device memory is as it was");
  require(in_arena.to("cpu").item<std::int32_t>({3}) == 7, "and its arena");
  require(on_cpu.item<std::int32_t>({3}) == 6, "and its host memory");
}

void fork_in_a_chain() {
  in_child([] {
    const Stream stream = make_stream("cpu");
    in_child([&] {
      bool refused = false;
      try {
        stream.synchronize();
      } catch (const DeviceError&) {
        refused = true;
      }
      require(refused, "a grandchild is told apart from its parent");
      require(full({2}, 1, DType::u8, "cpu").item<std::uint8_t>({1}) == 1, "and can allocate");
    });
    stream.synchronize();
  });
}

void leave_work_behind() {
  // The process ends while a stream still has work: that must neither hang nor crash.
  const Stream stream = make_stream("cpu");
  for (int i = 0; i < 1000; ++i) stream.enqueue([] { std::this_thread::sleep_for(std::chrono::milliseconds(10)); });
  std::fflush(nullptr);
}

void misuse_aborts() {
  const auto memory = direct("cpu");
  const Block block = memory->allocate({.bytes = 64});
  memory->deallocate(block);
  memory->deallocate(block);
}

// With BERTH_TRACE set from outside: known blocks of this thread, of another, and of a static object that is freed after main.
void be_traced() {
  require(is_tracing(), "the variable starts the trace");
  const auto memory = direct("cpu");
  for (std::size_t i = 0; i < 50000; ++i) memory->deallocate(memory->allocate({.bytes = 1000 + i % 500}));
  std::thread([&] {
    for (std::size_t i = 0; i < 500; ++i) memory->deallocate(memory->allocate({.bytes = 2000 + i}));
  }).join();
  g_static_storage = zeros({31337}, DType::u8, memory);
}

void be_killed_in_a_trace() {
  const auto memory = direct("cpu");
  for (std::size_t i = 0; i < 50000; ++i) memory->deallocate(memory->allocate({.bytes = 64}));
  std::raise(SIGKILL);
}

void fork_in_a_trace() {
  const auto memory = direct("cpu");
  const Block block = memory->allocate({.bytes = 77});
  in_child([&] {
    require(!is_tracing(), "a child is not traced");
    for (std::size_t i = 0; i < 50000; ++i) memory->deallocate(memory->allocate({.bytes = 66}));
    memory->deallocate(block);
    require(stop_trace().events == 0, "a child has no trace to stop");
  });
  in_child([&] {
    for (std::size_t i = 0; i < 10; ++i) memory->deallocate(memory->allocate({.bytes = 66}));
    std::exit(0);
  });
  memory->deallocate(block);
}

}  // namespace

int main(int argc, char** argv) {
  const std::map<std::string, void (*)()> ways = {
      {"static-storages", static_storages},
      {"thread-exit", thread_exit},
      {"fork-while-busy", fork_while_busy},
      {"fork-with-devices", fork_with_devices},
      {"fork-in-a-chain", fork_in_a_chain},
      {"leave-work-behind", leave_work_behind},
      {"misuse-aborts", misuse_aborts},
      {"be-traced", be_traced},
      {"be-killed-in-a-trace", be_killed_in_a_trace},
      {"fork-in-a-trace", fork_in_a_trace},
  };
  const auto way = argc == 2 ? ways.find(argv[1]) : ways.end();
  if (way == ways.end()) return 2;
  way->second();
  return 0;
}
