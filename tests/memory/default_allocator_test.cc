// SPDX-License-Identifier: Apache-2.0
#include "berth/memory/default_allocator.h"

#include <gtest/gtest.h>

#include <thread>

#include "support/errors.h"
#include "support/everything.h"

namespace berth::testing {
namespace {

TEST(DefaultAllocator, IsMadeOncePerDevice) {
  const Device device = make_sim({});
  std::vector<const Allocator*> seen(16);
  std::vector<std::thread> threads;
  for (const Allocator*& entry : seen) threads.emplace_back([&] { entry = default_allocator(device).get(); });
  for (std::thread& thread : threads) thread.join();
  for (const Allocator* const one : seen) EXPECT_EQ(one, seen.front());
  EXPECT_NE(default_allocator(device), default_allocator("cpu"));
}

TEST(DefaultAllocator, IsReplacedWhileStoragesOfTheOldOneLive) {
  const Device device = make_sim({});
  const Storage before = full({4}, 1, DType::i32, device);
  const auto tracked = track(direct(device));
  set_default_allocator(device, tracked);
  const Storage after = full({4}, 2, DType::i32, device);
  EXPECT_EQ(tracked->live().size(), 1U);
  EXPECT_EQ(before.buffer().allocator()->name(), "pool");
  EXPECT_EQ(after.buffer().allocator()->name(), "track(direct)");
  EXPECT_EQ(before.to("cpu").item<std::int32_t>({0}), 1);
}

TEST(DefaultAllocator, IsReplacedUnderLoad) {
  const Device device = make_sim({});
  std::atomic<bool> stop{false};
  std::thread user([&] {
    while (!stop) zeros({8}, DType::u8, device);
  });
  for (int i = 0; i < 50; ++i) set_default_allocator(device, limit(direct(device), 1_MiB));
  stop = true;
  user.join();
  EXPECT_EQ(default_allocator(device)->name(), "limit(direct)");
}

TEST(DefaultAllocator, AnAllocatorOfAnotherDeviceIsRefused) {
  EXPECT_ERROR(set_default_allocator("sim:0", direct("cpu")), ArgumentError, ErrorCode::wrong_device);
  EXPECT_ERROR(set_default_allocator("sim:0", nullptr), ArgumentError, ErrorCode::wrong_device);
}

TEST(DefaultAllocator, IsChosenByTheEnvironment) {
  setenv("BERTH_SIM_ALLOCATOR", "arena:3MiB", 1);
  const Device device = make_sim({});
  EXPECT_EQ(default_allocator(device)->settings(), "arena of 3 MiB on " + device.to_string());
  unsetenv("BERTH_SIM_ALLOCATOR");
}

TEST(DefaultAllocator, AnUnknownNameIsAnsweredWithTheKnownOnes) {
  setenv("BERTH_SIM_ALLOCATOR", "magic", 1);
  const Device device = make_sim({});
  EXPECT_ERROR(default_allocator(device), ArgumentError, ErrorCode::invalid_argument);
  try {
    empty({1}, DType::u8, device);
  } catch (const ArgumentError& error) {
    EXPECT_NE(error.asked().find("BERTH_SIM_ALLOCATOR=magic"), std::string::npos) << error.what();
    EXPECT_NE(error.help().find("arena, direct"), std::string::npos) << error.what();
  }
  unsetenv("BERTH_SIM_ALLOCATOR");
  EXPECT_NO_THROW(default_allocator(device)) << "and once it is put right, it works";
}

TEST(DefaultAllocator, IsCheckedWhenTheEnvironmentSaysSo) {
  const auto settings = [](const char* value) {
    setenv("BERTH_CHECK", value, 1);
    const Device device = make_sim({});
    const std::string text = default_allocator(device)->settings();
    unsetenv("BERTH_CHECK");
    return text.substr(0, text.find(" on "));
  };
  EXPECT_EQ(settings("1"), "check (canary 16 B, quarantine 64 MiB in 4096 blocks) over pool");
  EXPECT_EQ(settings("abort"), settings("1"));
  EXPECT_EQ(settings("zero,canary=64,abort,blocks=9,quarantine=1MiB"), "check (canary 64 B, quarantine 1 MiB in 9 blocks, zero) over pool");
  EXPECT_EQ(settings("0"), "pool");
  EXPECT_EQ(settings(""), "pool");
}

TEST(DefaultAllocator, AnUnknownWayToCheckIsRefusedAndTheKnownOnesAreSaid) {
  const Device device = make_sim({});
  for (const char* bad : {"2", "yes", "zeros", "guard", "guard=", "guard=x", "guard=0", "guard=2,guard=3", "1 ", "canary=65KiB"}) {
    setenv("BERTH_CHECK", bad, 1);
    EXPECT_ERROR(default_allocator(device), ArgumentError, ErrorCode::invalid_argument);
    try {
      default_allocator(device);
    } catch (const ArgumentError& error) {
      EXPECT_NE(error.asked().find(std::string("BERTH_CHECK=") + bad), std::string::npos) << error.what();
    }
  }
  unsetenv("BERTH_CHECK");
  EXPECT_NO_THROW(default_allocator(device)) << "and once it is put right, it works";
}

TEST(MakeAllocator, ReadsNamesAndOptions) {
  EXPECT_EQ(make_allocator("direct", "cpu")->name(), "direct");
  EXPECT_EQ(make_allocator("pool:64MiB", "cpu")->settings(), "pool on cpu:0, at most 64 MiB, idle memory released after 10 s");
  EXPECT_EQ(make_allocator("pool:limit=8GiB,decay=5s", "cpu")->settings(), "pool on cpu:0, at most 8 GiB, idle memory released after 5 s");
  EXPECT_EQ(make_allocator("pool:decay=never", "cpu")->settings(), "pool on cpu:0, idle memory kept");
  EXPECT_EQ(make_allocator("pool:wait_for_streams=no,background_trim=yes", "cpu")->settings(),
            "pool on cpu:0, idle memory released after 10 s by a thread, without waiting for streams");
  EXPECT_THROW(make_allocator("pool:wait_for_streams=maybe", "cpu"), ArgumentError);
  EXPECT_THROW(make_allocator("pool:decay=never,background_trim=yes", "cpu"), ArgumentError);
  EXPECT_EQ(make_allocator("pool:decay=0", "cpu")->settings(), "pool on cpu:0, idle memory released after 0 s");
  EXPECT_EQ(make_allocator("pool:small=60KiB,waits=5", "cpu")->settings(),
            "pool on cpu:0, small blocks up to 60 KiB, idle memory released after 10 s");
  for (const char* wrong : {"pool:small=15KiB",      "pool:small=129KiB",
                            "pool:small=x",          "pool:waits",
                            "pool:waits=-1",         "pool:waits=many",
                            "pool:waits=4294967296", "pool:decay",
                            "pool:decay=",           "pool:decay=5",
                            "pool:decay=-1s",        "pool:decay=5s,decay=6s",
                            "pool:limit=0",          "pool:0",
                            "pool:8GiB,decay=5s",    "pool:decay=9999999999999999h",
                            "pool:decay=5 parsecs",  "pool:ratio=0.99",
                            "pool:ratio=nan",        "pool:ratio=inf",
                            "pool:ratio=-inf"}) {
    EXPECT_ERROR((void)make_allocator(wrong, "cpu"), ArgumentError, ErrorCode::invalid_argument);
  }
  const auto lavish = make_allocator("pool:ratio=" + std::string(300, '9'), make_sim({}));
  lavish->deallocate(lavish->allocate({.bytes = 1_MiB}));
  EXPECT_EQ(make_allocator("arena:64KiB", "cpu")->settings(), "arena of 64 KiB on cpu:0");
  for (const char* bad : {"direct:5", "arena:x", "arena:0", "arena:-1", "", "Direct", "pool2", "pool:x", "pool:0"})
    EXPECT_ERROR(make_allocator(bad, "cpu"), ArgumentError, ErrorCode::invalid_argument);
  EXPECT_EQ(allocator_names(), (std::vector<std::string>{"arena", "direct", "exact", "pool", "rounded"}));
}

}  // namespace
}  // namespace berth::testing
