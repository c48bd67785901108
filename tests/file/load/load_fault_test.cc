// SPDX-License-Identifier: Apache-2.0
// Loads that fail: every system call and every copy fails in turn, files are truncated during the load, devices
// are lost. The result is a typed error that names the tensor, or the call is retried; nothing leaks either
// way.
#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <chrono>
#include <optional>
#include <thread>

#include "file/load/load_support.h"
#include "os/file/leased_file.h"
#include "os/file/read_parts.h"
#include "os/inject.h"
#include "support/errors.h"
#include "support/failing_calls.h"
#include "support/heap_faults.h"

namespace berth::testing {

using namespace internal;
namespace {

std::atomic<int> g_reads{0};

int count_reads(std::string_view call) noexcept {
  if (call == "preadv" || call == "pread") ++g_reads;
  return 0;
}

int refuse_open(std::string_view call) noexcept { return call == "open" ? EINVAL : 0; }
int refuse_leases(std::string_view call) noexcept { return call == "fcntl" ? EAGAIN : 0; }
int refuse_direct_reads(std::string_view call) noexcept { return call == "pread" ? EINVAL : 0; }

// What a load might leak.
struct Left {
  std::uint64_t host = default_allocator("cpu")->stats().live_blocks;
  std::uint64_t pinned = default_allocator("pinned")->stats().live_blocks;
  std::size_t descriptors = open_descriptors();  // after the devices are there: a GPU's driver keeps some of its own

