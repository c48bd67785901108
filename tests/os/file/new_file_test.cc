// SPDX-License-Identifier: Apache-2.0
#include "os/file/new_file.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "os/inject.h"
#include "os/system.h"

namespace berth::internal::os {
namespace {

constexpr uid_t kAnother = 12345;  // a user, and a group

class OsNewFile : public ::testing::Test {
 protected:
  void SetUp() override {
    std::filesystem::create_directories(folder_);
    old_mask_ = umask(022);
  }
  void TearDown() override {
    set_injector(nullptr);
    umask(old_mask_);
    std::filesystem::remove_all(folder_);
  }

  std::string path(const char* name) const { return folder_ / name; }
  void lay_out(const char* name, mode_t mode) const {
    std::ofstream(path(name)) << "old";
    ASSERT_EQ(chmod(path(name).c_str(), mode), 0);
  }
  // The file belongs to another user. False where this one may not do that.
  bool give_away(const char* name) const { return lchown(path(name).c_str(), kAnother, kAnother) == 0; }
  mode_t mode_of(const char* name) const {
    struct stat facts {};
    EXPECT_EQ(lstat(path(name).c_str(), &facts), 0);
    return facts.st_mode;
  }
  std::string content(const char* name) const {
    std::stringstream text;
    text << std::ifstream(path(name)).rdbuf();
    return text.str();
  }
  std::size_t files() const {
    const std::filesystem::directory_iterator all(folder_);
    return static_cast<std::size_t>(std::distance(begin(all), end(all)));
  }

