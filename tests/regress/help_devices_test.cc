// SPDX-License-Identifier: Apache-2.0
// What errors of devices, allocators, records and traces say would help is done here, as a user would do it.
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "berth/record/trace_file.h"
#include "record/trace_layout.h"
#include "support/errors.h"
#include "support/everything.h"
#include "support/failing_calls.h"
#include "support/hooked_backend.h"

namespace berth::testing {
namespace {

void use(const std::shared_ptr<Allocator>& memory) { memory->deallocate(memory->allocate({.bytes = 1000})); }

class Counter : public Sink {
 public:
  void on_record(const Record&) noexcept override {}
};

class HookedFactory : public BackendFactory {
 public:
  int count() override { return 1; }
  std::string unavailable_reason() override { return ""; }
  std::unique_ptr<Backend> make(Device device) override { return std::make_unique<HookedBackend>(device); }
};

TEST(HelpFollowed, OfNamesOfDevices) {
  const auto factory = [] { return std::make_unique<HookedFactory>(); };
  follow({
      {"write kind:index, as in cuda:0", [] { (void)Device("cpu:first"); }, [] { EXPECT_EQ(Device("cuda:0").index(), 0); }},
      {"use up to 32 lower-case letters, digits and '_', a letter first", [&] { register_backend("My Device", factory()); },
       [&] { register_backend("my_device", factory()); }},
      {"pass a BackendFactory", [] { register_backend("nothing_made", nullptr); }, [&] { register_backend("something_made", factory()); }},
      {"use cpu:0", [] { (void)backend("cpu:3"); }, [] { (void)backend("cpu:0"); }},
  });
  const std::string known = help_of([] { (void)Device("tpu:0"); });
  EXPECT_TRUE(is_like(known, "the known kinds are …")) << known;
  const std::string taken = help_of([&] { register_backend("cpu", factory()); });
  EXPECT_TRUE(is_like(taken, "choose a name other than …")) << taken;
  for (const KindInfo& kind : device_kinds()) {
    EXPECT_NE(known.find(kind.name), std::string::npos) << known;
    EXPECT_NE(taken.find(kind.name), std::string::npos) << taken;
    (void)Device(kind.name);
  }
}

TEST(HelpFollowed, OfDevicesThatFail) {
  const Device full = make_sim({.capacity_bytes = 1_MiB});
  const Device other = make_sim({.capacity_bytes = 1_MiB});
  std::byte outside{};
  const auto memory = pool(full);
  const Block block = memory->allocate({.bytes = 1000});
  const auto fill = [&] { fill_bytes(block.data, full, 0, 1000); };
  const auto failing = [&](ErrorCode code) {
    return [&, code] {
      sim_control(full).fail_after(SimOperation::fill, 1, code);
      fill();
    };
  };
  const auto hooked = pool(hooked_backend().device());
  const Block on_hooked = hooked->allocate({.bytes = 1000});
  follow({
      {"everything on the device is gone: restart the process, or go on with host memory",
       [&] {
         sim_control(other).lose();
         (void)pool(other)->allocate({.bytes = 1000});
       },
       [] { use(pool("cpu")); }},
      {"check that the memory is allocated and the sizes are right", [&] { fill_bytes(&outside, full, 0, 1); }, fill},
      {"free memory on the device, or use a smaller size", failing(ErrorCode::out_of_memory), fill},
      {"berth doctor shows what this machine has and lacks", failing(ErrorCode::device_error), fill},
      {"the device refused what it was asked: check the sizes and addresses", failing(ErrorCode::timeout), fill},
      {"berth devices shows what each device can do", [&] { fill_bytes(on_hooked.data, hooked->device(), 0, 1000); },
       [&] { EXPECT_FALSE(hooked->backend().properties().abilities.kernels); }},
  });
  hooked->deallocate(on_hooked);
  memory->deallocate(block);
}

// A limit of the process's addresses, which is far away.
class AddressLimit {
 public:
  AddressLimit() {
    EXPECT_EQ(getrlimit(RLIMIT_AS, &before_), 0);
    const rlimit limit{std::min<rlim_t>(before_.rlim_max, rlim_t{1} << 50), before_.rlim_max};
    EXPECT_EQ(setrlimit(RLIMIT_AS, &limit), 0);
  }
  ~AddressLimit() { setrlimit(RLIMIT_AS, &before_); }
  AddressLimit(const AddressLimit&) = delete;
  AddressLimit& operator=(const AddressLimit&) = delete;

