// SPDX-License-Identifier: Apache-2.0
#include "os/file/file.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "os/file/descriptor.h"
#include "os/inject.h"
#include "os/system.h"

namespace berth::internal::os {
namespace {

class OsFile : public ::testing::Test {
 protected:
  void TearDown() override { std::filesystem::remove(path_); }

  std::string content() const {
    std::stringstream text;
    text << std::ifstream(path_).rdbuf();
    return text.str();
  }

  const std::string path_ = ::testing::TempDir() + "berth_file_" + std::to_string(process_id());
};

TEST_F(OsFile, IsWrittenCutAndReplaced) {
  const Result<int> file = create_own_file(path_.c_str());
  ASSERT_TRUE(file.ok());
  EXPECT_TRUE(write_file(*file, "one two", 7).ok());
  EXPECT_TRUE(cut_file(*file, 4).ok());
  EXPECT_TRUE(write_file(*file, "three", 5).ok());
  close_file(*file);
  EXPECT_EQ(content(), "one three");
  close_file(*create_own_file(path_.c_str()));
  EXPECT_EQ(content(), "");
}

TEST_F(OsFile, SaysWhyNot) {
  EXPECT_EQ(create_own_file("/nowhere/at/all").failure().os_error, ENOENT);
  const Descriptor full(open("/dev/full", O_WRONLY | O_CLOEXEC));
  EXPECT_EQ(write_file(full.number(), "x", 1).failure().os_error, ENOSPC);
}

// What an environment variable names may have been laid out by somebody else.
TEST_F(OsFile, IsNeverWhatALinkLeadsToNorADevice) {
  const std::string end = path_ + ".end";
  std::ofstream(end) << "precious";
  const auto refused = [&](const char* what) { EXPECT_EQ(create_own_file(path_.c_str()).failure().code, ErrorCode::untrusted) << what; };
  std::filesystem::create_symlink(end, path_);
  refused("a link");
  std::filesystem::remove(path_);
  std::filesystem::create_hard_link(end, path_);
  refused("another name of a file");
  std::filesystem::remove(path_);
  ASSERT_EQ(mkfifo(path_.c_str(), 0600), 0);
  refused("a pipe that nobody reads");
  const Descriptor reader(open(path_.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC));
  refused("a pipe that somebody reads");
  EXPECT_EQ(create_own_file("/dev/null").failure().code, ErrorCode::untrusted);
  std::stringstream text;
  text << std::ifstream(end).rdbuf();
  EXPECT_EQ(text.str(), "precious");
  std::filesystem::remove(end);
}

TEST_F(OsFile, IsNotAnotherUsers) {
  std::ofstream(path_) << "theirs";
  if (chown(path_.c_str(), 12345, 12345) != 0) GTEST_SKIP() << "only root can give files away";
  EXPECT_EQ(create_own_file(path_.c_str()).failure().code, ErrorCode::untrusted);
  EXPECT_EQ(content(), "theirs");
}

TEST_F(OsFile, EveryCallCanBeMadeToFail) {
  const Result<int> file = create_own_file(path_.c_str());
  set_injector([](std::string_view call) noexcept { return call == "open" || call == "write" || call == "ftruncate" ? EIO : 0; });
  EXPECT_EQ(create_own_file(path_.c_str()).failure().os_error, EIO);
  EXPECT_EQ(write_file(*file, "x", 1).failure().os_error, EIO);
  EXPECT_EQ(cut_file(*file, 0).failure().os_error, EIO);
  set_injector(nullptr);
  close_file(*file);
}

}  // namespace
}  // namespace berth::internal::os