  friend bool operator==(const Left&, const Left&) = default;
};

TensorFiles& sample() {
  static auto* const made = [] {
    auto* const files = new TensorFiles;
    for (int i = 0; i < 30; ++i) files->add(i % 3 == 0 ? DType::i32 : DType::f32, {500 * i}, i % 4 == 0 ? 5 : 0);
    files->write();
    return files;
  }();
  return *made;
}

TEST(LoadFault, EverySystemCallFailsInTurn) {
  const TensorFiles& made = sample();
  const std::vector<Device> devices = {Device("cpu"), load_devices()[3]};
  int calls = 0;
  int refused = 0;
  int went_on = 0;
  for (const Device device : devices) {
    for (const LoadMode mode : {LoadMode::read, LoadMode::direct}) {
      for (const int error : {EIO, EINTR, ENOMEM}) {
        const LoadOptions options{.threads = 3, .mode = mode, .dtype = DType::bf16};
        // Makes what stays allocated for good.
        made.expect_all(made.load(device, options, 16 << 10), options, "with none failed");
        const Left before;
        for (int call = 0;; ++call) {
          bool threw = false;
          std::string said;
          try {
            const FailingCall failing(call, error, {});
            const LoadedTensors loaded = made.load(device, options, 16 << 10);
            made.expect_all(loaded, options, "with one call failed");
          } catch (const Error& failed) {
            threw = true;
            said = failed.what();
            EXPECT_FALSE(failed.why().empty() || failed.help().empty()) << failed.what();
            if (failed.code() == ErrorCode::io_error) {
              EXPECT_EQ(failed.fact("tensor").substr(0, 1), "t") << failed.what();
            }
          }
          if (!FailingCall::was_hit()) break;
          ++calls;
          refused += threw ? 1 : 0;
          went_on += threw ? 0 : 1;
          ASSERT_EQ(Left(), before) << device.to_string() << ", call " << call << ", error " << error;
          ASSERT_FALSE(threw && error == EINTR) << "what a signal interrupts is done again; " << said;
        }
      }
    }
  }
  EXPECT_GT(refused, 20);
  EXPECT_GT(went_on, 20);
  did(std::to_string(calls) + " calls failed, " + std::to_string(refused) + " of them with an error");
}

TEST(LoadFault, EveryUseOfTheHeapFailsInTurn) {
  const TensorFiles& made = sample();
  for (const Device device : {Device("cpu"), load_devices()[3]}) {
    const LoadOptions options{.threads = 1, .dtype = DType::f16};
    made.load(device, options, 4096);
    const Left before;
    std::uint64_t nth = 1;
    for (bool happened = true; happened; ++nth) {
      {
        const FailNthNew fails(nth);
        try {
          (void)made.load(device, options, 64 << 10);
        } catch (const std::bad_alloc&) {
        } catch (const Error&) {
        }
        happened = fails.happened();
      }
      ASSERT_EQ(Left(), before) << "use " << nth;
    }
    EXPECT_GT(nth, 30U);
  }
}

TEST(LoadFault, EveryCopyToTheDeviceFailsInTurn) {
  const TensorFiles& made = sample();
  for (const bool kernels : {false, true}) {
    const Device device = make_sim({.capacity_bytes = 16_MiB, .seed = seed(), .kernels = kernels, .wants_pinned = true});
    const LoadOptions options{.threads = 3, .dtype = DType::f64};
    made.load(device, options, 16 << 10);
    const Left before;
    for (std::uint64_t nth = 1; nth <= 30; ++nth) {
      sim_control(device).fail_after(SimOperation::copy, nth, ErrorCode::device_error);
      EXPECT_ERROR(made.load(device, options, 16 << 10), DeviceError, ErrorCode::device_error);
      ASSERT_EQ(Left(), before);
      EXPECT_EQ(default_allocator(device)->stats().live_blocks, 0U);
      EXPECT_EQ(sim_control(device).pending_work(), 0U) << "something still runs in memory that was given back";
    }
    sim_control(device).clear_faults();
    made.expect_all(made.load(device, options, 16 << 10), options, "afterwards");
    sim_control(device).lose();
    EXPECT_ERROR(made.load(device, options, 16 << 10), DeviceError, ErrorCode::device_lost);
    ASSERT_EQ(Left(), before);
  }
}

TEST(LoadFault, SaysWhereAFileEndsThatWasCutMeanwhile) {
  for (const Device device : {Device("cpu"), Device("pinned"), load_devices()[0], load_devices()[3]}) {
    for (const LoadMode mode : {LoadMode::read, LoadMode::direct}) {
      for (const std::optional<DType> dtype : {std::optional<DType>(), std::optional(DType::bf16)}) {
        TensorFiles made;
        for (int i = 0; i < 10; ++i) made.add(DType::f32, {10'000});
        made.write();
        std::optional<std::ofstream> writer;  // a writer that opened the file before does not wait
        writer.emplace(made.path(), std::ios::binary | std::ios::app);
        const LoadOptions options{.threads = 1, .mode = mode, .dtype = dtype, .progress = [&](const LoadProgress&) {
                                    std::filesystem::resize_file(made.path(), 250'001);
                                    return true;
                                  }};
        const Left before;
        try {
          made.load(device, options, 16 << 10);
          FAIL() << "nothing was thrown";
        } catch (const FormatError& error) {
          EXPECT_EQ(error.code(), ErrorCode::file_truncated) << error.what();
          EXPECT_EQ(error.fact("tensor"), "t6") << error.what();
          EXPECT_EQ(error.fact("have"), "250001") << error.what();
          EXPECT_EQ(error.fact("path"), made.path());
        }
        EXPECT_EQ(Left(), before);
      }
    }
  }
}

TEST(LoadFault, KeepsWritersWaitingWhileItConvertsInPlace) {
  TensorFiles made;
  for (int i = 0; i < 10; ++i) made.add(DType::f32, {10'000});
  made.write();
  const LoadOptions options{.threads = 1, .dtype = DType::bf16};
  const Left before;
  std::thread writer;
  std::atomic<bool> begun{false};
  LoadOptions watched = options;
  watched.progress = [&](const LoadProgress&) {
    if (begun.exchange(true)) return true;
    writer = std::thread([&] { std::filesystem::resize_file(made.path(), 100); });
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    return true;
  };
  made.expect_all(made.load("cpu", watched, 16 << 10), options, "with a writer waiting");
  writer.join();
  EXPECT_EQ(std::filesystem::file_size(made.path()), 100U) << "it had its turn afterwards";
  EXPECT_EQ(Left(), before);
}

TEST(LoadFault, ReadsWhatItConvertsWhereAFileCannotBeHeldStill) {
  const TensorFiles& made = sample();
  const LoadOptions options{.threads = 2, .dtype = DType::bf16};
  {
    const Injected injected(refuse_leases);
    made.expect_all(made.load("cpu", options, 16 << 10), options, "without leases");
  }
  const std::ofstream writer(made.path(), std::ios::binary | std::ios::app);
  made.expect_all(made.load("cpu", options, 16 << 10), options, "with somebody who may write");
  EXPECT_FALSE(os::LeasedFile::hold(made.source().files[0].descriptor, 100).ok());
}

// How many bytes of mappings of the file are in this process's page tables.
std::size_t resident_bytes(const std::string& path) {
  std::ifstream maps("/proc/self/smaps");
  std::size_t kib = 0;
  bool ours = false;
  for (std::string line; std::getline(maps, line);) {
    if (line.find("-") < line.find(":")) ours = line.ends_with(path);
    if (ours && line.starts_with("Rss:")) kib += std::stoul(line.substr(4));
  }
  return kib << 10;
}

TEST(LoadFault, LetsGoOfThePagesThatItConvertedAndOfNoOthers) {
  const TensorFiles& made = sample();
  const Result<os::LeasedFile> held = os::LeasedFile::hold(made.source().files[0].descriptor, 400'000);
  const std::size_t page = 4096;
  if (!held || sysconf(_SC_PAGESIZE) != 4096) GTEST_SKIP() << "files cannot be held still here, or pages are larger";
  ASSERT_NE(held->touch(0, 400'000), nullptr);
  const std::size_t whole = resident_bytes(made.path());
  ASSERT_GE(whole, 400'000U);
  held->drop_pages(page - 1, 10 * page + 2);
  EXPECT_EQ(resident_bytes(made.path()), whole - 10 * page) << "the pages at both ends are a neighbour's too";
  held->drop_pages(100, 200);
  held->drop_pages(20 * page + 1, page);
  EXPECT_EQ(resident_bytes(made.path()), whole - 10 * page) << "no page lies inside";
  EXPECT_NE(held->touch(page, page), nullptr) << "they come back";
}

TEST(LoadFault, TellsWhyDirectReadsAreNotInEffect) {
  const TensorFiles& made = sample();
  for (const os::Injector injector : {refuse_open, refuse_direct_reads}) {
    const Injected injected(injector);
    const LoadedTensors loaded = made.load("cpu", {.mode = LoadMode::direct});
    EXPECT_EQ(loaded.report().asked_mode, LoadMode::direct);
    EXPECT_EQ(loaded.report().mode, LoadMode::read);
    EXPECT_NE(loaded.report().mode_reason.find("refuses direct reads"), std::string::npos) << loaded.report().mode_reason;
    EXPECT_NE(loaded.report().mode_reason.find(made.path()), std::string::npos) << loaded.report().mode_reason;
    made.expect_all(loaded, {}, "without direct reads");
  }
}

TEST(LoadFault, ReadsThousandsOfSmallTensorsInFewCalls) {
  TensorFiles made;
  for (int i = 0; i < 5'000; ++i) made.add(DType::f32, {i % 50});
  made.write();
  for (const Device device : {Device("cpu"), load_devices()[3]}) {
    for (const std::optional<DType> dtype : {std::optional<DType>(), std::optional(DType::bf16)}) {
      g_reads = 0;
      {
        const Injected injected(count_reads);
        const LoadOptions options{.threads = 2, .mode = LoadMode::read, .dtype = dtype};
        made.expect_all(made.load(device, options), options, device.to_string());
      }
      EXPECT_LE(g_reads, 5'000 / 60) << "64 at a time";
    }
  }
}

TEST(ReadParts, GoesOnAfterShortReadsAndSignals) {
  // The kernel returns this file one page at a time.
  const os::Descriptor file(open("/proc/kallsyms", O_RDONLY | O_CLOEXEC));
  if (!file) GTEST_SKIP() << "there is no /proc/kallsyms";
  std::string one(100'000, '\0');
  const os::ReadTarget whole{one.data(), one.size()};
  const Result<std::size_t> read = os::read_parts(file.number(), 0, {&whole, 1});
  ASSERT_TRUE(read.ok());
  if (*read < one.size()) GTEST_SKIP() << "it is short here";
  std::string many(100'000, '\0');
  std::vector<os::ReadTarget> targets;
  for (std::size_t at = 0; at < many.size(); at += 1'000) {
    targets.push_back({many.data() + at, 0});
    targets.push_back({many.data() + at, 1'000});
  }
  const FailingCall failing(3, EINTR, {});
  const Result<std::size_t> again = os::read_parts(file.number(), 0, targets);
  ASSERT_TRUE(again.ok());
  EXPECT_EQ(*again, many.size());
  EXPECT_TRUE(FailingCall::was_hit());
  EXPECT_EQ(one, many);
}

}  // namespace
}  // namespace berth::testing
