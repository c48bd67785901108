// SPDX-License-Identifier: Apache-2.0
#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cstdio>
#include <cstring>
#include <map>
#include <string>
#include <system_error>
#include <thread>
#include <vector>

#include "berth/berth.h"
#include "berth/extend.h"
#include "berth/observe.h"
#include "berth/plan.h"
#include "hostile/denied_exit.h"

// The program that denied_test.cc and walls_test.cc start where the system refuses something:
//
//     denied_helper SERVICE FOLDER
//
// It does what a program does with one service of berth, with its files in the folder, and ends as denied_exit.h says.
// Whatever was refused, all allocators must be sound afterwards.
namespace {

using namespace berth;

using testing::kDone;
using testing::kNoHeap;
using testing::kOwn;
using testing::kRefused;
using testing::kWrong;

// A call of the program itself, which is no concern of berth's.
[[noreturn]] void give_up_own(const char* what) { throw std::system_error(errno, std::generic_category(), what); }

[[noreturn]] void wrong(const char* claim) {
  std::fprintf(stderr, "not so: %s\n", claim);
  std::_Exit(kWrong);
}

void require(bool right, const char* claim) {
  if (!right) wrong(claim);
}

void audit(const Allocator& memory) {
  const std::string broken = memory.audit();
  if (!broken.empty()) wrong(broken.c_str());
}

// Blocks of many sizes, some freed in between, so that pages are committed, moved and returned.
void use_allocator(const std::shared_ptr<Allocator>& memory) {
  struct Freed {
    std::shared_ptr<Allocator> memory;
    std::vector<Block> blocks;
    ~Freed() {
      for (const Block& block : blocks) memory->deallocate(block);
      memory->trim(0);
      audit(*memory);
    }
  } held{memory, {}};
  held.blocks.reserve(100);
  for (std::size_t i = 0; i < 60; ++i) {
    held.blocks.push_back(memory->allocate({.bytes = std::size_t{64} << i % 17}));
    std::memset(held.blocks.back().data, 1, held.blocks.back().bytes);
  }
  for (std::size_t i = 0; i < held.blocks.size(); i += 2) memory->deallocate(std::exchange(held.blocks[i], {}));
  memory->trim(0);
  held.blocks.push_back(memory->allocate({.bytes = 9_MiB}));
  std::memset(held.blocks.back().data, 2, held.blocks.back().bytes);
}

void allocate_on_cpu(const std::string&) {
  for (const auto& memory : {pool("cpu"), direct("cpu"), rounded("cpu"), exact("cpu")}) use_allocator(memory);
  const auto scratch = arena("cpu", 8_MiB);
  const Storage x = zeros({1000}, DType::f32, scratch);
  (void)default_allocator("cpu")->snapshot();
}

void allocate_elsewhere(const std::string&) {
  for (const char* const device : {"shared", "pinned"}) use_allocator(pool(device));
  const Storage on_sim = full({1000}, 3, DType::f32, "sim:0");
  require(on_sim.to("cpu").item<float>({999}) == 3.0F, "the simulated device copies");
}

void work_in_threads(const std::string&) {
  const auto memory = pool("cpu");
  std::vector<std::jthread> threads;
  threads.reserve(4);
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&] {
      try {
        for (std::size_t k = 0; k < 200; ++k) memory->deallocate(memory->allocate({.bytes = 1 + k * 700}));
      } catch (const Error& error) {
        std::fprintf(stderr, "refused %s: %s\n", std::string(to_string(error.code())).c_str(), error.what());
        std::_Exit(kRefused);
      }
    });
  }
  threads.clear();
  audit(*memory);
  const Stream stream = make_stream("cpu");
  Storage x = full({1'000'000}, 1, DType::f32, "cpu", {.stream = stream});
  x.fill(2, {.stream = stream, .non_blocking = true});
  stream.synchronize();
  require(x.to(DType::bf16).to(DType::f64).item<double>({999'999}) == 2.0, "copies of several threads");
}

void fork_and_allocate(const std::string&) {
  const auto memory = pool("cpu");
  const Block before = memory->allocate({.bytes = 5000});
  const pid_t child = fork();
  if (child < 0) give_up_own("fork");
  if (child == 0) {
    try {
      memory->deallocate(before);
      use_allocator(memory);
    } catch (const Error& error) {
      std::fprintf(stderr, "refused %s: %s\n", std::string(to_string(error.code())).c_str(), error.what());
      _exit(kRefused);
    }
    _exit(kDone);
  }
  int status = 0;
  while (waitpid(child, &status, 0) < 0) {
    if (errno != EINTR) give_up_own("waitpid");
  }
  memory->deallocate(before);
  require(WIFEXITED(status), "the child ends by itself");
  if (WEXITSTATUS(status) != kDone) std::_Exit(WEXITSTATUS(status));
}

void share_storages(const std::string&) {
  const Storage x = full({64, 64}, 1.5, DType::f32, "cpu");
  share(x);
  const Storage rebuilt = import_ticket(Ticket::from_bytes(export_ticket(x).bytes()));
  require(rebuilt.item<float>({63, 63}) == 1.5F, "a ticket gives the bytes");
  auto [mine, theirs] = Channel::make_pair();
  mine.send(x, 7);
  require(theirs.receive().tag == 7, "a channel passes a storage");
  const NewShared fresh = new_shared(1_MiB);
  require(fresh.location.size_bytes == 1_MiB, "new shared memory has its size");
}

void meet_by_name(const std::string&) {
  const std::string name = "denied-" + std::to_string(getpid());
  Listener listener(name);
  Channel there = Channel::connect(name);
  Channel here = listener.accept();
  const std::array<std::byte, 3> bytes{};
  there.send_bytes(bytes, 9);
  require(here.receive().bytes.size() == 3, "a channel passes bytes");
}

void share_by_name(const std::string&) {
  const std::string name = "denied-" + std::to_string(getpid());
  Storage w = create_shared(name, {1024}, DType::f32);
  w.fill(2);
  require(open_shared(name, {.read_only = true}).item<float>({1023}) == 2.0F, "the name gives the bytes");
  (void)list_shared();
  (void)reap_named();
  w.close();
}

void use_files(const std::string& folder) {
  const Storage x = full({300, 300}, 1.5, DType::f32, "cpu");
  save_npy(folder + "/x.npy", x);
  require(map_npy(folder + "/x.npy").item<float>({299, 299}) == 1.5F, "an array is read back");
  save_npz(folder + "/x.npz", {{"x", x}});
  const LoadedTensors arrays = load(open_npz(folder + "/x.npz"), "cpu");
  require(arrays.size() == 1, "and from an archive");
  save_safetensors(folder + "/x.safetensors", {{"x", x}});
  for (const LoadMode mode : {LoadMode::map, LoadMode::read, LoadMode::direct, LoadMode::automatic}) {
    const LoadedTensors loaded = load(open_safetensors(folder + "/x.safetensors"), "cpu", {.mode = mode, .dtype = DType::bf16});
    require(loaded.size() == 1, "and a tensor");
  }
  require(load(folder + "/x.safetensors", "sim:0").size() == 1, "and to a device");
  Storage mapped = map_file(folder + "/fresh", {4096}, DType::f32, FileMode::create);
  mapped.fill(1);
  prefetch_mapped(mapped);
  flush_mapped(mapped);
  drop_mapped(mapped);
  (void)mapped_state(mapped);
}

void plan_a_graph(const std::string&) {
  Graph graph;
  ValueId last = graph.add_value({.name = "x", .dtype = DType::f32, .shape = Shape({1000}), .external = true});
  for (int i = 0; i < 50; ++i) {
    const ValueId next = graph.add_value({.name = "y" + std::to_string(i), .dtype = DType::f32, .shape = Shape({1000 + i})});
    graph.add_node({.name = "n" + std::to_string(i), .inputs = {last}, .outputs = {next}});
    last = next;
  }
  const Placement placed = place(plan(std::move(graph)));
  (void)shadow_run(placed);
}

// More than fits in the addresses of a pool that knows of little memory. Nothing is touched.
void allocate_much(const std::string&) {
  const auto memory = pool("cpu");
  for (int i = 0; i < 40; ++i) (void)memory->allocate({.bytes = 16_MiB});
}

void say_who(const std::string&) {
  const auto& memory = default_allocator("cpu");
  (void)memory->allocate({.bytes = 64});  // for BERTH_LEAKS
  std::fprintf(stderr, "user %u, %s\n", static_cast<unsigned>(geteuid()), memory->settings().c_str());
}

void observe(const std::string& folder) {
  start_trace(folder + "/trace");
  const Tracker tracker;
  const Profiler profiler({.sites = true, .stack_depth = 4, .every = std::chrono::milliseconds(1)});
  const auto memory = pool("cpu");
  for (std::size_t i = 0; i < 3'000; ++i) memory->deallocate(memory->allocate({.bytes = 1 + i, .tag = "observed"}));
  (void)tracker.leaks();
  require(!to_json(profiler.profile()).empty(), "there is a profile");
  (void)save_snapshot(folder + "/snapshot.json");
  expose_live();
  (void)live_processes();
  (void)stop_trace();
}

}  // namespace

int main(int argc, char** argv) {
  const std::map<std::string, void (*)(const std::string&)> services = {{"cpu", allocate_on_cpu},     {"devices", allocate_elsewhere},
                                                                        {"threads", work_in_threads}, {"fork", fork_and_allocate},
                                                                        {"share", share_storages},    {"listen", meet_by_name},
                                                                        {"names", share_by_name},     {"files", use_files},
                                                                        {"plan", plan_a_graph},       {"observe", observe},
                                                                        {"large", allocate_much},     {"who", say_who}};
  const auto service = argc == 3 ? services.find(argv[1]) : services.end();
  if (service == services.end()) return kWrong;
  try {
    service->second(argv[2]);
  } catch (const Error& error) {
    std::fprintf(stderr, "refused %s: %s\n", std::string(to_string(error.code())).c_str(), error.what());
    return kRefused;
  } catch (const std::bad_alloc&) {
    std::fprintf(stderr, "no heap\n");
    return kNoHeap;
  } catch (const std::system_error& error) {
    std::fprintf(stderr, "own call: %s\n", error.what());
    return kOwn;
  }
  return kDone;
}
