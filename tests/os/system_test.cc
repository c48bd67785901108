// SPDX-License-Identifier: Apache-2.0
#include "os/system.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <string>

#include "os/file/shared_file.h"
#include "os/memory/memory.h"
#include "support/failing_calls.h"

namespace {

using namespace berth;
using namespace berth::internal;
namespace fs = std::filesystem;

// A fake /proc and /sys, with the files that a test writes.
class FakeRoot {
 public:
  FakeRoot() {
    std::string name = (fs::temp_directory_path() / "berth_system_test_XXXXXX").string();
    if (mkdtemp(name.data()) == nullptr) throw std::runtime_error("no temporary folder");
    path_ = name;
  }
  ~FakeRoot() { fs::remove_all(path_); }
  FakeRoot(const FakeRoot&) = delete;
  FakeRoot& operator=(const FakeRoot&) = delete;

  FakeRoot& write(const std::string& file, const std::string& content) {
    fs::create_directories((path_ / file).parent_path());
    std::ofstream(path_ / file) << content;
    return *this;
  }
  FakeRoot& groups(const std::string& content) { return write("proc/self/cgroup", content); }
  std::optional<os::CgroupMemory> memory() const { return os::cgroup_memory(path_.string()); }
  const fs::path& path() const { return path_; }

 private:
  fs::path path_;
};

void expect_limit(const FakeRoot& root, std::size_t limit, std::size_t used) {
  const auto found = root.memory();
  ASSERT_TRUE(found.has_value());
  EXPECT_EQ(found->limit_bytes, limit);
  EXPECT_EQ(found->used_bytes, used);
}

TEST(CgroupMemory, OfVersion2IsTheTightestOnTheWayUp) {
  FakeRoot root;
  root.groups("0::/a/b/c\n").write("sys/fs/cgroup/a/b/c/memory.max", "9000000\n").write("sys/fs/cgroup/a/b/c/memory.current", "100\n");
  expect_limit(root, 9000000, 100);
  root.write("sys/fs/cgroup/a/memory.max", "5000000\n").write("sys/fs/cgroup/a/memory.current", "4000000\n");
  expect_limit(root, 5000000, 4000000);
  root.write("sys/fs/cgroup/a/b/memory.max", "7000000\n").write("sys/fs/cgroup/a/b/memory.current", "1\n");
  expect_limit(root, 5000000, 4000000);
  root.write("sys/fs/cgroup/a/b/c/memory.max", "4096\n");
  expect_limit(root, 4096, 100);
}

TEST(CgroupMemory, OfAContainerIsThatOfItsRoot) {
  FakeRoot root;
  root.groups("0::/\n").write("sys/fs/cgroup/memory.max", "123456\n").write("sys/fs/cgroup/memory.current", "99\n");
  expect_limit(root, 123456, 99);
}

TEST(CgroupMemory, OfVersion1IsReadFromTheMemoryController) {
  FakeRoot root;
  root.groups("12:cpu,cpuacct:/x\n5:hugetlb,memory:/docker/abc\n1:name=systemd:/x\n");
  root.write("sys/fs/cgroup/memory/docker/memory.limit_in_bytes", "800000\n")
      .write("sys/fs/cgroup/memory/docker/memory.usage_in_bytes", "300\n");
  // How version 1 says "none".
  root.write("sys/fs/cgroup/memory/docker/abc/memory.limit_in_bytes", "9223372036854771712\n");
  expect_limit(root, 800000, 300);
}

TEST(CgroupMemory, OfBothVersionsIsTheTighter) {
  FakeRoot root;
  root.groups("4:memory:/old\n0::/new\n");
  root.write("sys/fs/cgroup/memory/old/memory.limit_in_bytes", "700000").write("sys/fs/cgroup/new/memory.max", "600000");
  expect_limit(root, 600000, 0);
}

TEST(CgroupMemory, IsUnknownWithoutALimit) {
  EXPECT_FALSE(FakeRoot().memory()) << "no files at all";
  EXPECT_FALSE(FakeRoot().groups("0::/a\n").memory()) << "no limit file";
  EXPECT_FALSE(FakeRoot().groups("0::/a\n").write("sys/fs/cgroup/a/memory.max", "max\n").memory());
  EXPECT_FALSE(FakeRoot().groups("0::/a\n").write("sys/fs/cgroup/a/memory.max", "").memory());
  EXPECT_FALSE(FakeRoot().groups("0::/a\n").write("sys/fs/cgroup/a/memory.max", "99999999999999999999999\n").memory());
  EXPECT_FALSE(FakeRoot().groups("0::/a\n").write("sys/fs/cgroup/b/memory.max", "1000\n").memory()) << "another group's";
  EXPECT_FALSE(FakeRoot().groups("3:memorystat:/a\n").write("sys/fs/cgroup/memory/a/memory.limit_in_bytes", "1000\n").memory());
}

TEST(CgroupMemory, IsNotDisturbedByLinesItDoesNotUnderstand) {
  FakeRoot root;
  root.groups("\n:\nnonsense\n0:\n::\n0::\n0::/a:b\n0::/../other\n").write("sys/fs/cgroup/a:b/memory.max", "50000\n");
  expect_limit(root, 50000, 0);
}

TEST(CgroupMemory, ThrowsNothingForAGroupWithoutASlash) {
  FakeRoot root;
  root.groups("0::user.slice\n");
  EXPECT_NO_THROW((void)root.memory());
}

TEST(System, KnowsTheMemoryOfTheMachine) {
  const os::HostMemory memory = os::host_memory();
  const auto pages = static_cast<double>(sysconf(_SC_PHYS_PAGES)) * static_cast<double>(sysconf(_SC_PAGESIZE));
  EXPECT_NEAR(static_cast<double>(memory.total_bytes), pages, pages / 10);
  EXPECT_GT(memory.available_bytes, 0U);
  EXPECT_LE(memory.available_bytes, memory.total_bytes);
}

TEST(System, ListsTheNodesInOrder) {
  const std::vector<int> nodes = os::numa_nodes();
  ASSERT_FALSE(nodes.empty());
  EXPECT_GE(nodes.front(), 0);
  EXPECT_TRUE(std::ranges::is_sorted(nodes, std::less_equal<>())) << "none twice";
  for (const int node : nodes) EXPECT_TRUE(nodes.size() == 1 || fs::exists("/sys/devices/system/node/node" + std::to_string(node))) << node;
}

TEST(System, ComparesKernelVersionsByNumber) {
  int major = 0;
  int minor = 0;
  ASSERT_EQ(std::sscanf(os::kernel_release().c_str(), "%d.%d", &major, &minor), 2) << os::kernel_release();
  EXPECT_TRUE(os::kernel_at_least(major, minor));
  EXPECT_TRUE(os::kernel_at_least(major, 0));
  EXPECT_TRUE(os::kernel_at_least(major - 1, minor + 100));
  EXPECT_FALSE(os::kernel_at_least(major, minor + 1));
  EXPECT_FALSE(os::kernel_at_least(major + 1, 0));
}

TEST(System, ReadsTheEnvironment) {
  ASSERT_EQ(setenv("PROBE_OF_BERTH", "a b", 1), 0);
  EXPECT_EQ(os::environment("PROBE_OF_BERTH"), "a b");
  ASSERT_EQ(setenv("PROBE_OF_BERTH", "", 1), 0);
  EXPECT_EQ(os::environment("PROBE_OF_BERTH"), std::nullopt) << "empty counts as unset";
  ASSERT_EQ(unsetenv("PROBE_OF_BERTH"), 0);
  EXPECT_EQ(os::environment("PROBE_OF_BERTH"), std::nullopt);
}

TEST(System, ReadsTheLimitOnLockedMemory) {
  rlimit limit{};
  ASSERT_EQ(getrlimit(RLIMIT_MEMLOCK, &limit), 0);
  const auto read = os::locked_memory_limit();
  EXPECT_EQ(read.has_value(), limit.rlim_cur != RLIM_INFINITY);
  EXPECT_EQ(read.value_or(RLIM_INFINITY), limit.rlim_cur);
}

TEST(System, KnowsWhichLibrariesLoad) {
  EXPECT_TRUE(os::library_loads("libc.so.6"));
  EXPECT_FALSE(os::library_loads("libberth_no_such_library.so.1"));
}

int g_refused_sources = 0;  // of random bytes

int refuse_random(std::string_view call) noexcept {
  if (call == "getrandom" && g_refused_sources >= 1) return ENOSYS;
  if (call == "open_random" && g_refused_sources >= 2) return EACCES;
  return 0;
}

// An endless loop once, where a sandbox refuses getrandom.
TEST(System, DrawsRandomBytesOrSaysThatItCannot) {
  const berth::testing::Injected injected(refuse_random);
  for (g_refused_sources = 0; g_refused_sources < 2; ++g_refused_sources) {
    std::array<std::uint64_t, 64> words{};
    ASSERT_TRUE(os::random_bytes(words.data(), sizeof words)) << g_refused_sources << " sources are refused";
    EXPECT_EQ(std::ranges::count(words, 0U), 0) << "all are filled";
  }
  std::uint64_t word = 0;
  const Status drawn = os::random_bytes(&word, sizeof word);
  ASSERT_FALSE(drawn) << "both sources are refused";
  EXPECT_EQ(drawn.failure().os_error, ENOSYS);
  EXPECT_EQ(word, 0U);
}

TEST(System, KnowsItsProcess) {
  EXPECT_EQ(os::process_id(), getpid());
  EXPECT_GE(os::cpu_count(), 1);
  const std::string mode = os::huge_page_mode();
  EXPECT_TRUE(mode.empty() || mode == "always" || mode == "madvise" || mode == "never") << mode;
  const std::uint64_t before = os::steady_time_ns();
  EXPECT_GE(os::steady_time_ns(), before);
}

TEST(System, AFileIsNoTerminal) {
  const int file = open("/dev/null", O_RDONLY | O_CLOEXEC);
  ASSERT_GE(file, 0);
  EXPECT_FALSE(os::is_terminal(file));
  EXPECT_EQ(os::terminal_width(file), 80);
  close(file);
  EXPECT_FALSE(os::is_terminal(-1));
}

TEST(ResidentBytes, CountsTheMappingsOfARangeAndOfOthersNoMoreThanLiesInIt) {
  FakeRoot root;
  root.write("smaps",
             "1000-3000 rw-p 00000000 00:00 0\nSize: 8 kB\nRss:     8 kB\nAnonHugePages: 0 kB\n"
             "4000-9000 ---p 00000000 00:00 0 [heap]\nRss:  16 kB\nVmFlags: rd wr\n"
             "abcde000-abcdf000 r--p 00000000 00:00 0 /some/fe1e-9a\nRss: 4 kB\n");
  const auto resident = [&](std::uintptr_t begin, std::size_t bytes) {
    return os::resident_bytes(reinterpret_cast<const void*>(begin), bytes, root.path());  // NOLINT
  };
  EXPECT_EQ(resident(0, 0x10000), 24U * 1024);
  EXPECT_EQ(resident(0x1000, 0x2000), 8U * 1024);
  EXPECT_EQ(resident(0x8000, 0x8000), 4U * 1024) << "16 KiB somewhere in 20, of which 4 are in the range";
  EXPECT_EQ(resident(0x3000, 0x1000), 0U);
  EXPECT_EQ(os::resident_bytes(nullptr, 4096, root.path() / "none"), std::nullopt);
}

// The kernel joins neighbours that look alike to one mapping, of which it says only the sum.
TEST(ResidentBytes, CountsNothingOfANeighbourInTheSameMapping) {
  const std::size_t half = 64 * os::page_bytes();
  const Result<void*> reserved = os::reserve(2 * half, half);
  ASSERT_TRUE(reserved && os::commit(*reserved, 2 * half));
  auto* const first = static_cast<std::byte*>(*reserved);
  std::memset(first, 1, half);
  EXPECT_EQ(os::resident_bytes(first, half), half);
  EXPECT_EQ(os::resident_bytes(first + half, half), 0U);
  first[half] = std::byte{1};
  EXPECT_EQ(os::resident_bytes(first + half, half), os::page_bytes());
  EXPECT_TRUE(os::release(first, 2 * half));
}

TEST(ResidentBytes, FollowsWhatIsTouched) {
  const std::size_t page = os::page_bytes();
  const std::size_t bytes = 64 * page;
  const Result<void*> reserved = os::reserve(bytes, page);
  ASSERT_TRUE(reserved);
  auto* const at = static_cast<volatile char*>(*reserved);
  EXPECT_EQ(os::resident_bytes(*reserved, bytes), 0U);
  ASSERT_TRUE(os::commit(*reserved, bytes / 2));
  EXPECT_EQ(os::resident_bytes(*reserved, bytes), 0U) << "committed, and not touched yet";
  for (std::size_t offset = 0; offset < bytes / 4; offset += page) at[offset] = 1;
  EXPECT_EQ(os::resident_bytes(*reserved, bytes), bytes / 4);
  EXPECT_TRUE(os::release(*reserved, bytes));
}

}  // namespace
