// SPDX-License-Identifier: Apache-2.0
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <latch>
#include <map>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "berth/berth.h"
#include "berth/extend.h"
#include "berth/observe.h"

// The program that process_test.cc starts: each argument names a way to start, fork or exit that fails in other
// libraries. It exits with 0 on success, and otherwise prints what is wrong to standard error.
namespace {

using namespace berth;

void require(bool right, const char* claim) {
  if (right) return;
  std::fprintf(stderr, "not so: %s\n", claim);
  std::_Exit(1);
}

// Runs `child` in a forked process and requires that it exits with 0 within ten seconds.
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

// Threads that allocate, copy and free without pause, so that some fork happens under each lock.
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
    // Static objects are destroyed in an order that nothing controls; everything must still work here.
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

// Frees blocks of a pool when its thread ends: by then the pool's cache of the thread may be destroyed, or not.
struct FreesAtTheEnd {
  ~FreesAtTheEnd() {
    for (const Block& block : blocks) memory->deallocate(block);
    if (memory == nullptr) return;
    const Block late = memory->allocate({.bytes = 100});
    std::memset(late.data, 1, late.bytes);
    memory->deallocate(late);
    const Block large = memory->allocate({.bytes = 1_MiB});
    memory->deallocate_now(large);
  }
  std::shared_ptr<Allocator> memory;
  std::vector<Block> blocks;
};
thread_local FreesAtTheEnd t_made_first;
thread_local FreesAtTheEnd t_made_last;

void use_pool_at_thread_end(const std::shared_ptr<Allocator>& memory) {
  t_made_first.memory = memory;  // made before the thread has a cache, so destroyed after it
  for (int i = 0; i < 100; ++i) t_made_first.blocks.push_back(memory->allocate({.bytes = static_cast<std::size_t>(1 + i * 1500)}));
  t_made_last.memory = memory;
  for (int i = 0; i < 100; ++i) t_made_last.blocks.push_back(memory->allocate({.bytes = static_cast<std::size_t>(1 + i * 1500)}));
}

void pool_thread_end() {
  auto memory = pool("cpu");
  for (int i = 0; i < 20; ++i) std::thread([&] { use_pool_at_thread_end(memory); }).join();
  require(memory->stats().live_blocks == 0, "what a thread frees at its end is freed");
  require(memory->audit().empty(), "and the pool is sound");
  memory->trim(0);
  require(memory->stats().committed_bytes == 0, "and nothing stays behind in caches");
  // The last handle is dropped by a thread-local object.
  std::thread([&] { use_pool_at_thread_end(std::exchange(memory, nullptr)); }).join();
}

void pool_after_main() {
  static Storage on_cpu = full({1000}, 1, DType::f32, pool("cpu"));
  static Storage on_sim = full({1000}, 1, DType::f32, pool("sim:0"));
  static Storage from_thread;
  std::thread([] { from_thread = full({100000}, 2, DType::f32, pool("cpu")); }).join();
  use_pool_at_thread_end(pool("cpu"));  // on the main thread
  // Destroyed first, while the others are alive.
  static const struct UsesPoolsLate {
    ~UsesPoolsLate() {
      require(from_thread.item<float>({99999}) == 2.0F, "a pool's storage can be read after main");
      on_sim = full({10}, 3, DType::f32, pool("sim:0"));
      on_cpu = on_cpu.clone();
      require(on_cpu.item<float>({999}) == 1.0F, "and copied");
    }
  } late;
}

void pool_handle_dropped() {
  auto memory = pool("cpu");
  std::vector<Storage> storages;
  for (int i = 1; i < 100; ++i) storages.push_back(full({i * 100}, i, DType::i32, memory));
  memory = nullptr;
  for (int i = 1; i < 100; ++i) {
    const Storage& storage = storages[static_cast<std::size_t>(i - 1)];
    require(storage.item<std::int32_t>({i * 100 - 1}) == i, "storages keep their pool");
  }
  std::thread([&] { storages.clear(); }).join();  // the pool is destroyed on another thread
  // Leaked blocks outlive their pool.
  auto other = pool("cpu");
  const Block small = other->allocate({.bytes = 1000});
  const Block large = other->allocate({.bytes = 1_MiB});
  other = nullptr;
  std::memset(small.data, 1, small.bytes);
  std::memset(large.data, 2, large.bytes);
  require(static_cast<unsigned char*>(small.data)[999] == 1, "leaked memory can still be used");
}

void pool_fork_while_busy() {
  const auto memory = pool("cpu");
  const auto on_sim = pool("sim:0");
  const Block inherited = memory->allocate({.bytes = 5000});
  const Block inherited_large = memory->allocate({.bytes = 500000});
  const Block on_device = on_sim->allocate({.bytes = 5000});
  const Block on_device_large = on_sim->allocate({.bytes = 500000});
  std::memset(inherited.data, 5, inherited.bytes);
  {
    const Busy busy([&] {
      std::vector<Block> blocks;
      for (std::size_t i = 0; i < 50; ++i) blocks.push_back(memory->allocate({.bytes = 1 + i * i * 200}));
      for (const Block& block : blocks) memory->deallocate(block);
      memory->trim(0);
      on_sim->deallocate(on_sim->allocate({.bytes = 3000}));
    });
    for (int i = 0; i < 30; ++i) {
      in_child([&] {
        require(static_cast<unsigned char*>(inherited.data)[4999] == 5, "a child reads what it inherited");
        memory->deallocate(inherited);
        memory->deallocate_now(inherited_large);
        for (std::size_t k = 0; k < 200; ++k) {
          const Block block = memory->allocate({.bytes = 1 + k * k * 20});
          std::memset(block.data, 7, block.bytes);
          memory->deallocate(block);
        }
        std::thread([&] { memory->deallocate(memory->allocate({.bytes = 100})); }).join();
        bool refused = false;
        try {
          on_sim->allocate({.bytes = 3000});
        } catch (const DeviceError& error) {
          refused = error.code() == ErrorCode::fork_unsafe;
        }
        require(refused, "an inherited pool of a device says fork_unsafe");
        on_sim->deallocate(on_device);
        on_sim->deallocate_now(on_device_large);
        on_sim->trim(0);
        require(misuse_count() == 0, "frees in a child are no misuse");
      });
    }
  }
  require(memory->audit().empty() && on_sim->audit().empty(), "the parent's pools are sound");
  require(memory->stats().live_blocks == 2 && on_sim->stats().live_blocks == 2, "and hold what they held");
  memory->deallocate(inherited);
  memory->deallocate(inherited_large);
  on_sim->deallocate(on_device);
  on_sim->deallocate(on_device_large);
}

void leave_work_behind() {
  // The process ends while a stream still has pending work: it must neither hang nor crash.
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

// With BERTH_CHECK=streams in the environment.
void forget_an_order() {
  const Device device = make_sim({.background = false});
  const Stream a = make_stream(device);
  const Stream b = make_stream(device);
  const Storage x = empty({16}, DType::f32, device, {.stream = a});
  x.fill(1, {.stream = a, .non_blocking = true});
  x.fill(2, {.stream = b, .non_blocking = true});
  a.synchronize();
  b.synchronize();
}

// With BERTH_CHECK in the environment: a mistake that nothing would find before the program ends.
void write_after_free() {
  const auto& memory = default_allocator("cpu");
  const Block block = memory->allocate({.bytes = 4096, .site = Site::here()});
  memory->deallocate(block);
  static_cast<volatile unsigned char*>(block.data)[17] = 1;
}

// With BERTH_TRACE in the environment: known blocks of this thread, of another, and of a static object that is
// freed after main.
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
  std::latch done(2);
  const auto work = [&](std::size_t bytes) {
    for (std::size_t i = 0; i < 5000; ++i) (void)memory->allocate({.bytes = bytes});
    done.arrive_and_wait();
    std::raise(SIGKILL);
  };
  std::thread other(work, 64);
  work(65);
  other.join();
}

void fork_in_a_trace() {
  const auto memory = direct("cpu");
  const Block block = memory->allocate({.bytes = 77});
  in_child([&] {
    require(is_tracing(), "a child is traced");
    for (std::size_t i = 0; i < 50000; ++i) memory->deallocate(memory->allocate({.bytes = 66}));
    memory->deallocate(block);
    std::thread([&] { memory->deallocate(memory->allocate({.bytes = 67})); }).join();
    require(stop_trace().events == 100'003, "all events of a child are in its trace");
  });
  in_child([&] {
    for (std::size_t i = 0; i < 10; ++i) memory->deallocate(memory->allocate({.bytes = 68}));
    std::exit(0);
  });
  in_child([&] { require(stop_trace().events == 0, "without events there is no file"); });
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
      {"forget-an-order", forget_an_order},
      {"write-after-free", write_after_free},
      {"be-traced", be_traced},
      {"be-killed-in-a-trace", be_killed_in_a_trace},
      {"fork-in-a-trace", fork_in_a_trace},
      {"pool-thread-end", pool_thread_end},
      {"pool-after-main", pool_after_main},
      {"pool-handle-dropped", pool_handle_dropped},
      {"pool-fork-while-busy", pool_fork_while_busy},
  };
  const auto way = argc == 2 ? ways.find(argv[1]) : ways.end();
  if (way == ways.end()) return 2;
  way->second();
  return 0;
}
