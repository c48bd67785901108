// SPDX-License-Identifier: Apache-2.0
#include "berth/file/map.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <chrono>
#include <functional>

#include "base/sanitizers.h"
#include "file/file_support.h"
#include "os/inject.h"
#include "support/errors.h"
#include "support/everything.h"
#include "support/failing_calls.h"

namespace berth::testing {

using namespace internal;
namespace {

std::string counted(std::size_t bytes) {
  std::string out(bytes, '\0');
  for (std::size_t i = 0; i < bytes; ++i) out[i] = static_cast<char>(i);
  return out;
}

// Advances the modification time, whose resolution may be too coarse for a test.
void touch_later(const std::string& path) {
  std::filesystem::last_write_time(path, std::filesystem::last_write_time(path) + std::chrono::seconds(5));
}

TEST(MapFile, IsTheFilesBytes) {
  const Folder folder;
  const std::string path = folder.write("data", counted(4000));
  const Storage x = map_file(path, {10, 100}, DType::i32);
  EXPECT_TRUE(x.is_mapped() && x.is_read_only() && !x.is_shared() && x.is_contiguous());
  EXPECT_EQ(x.device(), Device("cpu"));
  EXPECT_EQ(x.item<std::int32_t>({0, 1}), 0x07060504);
  EXPECT_EQ(mapped_path(x), path);
  EXPECT_EQ(mapped_state(x), FileState::current);
  EXPECT_NE(inspect(x).to_string().find("mapped"), std::string::npos);
  EXPECT_EQ(mapped_path(x.clone()), "");
}

TEST(MapFile, TheShapeComesFromTheFilesSizeWhenLeftOut) {
  const Folder folder;
  const std::string path = folder.write("data", counted(4000));
  EXPECT_EQ(map_file(path, DType::f64).shape(), Shape({500}));
  EXPECT_EQ(map_file(path, DType::u16, FileMode::read, {.offset = 2}).shape(), Shape({1999}));
  EXPECT_EQ(map_file(path, DType::u8, FileMode::read, {.offset = 4000}).shape(), Shape({0}));
  EXPECT_EQ(map_file(folder.write("none", ""), DType::f32).data_ptr(), nullptr);
  EXPECT_ERROR((void)map_file(path, DType::f32, FileMode::read, {.offset = 8000}), FormatError, ErrorCode::size_mismatch);
  EXPECT_ERROR((void)map_file(folder.write("odd", "12345"), DType::f32), FormatError, ErrorCode::size_mismatch);
  EXPECT_ERROR((void)map_file(folder / "new", DType::f32, FileMode::create), ArgumentError, ErrorCode::invalid_shape);
}

TEST(MapFile, AtAnyOffsetThatSuitsTheElements) {
  const Folder folder;
  const std::string path = folder.write("data", counted(20'000));
  for (const std::uint64_t offset : {0U, 4U, 64U, 4092U, 4096U, 4100U, 12288U, 19996U}) {
    const Storage x = map_file(path, {1}, DType::i32, FileMode::read, {.offset = offset});
    EXPECT_EQ(x.reinterpret(DType::u8).item<std::uint8_t>({0}), static_cast<std::uint8_t>(offset)) << offset;
  }
  EXPECT_ERROR((void)map_file(path, {1}, DType::i32, FileMode::read, {.offset = 2}), ArgumentError, ErrorCode::misaligned);
  EXPECT_ERROR((void)map_file(path, {1}, DType::i32, FileMode::read, {.offset = UINT64_MAX - 3}), ArgumentError, ErrorCode::out_of_bounds);
  EXPECT_ERROR((void)map_file(path, {1}, DType::i32, FileMode::read, {.offset = 19'998 + 2}), FormatError, ErrorCode::file_truncated);
}

TEST(MapFile, AReadOnlyMapRefusesWritesWithAnError) {
  const Folder folder;
  const Storage x = map_file(folder.write("data", counted(400)), {100}, DType::i32);
  EXPECT_ERROR(x.fill(1), AccessError, ErrorCode::read_only);
  EXPECT_ERROR(x.copy_from(x.clone()), AccessError, ErrorCode::read_only);
  EXPECT_ERROR((void)x.data<std::int32_t>(), AccessError, ErrorCode::read_only);
  EXPECT_ERROR(x.slice(0, 5).fill(1), AccessError, ErrorCode::read_only);
  EXPECT_ERROR(x.buffer().fill(1), AccessError, ErrorCode::read_only);
  EXPECT_EQ(x.data<const std::int32_t>()[0], 0x03020100);
}

TEST(MapFile, WritesReachTheFile) {
  const Folder folder;
  const std::string path = folder.write("data", counted(16));
  Storage x = map_file(path, {4}, DType::i32, FileMode::read_write);
  x.slice(0, 1, 2).fill(-1);
  const Storage other = map_file(path, {4}, DType::i32, FileMode::read);
  EXPECT_EQ(other.item<std::int32_t>({1}), -1) << "others see it at once";
  flush_mapped(x);
  EXPECT_EQ(mapped_state(x), FileState::current) << "what is written through it is no change underneath";
  x.slice(0, 2, 3).fill(-1);
  EXPECT_EQ(x.item<std::int32_t>({2}), -1);
  x.close();
  EXPECT_EQ(x.num_elements(), 0U);
  EXPECT_EQ(folder.read("data").substr(4, 8), std::string(8, '\xff'));
}

TEST(MapFile, LengthensAFileThatMayGrow) {
  const Folder folder;
  const std::string path = folder.write("data", std::string(10, 'x'));
  {
    const Storage x = map_file(path, {100'000}, DType::u8, FileMode::read_write, {.offset = 4, .may_grow = true});
    EXPECT_EQ(std::filesystem::file_size(path), 100'004U);
    EXPECT_EQ(x.item<std::uint8_t>({5}), 'x');
    EXPECT_EQ(x.item<std::uint8_t>({6}), 0);
    x.slice(0, 99'999).fill(7);
    EXPECT_EQ(mapped_state(x), FileState::current);
  }
  EXPECT_EQ(folder.read("data").substr(0, 11), std::string(10, 'x') + '\0');
  EXPECT_EQ(folder.read("data").back(), 7);
  EXPECT_EQ(map_file(path, {10}, DType::u8, FileMode::read_write, {.may_grow = true}).num_elements(), 10U);
  EXPECT_EQ(std::filesystem::file_size(path), 100'004U) << "it never gets shorter";
  for (const FileMode mode : {FileMode::read, FileMode::private_copy})
    EXPECT_ERROR(map_file(path, {200'000}, DType::u8, mode, {.may_grow = true}), ArgumentError, ErrorCode::invalid_argument);
  EXPECT_ERROR(map_file(folder / "none", {2}, DType::u8, FileMode::read_write, {.may_grow = true}), AccessError, ErrorCode::not_found);
}

TEST(MapFile, LeavesAFileAsItWasWhenTheDiskIsFull) {
  const Folder folder;
  const std::string path = folder.write("data", std::string(10, 'x'));
  {
    const RefusedCall full("fallocate", ENOSPC);
    EXPECT_ERROR(map_file(path, {100'000}, DType::u8, FileMode::read_write, {.may_grow = true}), DeviceError, ErrorCode::out_of_memory);
  }
  EXPECT_EQ(folder.read("data"), std::string(10, 'x'));
}

TEST(MapFile, CreatesAFileOfExactlyThatSize) {
  const Folder folder;
  const std::string path = folder.write("data", counted(99'999));
  Storage x = map_file(path, {3, 5}, DType::i16, FileMode::create, {.offset = 10});
  EXPECT_EQ(std::filesystem::file_size(path), 40U);
  EXPECT_EQ(x.item<std::int16_t>({2, 4}), 0) << "what was there is gone";
  x.fill(0x0101);
  x.close();
  EXPECT_EQ(folder.read("data"), std::string(10, '\0') + std::string(30, '\x01'));
  EXPECT_EQ(map_file(folder / "empty", {0}, DType::f32, FileMode::create).num_elements(), 0U);
  EXPECT_EQ(std::filesystem::file_size(folder / "empty"), 0U);
}

TEST(MapFile, WritesToAPrivateCopyStayHere) {
  const Folder folder;
  const std::string path = folder.write("data", counted(16));
  std::filesystem::permissions(path, std::filesystem::perms::owner_read);
  const Storage x = map_file(path, {4}, DType::i32, FileMode::private_copy);
  x.fill(7);
  EXPECT_EQ(x.item<std::int32_t>({3}), 7);
  flush_mapped(x);
  drop_mapped(x);
  EXPECT_EQ(x.item<std::int32_t>({3}), 7) << "changes are not dropped";
  EXPECT_EQ(folder.read("data"), counted(16));
}

TEST(MapFile, TheMappingOutlivesNameAndDescriptor) {
  const Folder folder;
  const std::string path = folder.write("data", counted(16));
  const Storage x = map_file(path, {16}, DType::u8);
  std::filesystem::remove(path);
  EXPECT_EQ(mapped_state(x), FileState::replaced);
  EXPECT_EQ(x.clone().item<std::uint8_t>({15}), 15);
  folder.write("data", "another file");
  EXPECT_EQ(mapped_state(x), FileState::replaced);
  EXPECT_EQ(x.item<std::uint8_t>({15}), 15);
}

TEST(MapFile, HintsChangeNoByte) {
  const Folder folder;
  const std::string path = folder.write("data", counted(100'000));
  const MapOptions hints{.offset = 8, .prefetch = true, .sequential = true, .huge_pages = true};
  const Storage x = map_file(path, DType::u8, FileMode::read, hints);
  const Storage plain = map_file(path, DType::u8, FileMode::read, {.offset = 8}).clone();
  EXPECT_TRUE(equal(x, plain));
  drop_mapped(x.slice(0, 10, 90'000));
  prefetch_mapped(x.slice(0, 20, 30));
  EXPECT_TRUE(equal(x, plain));
  const Storage w = map_file(path, DType::u8, FileMode::read_write);
  w.fill(9);
  drop_mapped(w);
  EXPECT_EQ(w.item<std::uint8_t>({99'999}), 9) << "what was written is not dropped";
}

TEST(MapFile, CloseIsRefusedWhileOthersHaveIt) {
  const Folder folder;
  Storage x = map_file(folder.write("data", counted(16)), DType::u8);
  {
    const Storage view = x.slice(0, 3);
    EXPECT_ERROR(x.close(), AccessError, ErrorCode::busy);
  }
  x.close();
  Storage plain = full({3}, 1, DType::u8, "cpu");
  EXPECT_ERROR(flush_mapped(plain), ArgumentError, ErrorCode::invalid_argument);
  EXPECT_ERROR((void)mapped_state(plain), ArgumentError, ErrorCode::invalid_argument);
  plain.close();
  EXPECT_EQ(plain.num_elements(), 0U);
}

// ---- The file changes while it is mapped.

TEST(MapFile, ACutFileIsAnErrorWhereverTheLibraryTouchesIt) {
  const Folder folder;
  const std::string path = folder.write("data", counted(100'000));
  for (const FileMode mode : {FileMode::read, FileMode::read_write, FileMode::private_copy}) {
    folder.write("data", counted(100'000));
    const Storage x = map_file(path, {25'000}, DType::i32, mode);
    const Storage target = empty({25'000}, DType::i32, "cpu");
    std::filesystem::resize_file(path, 5000);
    EXPECT_EQ(mapped_state(x), FileState::truncated);
    EXPECT_ERROR((void)x.clone(), FormatError, ErrorCode::file_truncated);
    EXPECT_ERROR((void)x.to("sim:0"), FormatError, ErrorCode::file_truncated);
    EXPECT_ERROR((void)x.to(DType::f32), FormatError, ErrorCode::file_truncated);
    EXPECT_ERROR(target.copy_from(x), FormatError, ErrorCode::file_truncated);
    EXPECT_ERROR(target.buffer().copy_from(x.buffer()), FormatError, ErrorCode::file_truncated);
    EXPECT_ERROR((void)equal(x, target), FormatError, ErrorCode::file_truncated);
    EXPECT_ERROR((void)x.item<std::int32_t>({20'000}), FormatError, ErrorCode::file_truncated);
    EXPECT_ERROR(copy_batch(std::vector{x}, std::vector{target}), FormatError, ErrorCode::file_truncated);
    if (mode == FileMode::read) continue;
    EXPECT_ERROR(x.fill(1), FormatError, ErrorCode::file_truncated);
    EXPECT_ERROR(x.copy_from(target), FormatError, ErrorCode::file_truncated);
    EXPECT_ERROR(x.buffer().fill(1), FormatError, ErrorCode::file_truncated);
  }
}

TEST(MapFile, AChangeUnderneathIsToldUnlessItIsExpected) {
  const Folder folder;
  const std::string path = folder.write("data", counted(64));
  const Storage x = map_file(path, DType::u8);
  const Storage live = map_file(path, DType::u8, FileMode::read, {.expect_changes = true});
  folder.write("data", std::string(64, 'x'));
  touch_later(path);
  EXPECT_EQ(mapped_state(x), FileState::changed);
  EXPECT_ERROR((void)x.clone(), FormatError, ErrorCode::file_changed);
  EXPECT_EQ(live.clone().item<std::uint8_t>({63}), 'x');
  std::filesystem::resize_file(path, 1);
  EXPECT_EQ(live.item<std::uint8_t>({0}), 'x') << "what is there still can be read";
  EXPECT_ERROR((void)live.clone(), FormatError, ErrorCode::file_truncated);
}

TEST(MapFile, ADiskThatFailsIsAnErrorAndNoSignal) {
  const Folder folder;
  const Storage x = map_file(folder.write("data", counted(64)), DType::u8);
  os::set_injector([](std::string_view call) noexcept { return call == "populate" ? EFAULT : 0; });
  EXPECT_ERROR((void)x.clone(), DeviceError, ErrorCode::io_error);
  os::set_injector([](std::string_view call) noexcept { return call == "populate" ? EINVAL : 0; });
  EXPECT_EQ(x.clone().item<std::uint8_t>({63}), 63) << "a kernel before 5.14 cannot tell";
  os::set_injector(nullptr);
}

// ---- Not a regular file.

TEST(MapFile, WhatIsNotAFileIsRefusedWithoutWaiting) {
  const Folder folder;
  ASSERT_EQ(mkfifo((folder / "pipe").c_str(), 0600), 0);
  std::filesystem::create_symlink(folder / "loop", folder / "loop");
  for (const FileMode mode : {FileMode::read, FileMode::read_write, FileMode::create, FileMode::private_copy}) {
    EXPECT_ERROR((void)map_file(folder.path(), {1}, DType::u8, mode), DeviceError, ErrorCode::unsupported);
    EXPECT_ERROR((void)map_file(folder / "pipe", {1}, DType::u8, mode), DeviceError, ErrorCode::unsupported);
    EXPECT_ERROR((void)map_file("/dev/zero", {1}, DType::u8, mode), DeviceError, ErrorCode::unsupported);
    EXPECT_ERROR((void)map_file(folder / "loop", {1}, DType::u8, mode), AccessError, ErrorCode::not_found);
  }
  EXPECT_ERROR((void)map_file(folder / "nothing", {1}, DType::u8), AccessError, ErrorCode::not_found);
  EXPECT_ERROR((void)map_file(folder / "no/where", {1}, DType::u8, FileMode::create), AccessError, ErrorCode::not_found);
  EXPECT_ERROR((void)map_file("", {1}, DType::u8), ArgumentError, ErrorCode::invalid_name);
  EXPECT_ERROR((void)map_file(std::string("a\0b", 3), {1}, DType::u8), ArgumentError, ErrorCode::invalid_name);
  EXPECT_ERROR((void)map_file("/proc/self/status", {1}, DType::u8), FormatError, ErrorCode::file_truncated);
  if (geteuid() != 0) {
    const std::string locked = folder.write("locked", "x");
    std::filesystem::permissions(locked, std::filesystem::perms::none);
    EXPECT_ERROR((void)map_file(locked, {1}, DType::u8), AccessError, ErrorCode::permission_denied);
  }
}

// A resource limit of the process, while the object lives.
class Limited {
 public:
  Limited(__rlimit_resource resource, rlim_t bytes) : resource_(resource) {
    getrlimit(resource_, &before_);
    const rlimit small{bytes, before_.rlim_max};
    setrlimit(resource_, &small);
  }
  ~Limited() { setrlimit(resource_, &before_); }
  Limited(const Limited&) = delete;
  Limited& operator=(const Limited&) = delete;

 private:
  const __rlimit_resource resource_;
  rlimit before_{};
};

std::uint64_t address_space_bytes() {
  std::uint64_t pages = 0;
  std::ifstream("/proc/self/statm") >> pages;
  return pages * static_cast<std::uint64_t>(sysconf(_SC_PAGESIZE));
}

TEST(MapFile, AFileLargerThanMemoryIsMappedAndOneLargerThanTheAddressSpaceIsOutOfMemory) {
  if (kThreadSanitizer) GTEST_SKIP() << "the thread sanitizer leaves no such addresses";
  const Folder folder;
  const std::string path = folder.write("sparse", "");
  constexpr std::uint64_t kTerabyte = 1ULL << 40;
  std::filesystem::resize_file(path, kTerabyte);
  EXPECT_EQ(map_file(path, DType::u8).item<std::uint8_t>({kTerabyte - 1}), 0);
  const Limited limited(RLIMIT_AS, address_space_bytes() + (4ULL << 30));
  EXPECT_ERROR((void)map_file(path, DType::u8), DeviceError, ErrorCode::out_of_memory);
  const Storage part = map_file(path, {100}, DType::u8, FileMode::read, {.offset = kTerabyte - 100});
  EXPECT_EQ(part.item<std::uint8_t>({99}), 0) << "a part of it fits";
}

TEST(MapFile, AFileThatMayNotBeThatLongIsAnErrorAndNoSignal) {
  const Folder folder;
  const Limited limited(RLIMIT_FSIZE, 1 << 20);
  EXPECT_ERROR((void)map_file(folder / "new", {2 << 20}, DType::u8, FileMode::create), DeviceError, ErrorCode::out_of_memory);
  const Storage big = zeros({2 << 20}, DType::u8, "cpu");
  EXPECT_ERROR(save_safetensors(folder / "big.safetensors", {{"x", big}}), DeviceError, ErrorCode::out_of_memory);
  EXPECT_ERROR(save_npy(folder / "big.npy", big), DeviceError, ErrorCode::out_of_memory);
  EXPECT_ERROR(save_npz(folder / "big.npz", {{"x", big}}), DeviceError, ErrorCode::out_of_memory);
  EXPECT_EQ(folder.count(), 1U) << "the one that was emptied";
}

// ---- Room on the disk.

// The file is sparse, and larger than any disk: what is refused has not filled the disk first.
TEST(MapFile, WhatDoesNotFitOnTheDiskIsRefusedBeforeItFillsIt) {
  if (kThreadSanitizer) GTEST_SKIP() << "the thread sanitizer leaves no such addresses";
  const Folder folder;
  constexpr std::uint64_t kLarge = 1ULL << 42;
  std::filesystem::resize_file(folder.write("sparse", ""), kLarge);
  const Storage x = map_file(folder / "sparse", DType::u8);
  static std::atomic<int> reserved{0};
  reserved = 0;
  os::set_injector([](std::string_view call) noexcept { return reserved += call == "fallocate" ? 1 : 0, 0; });
  const auto refused = [&](const std::function<void()>& write) {
    try {
      write();
      ADD_FAILURE() << "it fits";
    } catch (const DeviceError& error) {
      EXPECT_EQ(to_string(error.code()), to_string(ErrorCode::out_of_memory)) << error.what();
      EXPECT_NE(error.why().find("4 TiB, and the disk has "), std::string::npos) << error.why();
    }
  };
  refused([&] { save_npy(folder / "x.npy", x); });
  refused([&] { save_npz(folder / "x.npz", {{"x", x}}); });
  refused([&] { save_safetensors(folder / "x.safetensors", {{"x", x}}); });
  refused([&] { (void)map_file(folder / "new", {static_cast<std::int64_t>(kLarge)}, DType::u8, FileMode::create); });
  os::set_injector(nullptr);
  EXPECT_EQ(reserved, 0);
  EXPECT_EQ(folder.count(), 2U) << "the one that is mapped, and an empty new one";
}

TEST(MapFile, WithoutPreallocationTheFileIsWrittenAllTheSame) {
  const Folder folder;
  for (const int refusal : {EOPNOTSUPP, ENOSYS, EPERM}) {
    static int error;
    error = refusal;
    os::set_injector([](std::string_view call) noexcept { return call == "fallocate" || call == "fstatvfs" ? error : 0; });
    save_npy(folder / "x.npy", full({1000}, 7, DType::i32, "cpu"));
    os::set_injector(nullptr);
    EXPECT_EQ(map_npy(folder / "x.npy").item<std::int32_t>({999}), 7);
  }
}

TEST(MapFile, ErrorsTellRoomInMemoryFromRoomOnTheDisk) {
  const Folder folder;
  const std::string path = folder.write("data", counted(4000));
  os::set_injector([](std::string_view call) noexcept { return call == "mmap" ? ENOMEM : 0; });
  try {
    (void)map_file(path, DType::u8);
    ADD_FAILURE();
  } catch (const DeviceError& error) {
    EXPECT_EQ(error.what(), std::string("mapping '") + path +
                                "': the process's address space, or its number of mappings, does not allow it; help: raise the limits "
                                "(ulimit -v, sysctl vm.max_map_count), or map or read the file in parts");
  }
  os::set_injector([](std::string_view call) noexcept { return call == "fallocate" ? ENOSPC : 0; });
  EXPECT_EQ(help_of([&] { save_npy(folder / "x.npy", full({1000}, 7, DType::i32, "cpu")); }),
            "free space on the disk, or write to another");
  os::set_injector(nullptr);
  EXPECT_EQ(help_of([&] { (void)map_file(folder.path(), DType::u8); }), "name a file in it");
}

}  // namespace
}  // namespace berth::testing