 private:
  rlimit before_{};
};

TEST(HelpFollowed, OfMemoryThatIsNotThere) {
  const auto memory = pool(make_sim({.capacity_bytes = 1_MiB}));
  const auto out_of_nothing = [] {  // by a strategy of a user's own
    OutOfMemoryReport report;
    report.requested_bytes = 2_MiB;
    throw OutOfMemory(report);
  };
  const auto of = [&](std::size_t bytes) { return [&memory, bytes] { memory->deallocate(memory->allocate({.bytes = bytes})); }; };
  const auto fresh = [] {
    const auto made = pool("cpu");
    made->deallocate(made->allocate({.bytes = 64}));
  };
  follow({
      {"ask for less: the device has 1 MiB in all", of(2_MiB), of(512_KiB)},
      {"ask for less, or use a device with more memory", out_of_nothing, of(512_KiB)},
      {"raise the limit of the process (ulimit -a shows all) or of its control group, or ask for less",
       [&] {
         const AddressLimit limit;
         refused("mmap", ENOMEM, fresh)();
       },
       fresh},
  });
}

TEST(HelpFollowed, OfStrategiesAsText) {
  const auto made = [](const char* text) { return [text] { use(make_allocator(text, "cpu")); }; };
  follow({
      {"direct takes no option", made("direct:64MiB"), made("direct")},
      {"write its capacity, as in arena:64MiB", made("arena:much"), made("arena:64MiB")},
      {"write its limit, as in pool:8GiB, or options, as in pool:limit=8GiB,decay=5s", made("pool:much"), made("pool:8GiB")},
      {"write its limit, as in pool:8GiB, or options, as in pool:limit=8GiB,decay=5s", made("pool:0"), made("pool:limit=8GiB,decay=5s")},
      {"use one, such as 512 B", [] { rounded("cpu", {.least_bytes = 300}); }, [] { use(rounded("cpu", {.least_bytes = 512})); }},
      {"use a smaller one, such as 16 MiB", [] { rounded("cpu", {.cutoff_bytes = SIZE_MAX}); },
       [] { use(rounded("cpu", {.cutoff_bytes = 16_MiB})); }},
      {"lower least, or raise cutoff to at least that", [] { rounded("cpu", {.least_bytes = 64_KiB, .cutoff_bytes = 32_KiB}); },
       [] {
         use(rounded("cpu", {.least_bytes = 32_KiB, .cutoff_bytes = 32_KiB}));
         use(rounded("cpu", {.least_bytes = 64_KiB, .cutoff_bytes = 64_KiB}));
       }},
  });
  const std::string help = help_of(made("heap"));
  ASSERT_TRUE(is_like(help, "use one of …")) << help;
  for (const std::string& name : allocator_names()) {
    EXPECT_NE(help.find(name), std::string::npos) << help;
    use(make_allocator(name, "cpu"));
  }
}

TEST(HelpFollowed, OfCallbacksAndSinks) {
  const auto memory = pool(make_sim({.capacity_bytes = 1_MiB}));
  follow({
      {"let the callback return false when it can free nothing",
       [&] {
         memory->on_pressure([](const Pressure&) -> bool { throw std::runtime_error("nothing to free"); });
         (void)memory->allocate({.bytes = 2_MiB});
       },
       [&] {
         memory->on_pressure([](const Pressure&) { return false; });
         EXPECT_FALSE(memory->try_allocate({.bytes = 2_MiB}));
       }},
      {"pass one", [] { (void)attach_sink(nullptr); }, [] { (void)attach_sink(std::make_shared<Counter>()); }},
      {"ask for 12 at most", [] { const Profiler profiler({.sites = true, .stack_depth = 1000}); },
       [] { const Profiler profiler({.sites = true, .stack_depth = 12}); }},
  });
}

// The bytes of a trace of one allocation.
std::string recorded() {
  const std::string path = ::testing::TempDir() + "/berth-help-trace-" + std::to_string(getpid());
  start_trace(path);
  use(pool("cpu"));
  stop_trace();
  std::string bytes;
  FILE* const file = std::fopen(path.c_str(), "rb");
  for (int c = std::fgetc(file); c != EOF; c = std::fgetc(file)) bytes += static_cast<char>(c);
  std::fclose(file);
  std::remove(path.c_str());
  return bytes;
}

TEST(HelpFollowed, OfTracesThatAreRead) {
  using enum TraceEvent::Operation;
  const std::string trace = recorded();
  const auto changed = [&](std::size_t at, char to) {
    return [=, bytes = trace]() mutable {
      bytes[at] = to;
      (void)read_trace(bytes);
    };
  };
  const auto record_again = [] { EXPECT_EQ(read_trace(recorded()).events.size(), 2U); };
  follow({
      {"use the version of berth that wrote it", changed(offsetof(internal::record::trace_layout::FileHeader, version), 99), record_again},
      {"record the trace again", changed(sizeof(internal::record::trace_layout::FileHeader), 'x'), record_again},
      {"a line is op,id,bytes,stream, such as a,17,4096,0", [] { (void)read_trace("a,17\n"); }, [] { (void)read_trace("a,17,4096,0\n"); }},
      {"use the device cpu", [] { (void)replay({}, {.device = "sim:0", .strategy = "malloc"}); },
       [] { (void)replay({}, {.device = "cpu", .strategy = "malloc"}); }},
      {"pass a file that save_snapshot, BERTH_SNAPSHOT_SIGNAL or BERTH_SNAPSHOT_ON_OOM wrote", [] { (void)read_snapshot("{}"); },
       [] {
         JsonWriter json;
         take_snapshot().write_json(json);
         (void)read_snapshot(json.take());
       }},
  });
}

}  // namespace
}  // namespace berth::testing
