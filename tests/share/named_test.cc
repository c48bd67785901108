// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "share/share_support.h"
#include "support/errors.h"
#include "support/everything.h"

namespace berth::testing {

using namespace internal;
namespace {

namespace fs = std::filesystem;

// A folder of the test's own for named storages.
class Named : public ::testing::Test {
 protected:
  Named() {
    fs::create_directories("/dev/shm");
    folder_ = "/dev/shm/berth-test-" + std::to_string(getpid());
    setenv("BERTH_SHM_DIR", folder_.c_str(), 1);
  }
  ~Named() override {
    fs::remove_all(folder_);
    unsetenv("BERTH_SHM_DIR");
  }
  std::string path(const std::string& name) const { return folder_ + "/" + name; }
  std::string folder_;
};

TEST_F(Named, OneProcessCreatesAndAnotherOpensByName) {
  Storage w = create_shared("weights", {4, 8}, DType::f32);
  EXPECT_EQ(shared_name(w), "weights");
  EXPECT_EQ(w.item<float>({3, 7}), 0.0F) << "fresh bytes are zero";
  w.fill(1.5);
  Storage v = open_shared("weights");
  EXPECT_TRUE(equal(v, w));
  EXPECT_NE(v.data_ptr(), w.data_ptr());
  EXPECT_TRUE(v.is_shared());
  v.fill(2);
  EXPECT_EQ(w.item<float>({0, 0}), 2.0F);
  EXPECT_ERROR((void)create_shared("weights", {4}, DType::f32), AccessError, ErrorCode::already_exists);
  w.close();
  // The name is removed with its creator.
  EXPECT_ERROR((void)open_shared("weights"), AccessError, ErrorCode::not_found);
  EXPECT_EQ(v.item<float>({3, 7}), 2.0F) << "the bytes live on";
  EXPECT_EQ(list_shared().size(), 0U);
  const Storage again = create_shared("weights", {1}, DType::u8);
  v.close();
  EXPECT_EQ(list_shared().size(), 1U) << "who closes the old one leaves the new one's name alone";
}

TEST_F(Named, WhoOnlyOpenedLeavesTheNameAlone) {
  const Storage w = create_shared("kept", {10}, DType::u8);
  { const Storage v = open_shared("kept"); }
  EXPECT_EQ(open_shared("kept").num_elements(), 10U);
}

TEST_F(Named, ANameCanBeRemovedWhileItIsOpen) {
  const Storage w = create_shared("gone", {10}, DType::u8);
  EXPECT_TRUE(unlink_shared("gone"));
  EXPECT_FALSE(unlink_shared("gone"));
  EXPECT_ERROR((void)open_shared("gone"), AccessError, ErrorCode::not_found);
  w.fill(3);
  EXPECT_EQ(w.item<std::uint8_t>({9}), 3);
}

TEST_F(Named, FreshNamesDiffer) {
  const Storage a = create_shared("", {1}, DType::u8);
  const Storage b = create_shared("", {1}, DType::u8);
  EXPECT_NE(shared_name(a), shared_name(b));
  EXPECT_EQ(open_shared(shared_name(a)).num_elements(), 1U);
  EXPECT_EQ(create_shared("", {0, 4}, DType::f32).num_elements(), 0U);
}

TEST_F(Named, ReadOnlyOpeningCannotWrite) {
  const Storage w = create_shared("ro", {10}, DType::u8);
  const Storage v = open_shared("ro", {.read_only = true});
  EXPECT_TRUE(v.is_read_only());
  EXPECT_ERROR(v.fill(1), AccessError, ErrorCode::read_only);
  w.fill(9);
  EXPECT_EQ(v.item<std::uint8_t>({0}), 9);
}

TEST_F(Named, NamesThatCannotBeAreRefused) {
  for (const std::string& name : {std::string("a/b"), std::string(".."), std::string(".hidden"), std::string("nul\0byte", 8),
                                  std::string(201, 'x'), std::string("\xff\xfe"), std::string("line\nbreak")}) {
    EXPECT_ERROR((void)create_shared(name, {1}, DType::u8), ArgumentError, ErrorCode::invalid_name);
    EXPECT_ERROR((void)open_shared(name), ArgumentError, ErrorCode::invalid_name);
    EXPECT_ERROR((void)unlink_shared(name), ArgumentError, ErrorCode::invalid_name);
  }
  EXPECT_ERROR((void)open_shared(""), ArgumentError, ErrorCode::invalid_name);
  EXPECT_NO_THROW((void)create_shared("größe 1", {1}, DType::u8));
}

TEST_F(Named, RightsAreTheUsersAloneWhateverTheMask) {
  for (const mode_t mask : {mode_t{0}, mode_t{0777}}) {
    fs::remove_all(folder_);
    const mode_t before = umask(mask);
    const Storage w = create_shared("rights", {1}, DType::u8);
    umask(before);
    struct stat found;
    ASSERT_EQ(stat(path("rights").c_str(), &found), 0);
    EXPECT_EQ(found.st_mode & 0777, 0600U);
    ASSERT_EQ(stat(folder_.c_str(), &found), 0);
    EXPECT_EQ(found.st_mode & 0777, 0700U);
  }
}

TEST_F(Named, SquattersAndLinksAreRefusedAndLeftAlone) {
  { const Storage w = create_shared("x", {1}, DType::u8); }
  fs::create_directories(folder_);
  chmod(folder_.c_str(), 0700);
  std::ofstream(path("text")) << "not a storage";
  chmod(path("text").c_str(), 0600);
  EXPECT_ERROR((void)open_shared("text"), FormatError, ErrorCode::format_error);
  std::ofstream(path("open")) << "others may read it";
  chmod(path("open").c_str(), 0644);
  EXPECT_ERROR((void)open_shared("open"), AccessError, ErrorCode::untrusted);
  fs::create_symlink("/etc/passwd", path("link"));
  EXPECT_ERROR((void)open_shared("link"), AccessError, ErrorCode::untrusted);
  ASSERT_EQ(mkfifo(path("fifo").c_str(), 0600), 0);
  EXPECT_ERROR((void)open_shared("fifo"), AccessError, ErrorCode::untrusted);
  fs::create_directory(path("folder"));
  EXPECT_ANY_THROW((void)open_shared("folder"));
  const Storage w = create_shared("twice", {1}, DType::u8);
  fs::create_hard_link(path("twice"), path("second"));
  EXPECT_ERROR((void)open_shared("twice"), AccessError, ErrorCode::untrusted);
  for (const char* name : {"text", "open", "link", "fifo", "folder"}) {
    EXPECT_ERROR((void)create_shared(name, {1}, DType::u8), AccessError, ErrorCode::already_exists);
  }
  EXPECT_TRUE(reap_named().empty()) << "nothing that is not ours is removed";
  EXPECT_TRUE(fs::exists(path("text")) && fs::is_symlink(path("link")));
  std::size_t foreign = 0;
  for (const NamedShared& one : list_shared()) foreign += one.is_ours ? 0U : 1U;
  EXPECT_EQ(foreign, 7U);
}

TEST_F(Named, AFolderOfSomeoneElsesIsRefused) {
  fs::create_directory(folder_);
  chmod(folder_.c_str(), 0755);
  EXPECT_ERROR((void)create_shared("x", {1}, DType::u8), AccessError, ErrorCode::untrusted);
  fs::remove_all(folder_);
  fs::create_symlink("/tmp", folder_);
  EXPECT_ERROR((void)create_shared("x", {1}, DType::u8), AccessError, ErrorCode::untrusted);
  fs::remove(folder_);
  setenv("BERTH_SHM_DIR", "/nowhere/at/all", 1);
  EXPECT_ERROR((void)create_shared("x", {1}, DType::u8), DeviceError, ErrorCode::device_unavailable);
  EXPECT_TRUE(list_shared().empty());
}

TEST_F(Named, AHeaderOfAnotherVersionOrWithLiesIsRefused) {
  const Storage w = create_shared("lies", {1000}, DType::u8);
  const auto with = [&](std::size_t at, unsigned char value, ErrorCode expected) {
    std::fstream file(path("lies"), std::ios::in | std::ios::out | std::ios::binary);
    char before = 0;
    file.seekg(static_cast<std::streamoff>(at)).get(before);
    file.seekp(static_cast<std::streamoff>(at)).put(static_cast<char>(value)).flush();
    EXPECT_ERROR((void)open_shared("lies"), FormatError, expected);
    file.seekp(static_cast<std::streamoff>(at)).put(before).flush();
  };
  with(0, 0, ErrorCode::format_error);  // the magic
  with(offsetof(internal::share::SegmentHeader, version), 9, ErrorCode::version_mismatch);
  with(offsetof(internal::share::SegmentHeader, layout_hash), static_cast<unsigned char>(~internal::share::layout_hash()),
       ErrorCode::version_mismatch);
  // Larger than the file.
  with(offsetof(internal::share::SegmentHeader, file_bytes) + 4, 1, ErrorCode::format_error);
  with(offsetof(internal::share::SegmentHeader, data_offset) + 5, 1, ErrorCode::format_error);
  // So many entries that the size would wrap.
  with(offsetof(internal::share::SegmentHeader, layout) + 3, 0x7f, ErrorCode::format_error);
  // A shape that does not fit.
  with(offsetof(internal::share::SegmentHeader, description) + 16, 0xff, ErrorCode::format_error);
  EXPECT_EQ(open_shared("lies").num_elements(), 1000U);
}

TEST_F(Named, ListsWhoHoldsIt) {
  const Storage w = create_shared("listed", {256}, DType::f32);
  const std::vector<NamedShared> all = list_shared();
  ASSERT_EQ(all.size(), 1U);
  EXPECT_EQ(all[0].name, "listed");
  EXPECT_EQ(all[0].size_bytes, 1024U);
  EXPECT_EQ(all[0].dtype, DType::f32);
  ASSERT_EQ(all[0].holders.size(), 1U);
  EXPECT_TRUE(all[0].holders[0].is_alive);
  EXPECT_EQ(all[0].holders[0].process, getpid());
  EXPECT_FALSE(all[0].is_dead());
  EXPECT_TRUE(reap_named().empty());
}

}  // namespace
}  // namespace berth::testing
