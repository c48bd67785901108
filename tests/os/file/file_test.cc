// SPDX-License-Identifier: Apache-2.0
#include "os/file/file.h"

#include <gtest/gtest.h>

#include <cerrno>
#include <filesystem>
#include <fstream>
#include <sstream>

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
  const Result<int> file = create_file(path_.c_str());
  ASSERT_TRUE(file.ok());
  EXPECT_TRUE(write_file(*file, "one two", 7).ok());
  EXPECT_TRUE(cut_file(*file, 4).ok());
  EXPECT_TRUE(write_file(*file, "three", 5).ok());
  close_file(*file);
  EXPECT_EQ(content(), "one three");
  close_file(*create_file(path_.c_str()));
  EXPECT_EQ(content(), "");
}

TEST_F(OsFile, SaysWhyNot) {
  EXPECT_EQ(create_file("/nowhere/at/all").failure().os_error, ENOENT);
  const Result<int> full = create_file("/dev/full");
  ASSERT_TRUE(full.ok());
  EXPECT_EQ(write_file(*full, "x", 1).failure().os_error, ENOSPC);
  close_file(*full);
}

TEST_F(OsFile, EveryCallCanBeMadeToFail) {
  const Result<int> file = create_file(path_.c_str());
  set_injector([](std::string_view call) noexcept { return call == "open" || call == "write" || call == "ftruncate" ? EIO : 0; });
  EXPECT_EQ(create_file(path_.c_str()).failure().os_error, EIO);
  EXPECT_EQ(write_file(*file, "x", 1).failure().os_error, EIO);
  EXPECT_EQ(cut_file(*file, 0).failure().os_error, EIO);
  set_injector(nullptr);
  close_file(*file);
}

}  // namespace
}  // namespace berth::internal::os
