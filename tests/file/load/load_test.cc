// SPDX-License-Identifier: Apache-2.0
// Loading below the formats: every path from a file to a device gives the bytes that a plain copy gives.
#include "berth/file/load.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <set>
#include <thread>

#include "copy/fake_devices.h"
#include "file/load/load_support.h"
#include "support/errors.h"

namespace berth::testing {

using namespace internal;
namespace {

constexpr std::size_t kPieces[] = {256, 4096, 64 << 10, 0};  // bytes; 0: the load chooses

std::vector<Device> targets() {
  std::vector<Device> list = load_devices();
  for (const char* host : {"cpu", "pinned", "shared"}) list.emplace_back(host);
  return list;
}

Shape random_shape(Random& random) {
  switch (random.below(8)) {
    case 0: return {};
    case 1: return {0, 3};
    case 2: return {1 + random.below(200), 1 + random.below(300)};
    case 3: return {20'000 + random.below(30'000)};
    default: return {1 + random.below(5), 1 + random.below(6), 1 + random.below(7)};
  }
}

TEST(Load, GivesTheBytesOfAPlainCopyByEveryWay) {
  Random random(seed());
  const auto files = scaled(200, 12);
  const std::vector<Device> devices = targets();
  std::size_t loads = 0;
  std::set<LoadMode> modes;
  for (std::uint64_t round = 0; round < files; ++round) {
    TensorFiles made;
    for (std::uint64_t i = 0; i < 1 + random.below(60); ++i) {
      if (random.one_in(30)) made.add_file();
      TensorEntry& entry =
          made.add(static_cast<DType>(random.below(kDTypeCount)), random_shape(random), random.one_in(3) ? random.below(200) : 0);
      entry.fortran_order = random.one_in(6);
      if (random.one_in(20)) entry.dtype.reset();
    }
    std::ranges::reverse(made.entries());  // the order of the list differs from that of the bytes
    made.write();
    for (const Device device : devices) {
      LoadOptions options{.threads = static_cast<int>(1 + random.below(4)), .mode = random.one_in(3) ? LoadMode::direct : LoadMode::read};
      constexpr DType kDTypes[] = {DType::f8e4m3, DType::f8e5m2, DType::f16, DType::bf16, DType::f32, DType::f64};
      if (!random.one_in(3)) options.dtype = kDTypes[random.below(std::size(kDTypes))];
      const std::size_t piece_bytes = kPieces[random.below(std::size(kPieces))];
      made.convert_in_place(random.one_in(2));
      const LoadedTensors loaded = made.load(device, options, piece_bytes);
      made.expect_all(loaded, options,
                      "seed " + std::to_string(seed()) + ", round " + std::to_string(round) + ", " + device.to_string() + ", " +
                          std::string(to_string(loaded.report().mode)) + ", pieces of " + std::to_string(piece_bytes));
      modes.insert(loaded.report().mode);
      ++loads;
    }
  }
  EXPECT_TRUE(modes.contains(LoadMode::read));
  did(std::to_string(loads) + " loads, seed " + std::to_string(seed()));
}

TEST(Load, ReachesDevicesWithoutStreams) {
  TensorFiles made;
  for (int i = 0; i < 40; ++i) made.add(i % 2 == 0 ? DType::f32 : DType::bf16, {100 * i}, i % 5 == 0 ? 3 : 0);
  made.write();
  for (const Device device : fake_devices()) {
    for (const std::optional<DType> dtype : {std::optional<DType>(), std::optional(DType::f64), std::optional(DType::f16)}) {
      const LoadOptions options{.threads = 3, .dtype = dtype};
      made.expect_all(made.load(device, options, 1024), options, device.to_string());
    }
  }
}

TEST(Load, BringsTensorsThatAreLargerThanTheScratch) {
  TensorFiles made;
  made.add(DType::i32, {5}, 3);
  made.add(DType::f32, {700'001});
  made.add(DType::f64, {300'000}, 1);
  made.write();
  for (const bool in_place : {false, true}) {
    made.convert_in_place(in_place);
    for (const LoadMode mode : {LoadMode::read, LoadMode::direct}) {
      const LoadOptions options{.threads = 2, .mode = mode, .dtype = DType::bf16};
      for (const Device device : {Device("cpu"), load_devices()[2]})
        made.expect_all(made.load(device, options, 4_MiB), options, device.to_string());
    }
  }
}

TEST(Load, ReportsHowItWent) {
  TensorFiles made;
  made.add(DType::f32, {300, 1000});
  made.add(DType::i32, {10});
  made.add(DType::bf16, {0});
  made.write();
  const LoadedTensors loaded = made.load("sim:0", {.threads = 2, .mode = LoadMode::read, .dtype = DType::bf16}, 64 << 10);
  const LoadReport& report = loaded.report();
  EXPECT_EQ(report.threads, 2);
  EXPECT_EQ(report.tensors, 3U);
  EXPECT_EQ(report.converted, 1U);
  EXPECT_EQ(report.mapped, 0U);
  EXPECT_EQ(report.file_bytes, 1'200'040U);
  EXPECT_EQ(report.target_bytes, 600'040U);
  EXPECT_GT(report.staging_bytes, 0U);
  const auto json = nlohmann::json::parse(to_json(report));
  EXPECT_EQ(json["mode"], "read");
  EXPECT_EQ(json["asked_mode"], "read");
  EXPECT_EQ(json["mode_reason"], "it was asked for");
  EXPECT_EQ(json["device"], "sim:0");
  EXPECT_EQ(json["threads"], 2);
  EXPECT_EQ(json["file_bytes"], 1'200'040);
}

TEST(Load, FindsTensorsByName) {
  TensorFiles made;
  for (int i = 0; i < 20; ++i) made.add(DType::u8, {i});
  made.write();
  const LoadedTensors all = made.load("cpu", {});
  EXPECT_EQ(all.size(), 20U);
  EXPECT_EQ(all.begin()->name, "t0");
  EXPECT_EQ(all["t13"].num_elements(), 13U);
  EXPECT_EQ(all.find("t20"), nullptr);
  EXPECT_ERROR((void)all["nothing"], AccessError, ErrorCode::not_found);
  const LoadedTensors some = made.load("cpu", {.select = [](const TensorEntry& entry) { return entry.size_bytes > 15; }});
  EXPECT_EQ(some.size(), 4U);
  EXPECT_EQ(some.report().file_bytes, 16U + 17 + 18 + 19);
  EXPECT_EQ(some.find("t15"), nullptr);
  EXPECT_TRUE(equal(some["t19"], all["t19"]));
}

TEST(Load, LeavesEverythingButFloatingPointAsItIs) {
  TensorFiles made;
  for (const DTypeInfo& dtype : all_dtypes()) made.add(dtype.dtype, {50});
  made.write();
  const LoadedTensors loaded = made.load("cpu", {.dtype = DType::f16});
  for (const TensorEntry& entry : made.entries()) {
    const bool floating = info(*entry.dtype).kind == DTypeKind::floating;
    EXPECT_EQ(loaded[entry.name].dtype(), floating ? DType::f16 : *entry.dtype);
  }
  EXPECT_EQ(loaded.report().converted, 5U) << "two f8, bf16, f32, f64";
}

TEST(Load, RefusesOptionsThatMakeNoSense) {
  TensorFiles made;
  made.add(DType::f32, {10});
  made.write();
  EXPECT_ERROR(made.load("cpu", {.dtype = DType::i8}), ArgumentError, ErrorCode::unsupported_dtype);
  EXPECT_ERROR(made.load("cpu", {.threads = -1}), ArgumentError, ErrorCode::limit_exceeded);
  EXPECT_ERROR(made.load("cpu", {.threads = 100'000}), ArgumentError, ErrorCode::limit_exceeded);
  EXPECT_ERROR(made.load("sim:77", {}), DeviceError, ErrorCode::no_such_device);
  EXPECT_ERROR((void)parse_load_mode("fast"), ArgumentError, ErrorCode::invalid_argument);
  for (const LoadMode mode : {LoadMode::automatic, LoadMode::map, LoadMode::read, LoadMode::direct})
    EXPECT_EQ(parse_load_mode(to_string(mode)), mode);
}

TEST(Load, TakesFilesWithNothingInThem) {
  TensorFiles made;
  made.add(DType::f32, {0});
  made.add(DType::f32, {4, 0, 3});
  made.write();
  int calls = 0;
  const auto count = [&](const LoadProgress& at) { return ++calls, at.done_bytes == at.total_bytes; };
  for (const char* device : {"cpu", "sim:0"}) {
    const LoadedTensors loaded = made.load(device, {.dtype = DType::bf16, .progress = count});
    EXPECT_EQ(loaded["t1"].shape(), (Shape{4, 0, 3}));
    EXPECT_EQ(loaded["t1"].dtype(), DType::bf16);
    EXPECT_EQ(loaded.report().threads, 0);
  }
  EXPECT_EQ(calls, 2);
}

TEST(Load, ChoosesDirectReadsForWhatNoCacheCouldKeep) {
  using load::choose_mode;
  EXPECT_EQ(choose_mode(1_GiB, 16_GiB), LoadMode::read);
  EXPECT_EQ(choose_mode(8_GiB, 16_GiB), LoadMode::read);
  EXPECT_EQ(choose_mode(9_GiB, 16_GiB), LoadMode::direct);
  EXPECT_EQ(choose_mode(9_GiB, 0), LoadMode::read) << "nothing is known of the memory";
  TensorFiles made;
  made.add(DType::f32, {10});
  made.write();
  const LoadedTensors loaded = made.load("cpu", {});
  EXPECT_EQ(loaded.report().asked_mode, LoadMode::automatic);
  EXPECT_EQ(loaded.report().mode, LoadMode::read);
}

TEST(Load, MapsOnTheCpuAlone) {
  TensorFiles made;
  made.add(DType::f32, {10});
  made.add(DType::i32, {10});
  made.write();
  const LoadedTensors there = made.load("sim:0", {.mode = LoadMode::map});
  EXPECT_EQ(there.report().mode, LoadMode::read);
  EXPECT_NE(there.report().mode_reason.find("only tensors on cpu"), std::string::npos) << there.report().mode_reason;
  made.expect_all(there, {}, "sim:0");
  const LoadedTensors here = made.load("cpu", {.mode = LoadMode::map, .dtype = DType::bf16});
  EXPECT_EQ(here.report().mode, LoadMode::map);
  made.expect_all(here, {.dtype = DType::bf16}, "cpu");
}

TEST(Load, HoldsNoMoreThanItsStagingHoweverLargeTheFileIs) {
  constexpr std::size_t kPiece = 64 << 10;
  for (const std::size_t elements : {std::size_t{1} << 20, std::size_t{1} << 22}) {
    TensorFiles made;
    made.add(DType::bf16, {elements / 2});
    for (int i = 0; i < 100; ++i) made.add(DType::bf16, {elements / 200});
    made.write();
    made.convert_in_place(elements == std::size_t{1} << 20);
    for (const Device device : load_devices()) {
      const bool pinned = backend(device).properties().abilities.wants_pinned;
      // Two rooms for each of two threads; for devices whose elements the host converts, each also has a
      // scratch buffer that stays in the cache.
      const auto room = limit(pool(pinned ? "pinned" : "cpu"), 4 * kPiece + (pinned ? 0 : 4_MiB));
      const auto before = default_allocator(room->device());
      set_default_allocator(room->device(), room);
      const LoadOptions options{.threads = 2, .dtype = DType::f32};
      const LoadedTensors loaded = made.load(device, options, kPiece);
      EXPECT_EQ(room->stats().live_blocks, 0U) << "all of it is back";
      set_default_allocator(room->device(), before);
      EXPECT_LE(loaded.report().staging_bytes, 2 * 4 * kPiece + 4_MiB);
      made.expect_all(loaded, options, device.to_string());
    }
  }
}

TEST(Load, ThrowsOutOfMemoryForTensorsAndForStagingAndLeavesNothing) {
  const Device device = make_sim({.capacity_bytes = 16_MiB, .seed = seed(), .wants_pinned = true});
  TensorFiles made;
  for (int i = 0; i < 8; ++i) made.add(DType::f32, {256 << 10});
  made.write();
  const auto small = limit(pool(device), 3_MiB);
  EXPECT_THROW(made.load(small, {.threads = 2}), OutOfMemory);
  EXPECT_EQ(small->stats().live_blocks, 0U);
  const auto before = default_allocator("pinned");
  const auto tight = limit(pool("pinned"), 64_KiB);
  set_default_allocator("pinned", tight);
  EXPECT_THROW(made.load(device, {.threads = 2}), OutOfMemory);
  set_default_allocator("pinned", before);
  EXPECT_EQ(tight->stats().live_blocks, 0U);
  EXPECT_EQ(default_allocator(device)->stats().live_blocks, 0U);
  made.expect_all(made.load(device, {.threads = 2}), {}, "afterwards");
}

TEST(LoadProgress, IsToldToTheCallerOnItsOwnThread) {
  TensorFiles made;
  for (int i = 0; i < 60; ++i) made.add(DType::f32, {1000 * i});
  made.write();
  for (const Device device : {Device("cpu"), load_devices()[0], load_devices()[3]}) {
    for (int threads = 1; threads <= 4; ++threads) {
      std::vector<LoadProgress> told;
      bool here = true;
      const auto caller = std::this_thread::get_id();
      const LoadOptions options{.threads = threads, .progress = [&](const LoadProgress& at) {
                                  told.push_back(at);
                                  here = here && std::this_thread::get_id() == caller;
                                  return true;
                                }};
      made.load(device, options, 16 << 10);
      EXPECT_TRUE(here);
      ASSERT_FALSE(told.empty());
      for (std::size_t i = 1; i < told.size(); ++i) EXPECT_LT(told[i - 1].done_bytes, told[i].done_bytes);
      for (const LoadProgress& at : told) EXPECT_EQ(at.total_bytes, made.bytes());
      EXPECT_EQ(told.back().done_bytes, made.bytes());
      if (threads == 1) {
        EXPECT_GT(told.size(), 100U) << "one for each piece";
      }
    }
  }
}

TEST(LoadProgress, StopsALoadByReturningFalse) {
  TensorFiles made;
  for (int i = 0; i < 60; ++i) made.add(DType::f32, {1000 * i});
  made.write();
  for (const Device device : {Device("cpu"), load_devices()[1], load_devices()[2]}) {
    const auto live = default_allocator(device)->stats().live_blocks;
    const LoadOptions options{.threads = 1, .progress = [](const LoadProgress& at) { return at.done_bytes < 1'000'000; }};
    EXPECT_ERROR(made.load(device, options, 16 << 10), Error, ErrorCode::cancelled);
    EXPECT_EQ(default_allocator(device)->stats().live_blocks, live);
    const LoadOptions late{.threads = 1, .progress = [](const LoadProgress& at) { return at.done_bytes < at.total_bytes; }};
    made.expect_all(made.load(device, late, 16 << 10), {}, "at the end it is too late to say no");
  }
}

TEST(LoadProgress, NestsWhatTheCallbackThrows) {
  TensorFiles made;
  made.add(DType::f32, {100'000});
  made.write();
  const LoadOptions options{.threads = 3, .progress = [](const LoadProgress&) -> bool { throw std::runtime_error("mine"); }};
  for (const char* device : {"cpu", "sim:0"}) {
    try {
      made.load(device, options, 16 << 10);
      FAIL() << "nothing was thrown";
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::callback_failed);
      EXPECT_THROW(std::rethrow_if_nested(error), std::runtime_error);
    }
  }
}

}  // namespace
}  // namespace berth::testing
