// SPDX-License-Identifier: Apache-2.0
// Files that are cut between the look at them and the touch of their mapped bytes.
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <fstream>
#include <functional>
#include <random>
#include <thread>

#include "base/sanitizers.h"
#include "berth/copy/copy.h"
#include "berth/file/load.h"
#include "file/file_support.h"
#include "os/inject.h"
#include "support/errors.h"
#include "support/everything.h"
#include "support/heap_faults.h"
#include "support/scale.h"

namespace berth::testing {

using namespace internal;
namespace {

constexpr std::int64_t kElements = 1 << 20;
constexpr std::int64_t kBytes = 4 * kElements;

// Cuts a file at the instant when a call has looked and is about to touch.
class Cut {
 public:
  explicit Cut(std::string path) {
    path_ = std::move(path);
    os::set_injector([](std::string_view call) noexcept {
      if (call != "populate") return 0;
      EXPECT_EQ(truncate(path_.c_str(), 5000), 0);
      return EINVAL;  // as a kernel that cannot look
    });
  }
  ~Cut() { os::set_injector(nullptr); }
  Cut(const Cut&) = delete;
  Cut& operator=(const Cut&) = delete;

 private:
  static inline std::string path_;
};

class FileCut : public ::testing::Test {
 protected:
  std::string path() const { return folder_ / "data"; }
  Storage whole(FileMode mode, const MapOptions& options = {}) const {
    const std::string all(static_cast<std::size_t>(kBytes), '\x01');
    folder_.write("data", all);
    return map_file(path(), {kElements}, DType::f32, mode, options);
  }

  // Each touch of the library is an error that names the file.
  void expect_error(const std::function<void(const Storage&)>& touch, const char* what, std::initializer_list<FileMode> modes) const {
    for (const FileMode mode : modes) {
      for (const bool expected : {false, true}) {
        SCOPED_TRACE(std::string(what) + ", " + std::string(to_string(mode)));
        const Storage x = whole(mode, {.expect_changes = expected});
        const Cut cut(path());
        try {
          touch(x);
          ADD_FAILURE() << "no error";
        } catch (const FormatError& error) {
          EXPECT_EQ(to_string(error.code()), to_string(ErrorCode::file_truncated));
          EXPECT_NE(std::string(error.what()).find(path()), std::string::npos) << error.what();
        }
      }
    }
  }
  void expect_error_of_reading(const char* what, const std::function<void(const Storage&)>& touch) const {
    expect_error(touch, what, {FileMode::read, FileMode::read_write, FileMode::private_copy});
  }
  void expect_error_of_writing(const char* what, const std::function<void(const Storage&)>& touch) const {
    expect_error(touch, what, {FileMode::read_write, FileMode::private_copy});
  }

