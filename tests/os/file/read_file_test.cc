// SPDX-License-Identifier: Apache-2.0
#include "os/file/read_file.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <cerrno>
#include <filesystem>
#include <fstream>

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
  Result<std::uint64_t> size(const char* path) const { return size_beneath((folder_ / "inner").c_str(), path); }

  const std::filesystem::path folder_ = std::filesystem::temp_directory_path() / ("berth_read_" + std::to_string(process_id()));
};

TEST_F(OsReadFile, MapsWhatIsThere) {
  const Result<MappedFile> mapped = map_file((folder_ / "inner" / "data").c_str());
  ASSERT_TRUE(mapped.ok());
  EXPECT_EQ(mapped->bytes(), "12345");
  std::ofstream(folder_ / "empty").close();
  EXPECT_EQ(map_file((folder_ / "empty").c_str())->bytes(), "");
}

TEST_F(OsReadFile, SaysWhyNot) {
  EXPECT_EQ(map_file((folder_ / "nothing").c_str()).failure().os_error, ENOENT);
  EXPECT_EQ(map_file(folder_.c_str()).failure().code, ErrorCode::unsupported);
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
  EXPECT_EQ(map_file(path.c_str()).failure().os_error, EMFILE);
  EXPECT_EQ(size("data").failure().os_error, EMFILE);
  set_injector([](std::string_view call) noexcept { return call == "fstat" ? EIO : 0; });
  EXPECT_EQ(map_file(path.c_str()).failure().os_error, EIO);
  EXPECT_EQ(size("data").failure().os_error, EIO);
  set_injector([](std::string_view call) noexcept { return call == "mmap" ? ENOMEM : 0; });
  EXPECT_EQ(map_file(path.c_str()).failure().os_error, ENOMEM);
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
