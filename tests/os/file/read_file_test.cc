// SPDX-License-Identifier: Apache-2.0
#include "os/file/read_file.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <thread>

#include "base/allowance.h"
#include "os/inject.h"
#include "os/system.h"

namespace berth::internal::os {
namespace {

class OsReadFile : public ::testing::Test {
 protected:
  void SetUp() override {
    std::filesystem::create_directories(folder_ / "inner" / "deep");
    std::ofstream(folder_ / "inner" / "data") << "12345";
    std::ofstream(folder_ / "inner" / "deep" / "data") << "1234567";
    std::ofstream(folder_ / "secret") << "1";
  }
  void TearDown() override {
    set_injector(nullptr);
    std::filesystem::remove_all(folder_);
  }
  static Result<std::string> read(const char* path, std::size_t most = SIZE_MAX) {
    return read_whole(path, most, std::chrono::milliseconds(1));
  }
  static inline std::string s_cut;
  Result<std::uint64_t> size(const char* path) const { return size_beneath((folder_ / "inner").c_str(), path); }

  const std::filesystem::path folder_ = std::filesystem::temp_directory_path() / ("berth_read_" + std::to_string(process_id()));
};

TEST_F(OsReadFile, ReadsWhatIsThere) {
  EXPECT_EQ(*read((folder_ / "inner" / "data").c_str()), "12345");
  std::ofstream(folder_ / "empty").close();
  EXPECT_EQ(*read((folder_ / "empty").c_str()), "");
  EXPECT_EQ(*read("/dev/null"), "");
  const std::string long_one(5'000'000, 'x');
  std::ofstream(folder_ / "long") << long_one;
  EXPECT_EQ(*read((folder_ / "long").c_str()), long_one);
  EXPECT_EQ(read((folder_ / "long").c_str(), 4'999'999).failure().os_error, EFBIG);
}

TEST_F(OsReadFile, KeepsTheTimeOfTheThreadBetweenPieces) {
  std::ofstream(folder_ / "long") << std::string(5'000'000, 'x');
  base::Allowance over({.until = base::Allowance::Clock::now()});
  EXPECT_THROW((void)read((folder_ / "long").c_str()), base::OutOfTime);
}

TEST_F(OsReadFile, SaysWhyNot) {
  EXPECT_EQ(read((folder_ / "nothing").c_str()).failure().os_error, ENOENT);
  EXPECT_EQ(read(folder_.c_str()).failure().code, ErrorCode::unsupported);
  EXPECT_EQ(size("nothing").failure().os_error, ENOENT);
  EXPECT_EQ(size_beneath("/nowhere/at/all", "data").failure().os_error, ENOENT);
}

TEST_F(OsReadFile, NoNameLeadsOutOfTheFolder) {
  std::filesystem::create_symlink("data", folder_ / "inner" / "link");
  std::filesystem::create_symlink("deep", folder_ / "inner" / "folder_link");
  ASSERT_EQ(mkfifo((folder_ / "inner" / "pipe").c_str(), 0600), 0);
  EXPECT_EQ(*size("data"), 5U);
  EXPECT_EQ(*size("deep/data"), 7U);
  EXPECT_EQ(size("../secret").failure().code, ErrorCode::path_escape);
  EXPECT_EQ(size("deep/../../secret").failure().code, ErrorCode::path_escape);
  EXPECT_FALSE(size((folder_ / "secret").c_str()).ok());
  EXPECT_EQ(size("link").failure().code, ErrorCode::path_escape) << "the last name is a link";
  EXPECT_EQ(size("folder_link/data").failure().code, ErrorCode::path_escape) << "a folder on the way is a link";
  EXPECT_EQ(size("pipe").failure().code, ErrorCode::unsupported) << "a FIFO does not block";
  EXPECT_EQ(size("deep").failure().code, ErrorCode::unsupported);
}

TEST_F(OsReadFile, EveryCallCanBeMadeToFail) {
  const std::string path = (folder_ / "inner" / "data").string();
  set_injector([](std::string_view call) noexcept { return call == "open" ? EMFILE : 0; });
  EXPECT_EQ(read(path.c_str()).failure().os_error, EMFILE);
  EXPECT_EQ(size("data").failure().os_error, EMFILE);
  set_injector([](std::string_view call) noexcept { return call == "fstat" ? EIO : 0; });
  EXPECT_EQ(read(path.c_str()).failure().os_error, EIO);
  EXPECT_EQ(size("data").failure().os_error, EIO);
  set_injector([](std::string_view call) noexcept { return call == "read" ? EIO : 0; });
  EXPECT_EQ(read(path.c_str()).failure().code, ErrorCode::io_error);
}

// At any instant, by another thread.
TEST_F(OsReadFile, AFileThatIsCutIsAnErrorAndNoSignal) {
  const std::string path = (folder_ / "cut").string();
  const std::string all(8'000'000, 'x');
  for (int round = 0; round < 40; ++round) {
    std::ofstream(path) << all;
    std::jthread other([&] {
      for (int i = 0; i < 50 * round; ++i) std::this_thread::yield();
      std::filesystem::resize_file(path, 1000);
    });
    const Result<std::string> got = read(path.c_str());
    other.join();
    if (got)
      EXPECT_TRUE(*got == all || got->size() == 1000U) << got->size();
    else
      EXPECT_EQ(got.failure().code, ErrorCode::io_error);
  }
  set_injector([](std::string_view call) noexcept {
    if (call == "read") std::filesystem::resize_file(s_cut, 3);
    return 0;
  });
  std::ofstream(s_cut = path) << "12345";
  EXPECT_EQ(read(path.c_str()).failure().code, ErrorCode::io_error) << "cut between its status and its bytes";
}

TEST_F(OsReadFile, AFifoIsWaitedForAndNotForEver) {
  const std::string path = (folder_ / "fifo").string();
  ASSERT_EQ(mkfifo(path.c_str(), 0600), 0);
  EXPECT_EQ(read_whole(path.c_str(), SIZE_MAX, std::chrono::milliseconds(1)).failure().code, ErrorCode::timeout);
  std::jthread writer([&] { std::ofstream(path) << "late"; });
  EXPECT_EQ(*read_whole(path.c_str(), SIZE_MAX, std::chrono::minutes(1)), "late");
}

// A writer that has nothing to say yet is waited for: its time is its own.
TEST_F(OsReadFile, AFifoWithAWriterIsReadHoweverLongItTakes) {
  const std::string path = (folder_ / "fifo").string();
  ASSERT_EQ(mkfifo(path.c_str(), 0600), 0);
  const int end = open(path.c_str(), O_RDWR | O_CLOEXEC);
  std::jthread writer([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    EXPECT_EQ(write(end, "slow", 4), 4);
    close(end);
  });
  EXPECT_EQ(*read_whole(path.c_str(), SIZE_MAX, std::chrono::milliseconds(1)), "slow");
}

// Its reader's time is the reader's.
TEST_F(OsReadFile, ASilentWriterIsWaitedForWithinTheTimeOfTheThread) {
  const std::string path = (folder_ / "fifo").string();
  ASSERT_EQ(mkfifo(path.c_str(), 0600), 0);
  const int end = open(path.c_str(), O_RDWR | O_CLOEXEC);
  EXPECT_EQ(write(end, "some", 4), 4);
  base::Allowance over({.until = base::Allowance::Clock::now() + std::chrono::milliseconds(20)});
  EXPECT_THROW((void)read(path.c_str()), base::OutOfTime);
  close(end);
}

TEST_F(OsReadFile, AFileOfTheKernelThatIsNoFileSaysSo) {
  const std::string path = (folder_ / "inner" / "data").string();
  set_injector([](std::string_view call) noexcept { return call == "read" ? EAGAIN : 0; });  // as /proc/kmsg
  const Failure endless = read(path.c_str()).failure();
  EXPECT_EQ(endless.code, ErrorCode::io_error);
  EXPECT_NE(std::string_view(endless.why).find("it has no end"), std::string_view::npos) << endless.why;
  set_injector(nullptr);
  const std::string sparse = "/sys/kernel/mm/transparent_hugepage/enabled";  // of a page, it says
  if (!std::filesystem::exists(sparse)) GTEST_SKIP() << "no such file on this machine";
  const Result<std::string> got = read(sparse.c_str());
  EXPECT_TRUE(got || std::string_view(got.failure().why).find("fewer bytes") != std::string_view::npos) << got.failure().why;
}

// As on a kernel without openat2.
TEST_F(OsReadFile, WithoutTheKernelsHelpItIsAsStrict) {
  std::filesystem::create_symlink("data", folder_ / "inner" / "link");
  std::filesystem::create_symlink("deep", folder_ / "inner" / "folder_link");
  ASSERT_EQ(mkfifo((folder_ / "inner" / "pipe").c_str(), 0600), 0);
  set_injector([](std::string_view call) noexcept { return call == "openat2" ? ENOSYS : 0; });
  EXPECT_EQ(*size("data"), 5U);
  EXPECT_EQ(*size("./deep//data"), 7U);
  EXPECT_EQ(size("../secret").failure().code, ErrorCode::path_escape);
  EXPECT_EQ(size("link").failure().code, ErrorCode::path_escape);
  EXPECT_FALSE(size("folder_link/data").ok());
  EXPECT_EQ(size("pipe").failure().code, ErrorCode::unsupported);
}

}  // namespace
}  // namespace berth::internal::os