  const std::filesystem::path folder_ = std::filesystem::temp_directory_path() / ("berth_new_file_" + std::to_string(process_id()));
  mode_t old_mask_ = 0;
};

TEST_F(OsNewFile, HasThePermissionsOfTheFileThatItReplaces) {
  for (const mode_t mode : {0600U, 0640U, 0666U, 0755U, 0444U}) {
    lay_out("own", mode);
    ASSERT_TRUE(write_new_file(path("own"), "new").ok());
    EXPECT_EQ(mode_of("own"), S_IFREG | mode);
    EXPECT_EQ(content("own"), "new");
  }
  ASSERT_TRUE(write_new_file(path("fresh"), "new").ok());
  EXPECT_EQ(mode_of("fresh"), S_IFREG | 0644U) << "as any new file";
}

TEST_F(OsNewFile, NeverHasASetUserBit) {
  for (const mode_t mode : {06777U, 04755U, 02755U, 01644U}) {
    lay_out("own", mode);
    ASSERT_TRUE(write_new_file(path("own"), "new").ok());
    EXPECT_EQ(mode_of("own"), S_IFREG | (mode & 0777U));
  }
}

TEST_F(OsNewFile, TakesNothingOverFromAnotherUsersFile) {
  lay_out("theirs", 06777);
  if (!give_away("theirs")) GTEST_SKIP() << "only root can give files away";
  ASSERT_TRUE(write_new_file(path("theirs"), "new").ok());
  EXPECT_EQ(mode_of("theirs"), S_IFREG | 0644U);
  lay_out("group", 0664);
  ASSERT_EQ(chown(path("group").c_str(), geteuid(), kAnother), 0);
  ASSERT_TRUE(write_new_file(path("group"), "new").ok());
  EXPECT_EQ(mode_of("group"), S_IFREG | 0604U) << "what another group could do, this one need not";
}

TEST_F(OsNewFile, RefusesAnotherUsersFileWhereAnyoneCouldLayItOut) {
  lay_out("theirs", 0666);
  std::filesystem::create_symlink("anything", folder_ / "link");
  if (!give_away("theirs") || !give_away("link")) GTEST_SKIP() << "only root can give files away";
  ASSERT_EQ(chmod(folder_.c_str(), 01777), 0);
  for (const char* const name : {"theirs", "link"})
    EXPECT_EQ(write_new_file(path(name), "new").failure().code, ErrorCode::untrusted) << name;
  EXPECT_EQ(content("theirs"), "old");
  lay_out("own", 0644);
  EXPECT_TRUE(write_new_file(path("own"), "new").ok());
  ASSERT_EQ(chmod(folder_.c_str(), 0755), 0);
  EXPECT_TRUE(write_new_file(path("theirs"), "new").ok()) << "in a folder of this user's own";
}

TEST_F(OsNewFile, ReplacesALinkAndNotWhatItLeadsTo) {
  lay_out("end", 0644);
  std::filesystem::create_symlink("end", folder_ / "link");
  ASSERT_TRUE(write_new_file(path("link"), "new").ok());
  EXPECT_TRUE(S_ISREG(mode_of("link")));
  EXPECT_EQ(content("end"), "old");
}

TEST_F(OsNewFile, ReplacesNoDeviceNorALinkToOne) {
  std::filesystem::create_symlink("/dev/null", folder_ / "null");
  ASSERT_EQ(mkfifo(path("pipe").c_str(), 0600), 0);
  std::filesystem::create_directory(folder_ / "inner");
  for (const char* const name : {"null", "pipe", "inner"})
    EXPECT_EQ(write_new_file(path(name), "x").failure().code, ErrorCode::unsupported) << name;
  EXPECT_TRUE(S_ISLNK(mode_of("null")));
}

TEST_F(OsNewFile, WritesToADeviceThatAUserNames) {
  std::filesystem::create_symlink("/dev/null", folder_ / "null");
  EXPECT_TRUE(write_file_or_device(path("null"), "x").ok());
  EXPECT_EQ(write_file_or_device("/dev/full", "x").failure().os_error, ENOSPC);
  ASSERT_EQ(mkfifo(path("pipe").c_str(), 0600), 0);
  EXPECT_EQ(write_file_or_device(path("pipe"), "x").failure().os_error, ENXIO) << "nobody reads it";
  const int reader = open(path("pipe").c_str(), O_RDONLY | O_NONBLOCK);
  EXPECT_TRUE(write_file_or_device(path("pipe"), "x").ok());
  char got = 0;
  EXPECT_EQ(read(reader, &got, 1), 1);
  EXPECT_EQ(got, 'x');
  close(reader);
  EXPECT_TRUE(write_file_or_device(path("file"), "x").ok());
  EXPECT_EQ(content("file"), "x");
}

// A shell's `--out /dev/stdout >file`: the link in /dev stays what it is.
TEST_F(OsNewFile, WritesToAnOpenFileThatALinkLeadsTo) {
  const int open_file = open(path("end").c_str(), O_RDWR | O_CREAT, 0644);
  const std::string link = "/proc/self/fd/" + std::to_string(open_file);
  std::filesystem::create_symlink(link, folder_ / "stdout");
  for (const std::string& name : {path("stdout"), link, "/dev/fd/" + std::to_string(open_file)}) {
    EXPECT_EQ(write_new_file(name, "x").failure().code, ErrorCode::unsupported) << name;
    EXPECT_TRUE(write_file_or_device(name, "x").ok()) << name;
  }
  close(open_file);
  EXPECT_TRUE(S_ISLNK(mode_of("stdout")));
  EXPECT_EQ(content("end"), "xxx");
}

// Whichever call fails, the old file is whole and nothing else is left. (A folder that cannot be synced comes after
// the name.)
TEST_F(OsNewFile, IsThereWholeOrNotAtAll) {
  lay_out("own", 0644);
  static std::string_view refused;
  for (const std::string_view call : {"open_folder", "fstatat", "fstat", "tmpfile", "fchmod", "pwrite", "fsync", "linkat", "rename"}) {
    refused = call;
    set_injector([](std::string_view name) noexcept { return name == refused ? ENOSPC : 0; });
    EXPECT_EQ(write_new_file(path("own"), "new").failure().os_error, ENOSPC) << call;
    set_injector(nullptr);
    EXPECT_EQ(content("own"), "old") << call;
    EXPECT_EQ(files(), 1U) << call;
  }
}

}  // namespace
}  // namespace berth::internal::os