  Folder folder_;
};

TEST_F(FileCut, IsAnErrorOfWhatReads) {
  const Storage other = empty({kElements}, DType::f32, "cpu");
  const Storage turned = empty({1024, 1024}, DType::bf16, "cpu").permute({1, 0});
  expect_error_of_reading("clone", [](const Storage& x) { (void)x.clone(); });
  expect_error_of_reading("a conversion", [](const Storage& x) { (void)x.to(DType::bf16); });
  expect_error_of_reading("a transpose", [&](const Storage& x) { turned.copy_from(x.reshape({1024, 1024})); });
  expect_error_of_reading("strides", [&](const Storage& x) { (void)x.slice(0, 1, kElements, 3).clone(); });
  expect_error_of_reading("to shared", [](const Storage& x) { (void)x.to("shared"); });
  expect_error_of_reading("to pinned", [](const Storage& x) { (void)x.to("pinned"); });
  expect_error_of_reading("to a device", [](const Storage& x) { (void)x.to("sim:0"); });
  expect_error_of_reading("to a device, converted", [](const Storage& x) { (void)x.to(Device("sim:0"), DType::f16); });
  expect_error_of_reading("one element", [](const Storage& x) { (void)x.item<float>({kElements - 1}); });
  expect_error_of_reading("a few", [&](const Storage& x) { other.slice(0, 0, 10).copy_from(x.slice(0, kElements - 10, kElements)); });
  expect_error_of_reading("equal", [&](const Storage& x) { (void)equal(x, other); });
  expect_error_of_reading("equal with strides",
                          [&](const Storage& x) { (void)equal(x.slice(0, 1, kElements, 2), x.slice(0, 0, kElements - 1, 2)); });
  expect_error_of_reading("its buffer", [&](const Storage& x) { other.buffer().copy_from(x.buffer()); });
  expect_error_of_reading("overlapping", [&](const Storage& x) { (void)x.slice(0, 2000, kElements).clone(); });
}

TEST_F(FileCut, IsAnErrorInStreams) {
  for (const char* const device : {"cpu", "sim:0"}) {
    const Stream stream = make_stream(device);
    expect_error_of_reading(device, [&](const Storage& x) {
      const Storage target = empty({kElements}, DType::bf16, device);
      target.copy_from(x, {.stream = stream, .non_blocking = true}).wait();
    });
  }
}

TEST_F(FileCut, IsAnErrorOfBatches) {
  for (const char* const device : {"cpu", "sim:0"}) {
    for (const std::int64_t count : {3, 2048}) {
      const auto parts = [&](const Storage& whole) {
        std::vector<Storage> all;
        for (std::int64_t i = 0; i < count; ++i) all.push_back(whole.slice(0, i * (kElements / count), (i + 1) * (kElements / count)));
        return all;
      };
      const std::vector<Storage> targets = parts(empty({kElements}, DType::f32, device));
      const std::vector<Storage> converted = parts(empty({kElements}, DType::f16, device));
      expect_error_of_reading(device, [&](const Storage& x) { copy_batch(parts(x), targets); });
      expect_error_of_reading(device, [&](const Storage& x) { copy_batch(parts(x), converted); });
    }
  }
}

TEST_F(FileCut, IsAnErrorOfWhatWrites) {
  const Storage other = full({kElements}, 3, DType::f32, "cpu");
  const Storage away = full({kElements}, 3, DType::f32, "sim:0");
  expect_error_of_writing("fill", [](const Storage& x) { x.fill(1); });
  expect_error_of_writing("fill with a pattern", [](const Storage& x) { x.slice(0, 0, kElements, 2).fill(1.5); });
  expect_error_of_writing("copy_from", [&](const Storage& x) { x.copy_from(other); });
  expect_error_of_writing("from a device", [&](const Storage& x) { x.copy_from(away); });
  expect_error_of_writing("from another dtype", [&](const Storage& x) { x.copy_from(other.to(DType::i32)); });
  expect_error_of_writing("a move within it", [](const Storage& x) { x.slice(0, 1, kElements).copy_from(x.slice(0, 0, kElements - 1)); });
  expect_error_of_writing("its buffer", [](const Storage& x) { x.buffer().fill(1); });
}

// Whichever of two files it is that is cut, in a copy from one to the other.
TEST_F(FileCut, NamesTheFileThatWasCutOfTwo) {
  folder_.write("other", std::string(static_cast<std::size_t>(kBytes), '\x02'));
  for (const char* const cut : {"data", "other"}) {
    SCOPED_TRACE(cut);
    const Storage x = whole(FileMode::read);
    const Storage y = map_file(folder_ / "other", {kElements}, DType::f32, FileMode::private_copy);
    ASSERT_EQ(truncate((folder_ / cut).c_str(), 5000), 0);
    for (const bool batch : {false, true}) {
      try {
        batch ? copy_batch(std::vector{x.span()}, std::vector{y.span()}) : copy(x.span(), y.span());
        ADD_FAILURE() << "no error";
      } catch (const FormatError& error) {
        EXPECT_NE(std::string(error.what()).find(folder_ / cut), std::string::npos) << error.what();
      }
    }
    folder_.write("other", std::string(static_cast<std::size_t>(kBytes), '\x02'));
  }
}

TEST_F(FileCut, OfOneFileNeedsNoHeap) {
  const Storage x = whole(FileMode::private_copy).slice(0, 0, 10);
  const Storage target = empty({10}, DType::f32, "cpu");
  target.copy_from(x);  // the first one installs the handler
  int news = 0;
  const AtNew counted([&] { ++news; });
  target.copy_from(x);
  x.copy_from(target);
  x.fill(1);
  copy_bytes(target.data_ptr(), "cpu", x.data_ptr(), "cpu", 40);
  EXPECT_EQ(news, 0);
}

TEST_F(FileCut, IsAnErrorOfWhatIsSaved) {
  // The target is a file of another folder, and is not left behind.
  const Folder out;
  expect_error_of_reading("npy", [&](const Storage& x) { save_npy(out / "x.npy", x); });
  expect_error_of_reading("npz", [&](const Storage& x) { save_npz(out / "x.npz", {{"x", x}}); });
  expect_error_of_reading("safetensors", [&](const Storage& x) { save_safetensors(out / "x.safetensors", {{"x", x}}); });
  EXPECT_EQ(out.count(), 0U);
}

// Addresses that berth did not get as a mapped storage are not looked at before, but they are mapped all the same.
TEST_F(FileCut, IsAnErrorAtPlainAddressesToo) {
  const Storage target = empty({kBytes}, DType::u8, "cpu");
  const auto expect_truncated = [&](const char* what, const std::function<void(const Storage&)>& touch) {
    SCOPED_TRACE(what);
    const Storage x = whole(FileMode::read);
    ASSERT_EQ(truncate(path().c_str(), 5000), 0);
    EXPECT_ERROR(touch(x), FormatError, ErrorCode::file_truncated);
  };
  expect_truncated("copy_bytes", [&](const Storage& x) { copy_bytes(target.data_ptr(), "cpu", x.data_ptr(), "cpu", kBytes); });
  expect_truncated("a span", [&](const Storage& x) { copy(x.span(), empty({kElements}, DType::f16, "cpu").span()); });
  expect_truncated("two spans", [&](const Storage& x) { (void)equal(x.span(), empty({kElements}, DType::f32, "cpu").span()); });
  expect_truncated("wrapped", [&](const Storage& x) {
    const Buffer wrapped = wrap_buffer(x.data_ptr(), static_cast<std::size_t>(kBytes), "cpu", [](void*) {});
    (void)Storage(wrapped, DType::u8, {kBytes}, {1}).clone();
  });
  expect_truncated("through DLPack", [&](const Storage& x) { (void)from_dlpack(to_dlpack(x)).clone(); });
}

TEST_F(FileCut, AFileThatGrowsAgainMeanwhileHasChanged) {
  const Storage x = whole(FileMode::read);
  static std::string file;
  file = path();
  os::set_injector([](std::string_view call) noexcept {
    if (call != "sigaction") return 0;
    EXPECT_EQ(truncate(file.c_str(), 5000), 0);
    EXPECT_EQ(truncate(file.c_str(), kBytes), 0);
    return 0;
  });
  EXPECT_ERROR((void)x.clone(), FormatError, ErrorCode::file_changed);  // and not zeros for what was there
  os::set_injector(nullptr);
}

TEST_F(FileCut, AProgramsOwnTouchIsItsOwn) {
  if (kAddressSanitizer || kThreadSanitizer) GTEST_SKIP() << "a sanitizer handles the signal";
  ::testing::GTEST_FLAG(death_test_style) = "threadsafe";
  const Storage x = whole(FileMode::read);
  ASSERT_EQ(truncate(path().c_str(), 5000), 0);
  EXPECT_ERROR((void)x.clone(), FormatError, ErrorCode::file_truncated);
  EXPECT_EXIT(std::exit(x.data<const float>()[kElements - 1] == 0 ? 0 : 1), ::testing::KilledBySignal(SIGBUS), "");
}

TEST_F(FileCut, ADeviceNeverTouchesTheMapping) {
  const Storage x = whole(FileMode::read);
  const Storage target = empty({kElements}, DType::f32, "sim:0");
  EXPECT_TRUE(plan_route(x.span(), target.span()).uses(StepMemory::staging));
  EXPECT_FALSE(plan_route(x.clone().span(), target.span()).uses(StepMemory::staging));
  target.copy_from(x);
  EXPECT_TRUE(equal(target, x));
}

// Many rounds, the file cut and grown by another thread at any instant: errors or the right bytes, and no signal.
TEST_F(FileCut, AtAnyInstantIsAnErrorOrTheRightBytes) {
  std::mt19937_64 random(seed());
  const auto rounds = scaled(3000, 60);
  std::size_t refused = 0;
  const Storage away = empty({kElements}, DType::f32, "sim:0");
  const Storage same = full({kElements}, 0, DType::f32, "cpu");
  same.reinterpret(DType::u8).fill(1);
  const Storage as_bf16 = same.to(DType::bf16);
  for (std::uint64_t round = 0; round < rounds; ++round) {
    const auto kind = static_cast<int>(random() % 6);
    const Storage x = whole(kind == 4 ? FileMode::read_write : FileMode::read);
    std::atomic<bool> go{false};
    const auto spins = random() % 200'000;
    std::thread cutter([&, keep = random() % kBytes] {
      while (!go.load(std::memory_order_acquire)) {
      }
      for (std::atomic<std::uint64_t> i{0}; i < spins; ++i) {
      }
      EXPECT_EQ(truncate(path().c_str(), static_cast<off_t>(keep)), 0);
      if (keep % 2 == 0) {
        EXPECT_EQ(truncate(path().c_str(), kBytes), 0);
      }
    });
    go.store(true, std::memory_order_release);
    try {
      switch (kind) {
        case 0: EXPECT_TRUE(equal(x.clone(), same)); break;
        case 1: EXPECT_TRUE(equal(x.to(DType::bf16), as_bf16)); break;
        case 2: EXPECT_TRUE(equal(x.to("shared"), same)); break;
        case 3:
          away.copy_from(x);
          EXPECT_TRUE(equal(away, same));
          break;
        case 4: x.fill(2); break;
        default: EXPECT_TRUE(equal(x, same)); break;
      }
    } catch (const FormatError&) {
      ++refused;
    } catch (const DeviceError& error) {
      EXPECT_EQ(to_string(error.code()), to_string(ErrorCode::io_error)) << error.what();
      ++refused;
    }
    cutter.join();
    if (HasFailure()) break;
  }
  EXPECT_GT(refused, 0U);
  did(std::to_string(rounds) + " rounds, " + std::to_string(refused) + " refused, seed " + std::to_string(seed()));
}

}  // namespace
}  // namespace berth::testing
