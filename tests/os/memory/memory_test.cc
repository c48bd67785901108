// SPDX-License-Identifier: Apache-2.0
#include "os/memory/memory.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <functional>
#include <string>
#include <vector>

#include "base/random.h"
#include "berth/base/checked.h"
#include "berth/base/units.h"
#include "os/inject.h"
#include "os/memory/mapping_ends.h"
#include "support/scale.h"

namespace {

using namespace berth;
using namespace berth::internal;

const std::size_t kPage = os::page_bytes();

// A reserved range, released by the destructor.
class Range {
 public:
  explicit Range(std::size_t pages, std::size_t alignment = os::page_bytes()) : bytes_(pages * kPage) {
    const auto reserved = os::reserve(bytes_, alignment);
    if (!reserved) throw std::bad_alloc();
    begin_ = static_cast<unsigned char*>(*reserved);
  }
  ~Range() { EXPECT_TRUE(os::release(begin_, bytes_)); }
  Range(const Range&) = delete;
  Range& operator=(const Range&) = delete;

  unsigned char* page(std::size_t index) const { return begin_ + index * kPage; }
  std::size_t bytes() const { return bytes_; }

  void fill(unsigned char first) const {
    for (std::size_t i = 0; i < bytes_; ++i) begin_[i] = pattern(first, i);
  }
  bool holds(unsigned char first) const {
    for (std::size_t i = 0; i < bytes_; ++i) {
      if (begin_[i] != pattern(first, i)) return false;
    }
    return true;
  }
  bool is_zero() const { return bytes_ == static_cast<std::size_t>(std::count(begin_, begin_ + bytes_, 0)); }

  // Whether every page, or no page, is accessible. A system call reads each page, and returns EFAULT where an
  // access would raise a signal.
  bool accessible() const { return count_accessible() == bytes_ / kPage; }
  bool inaccessible() const { return count_accessible() == 0; }

  // How many kernel mappings the range consists of.
  int mappings() const {
    std::ifstream maps("/proc/self/maps");
    int count = 0;
    for (std::string line; std::getline(maps, line);) {
      unsigned long from = 0;
      unsigned long to = 0;
      if (std::sscanf(line.c_str(), "%lx-%lx", &from, &to) != 2) continue;
      const auto begin = reinterpret_cast<std::uintptr_t>(begin_);
      count += from < begin + bytes_ && to > begin ? 1 : 0;
    }
    return count;
  }

 private:
  static unsigned char pattern(unsigned char first, std::size_t i) { return static_cast<unsigned char>(first + i * 7 + i / kPage); }

  std::size_t count_accessible() const {
    int ends[2];
    EXPECT_EQ(pipe2(ends, O_CLOEXEC), 0);
    std::size_t count = 0;
    for (std::size_t at = 0; at < bytes_; at += kPage) {
      char byte = 0;
      if (write(ends[1], begin_ + at, 1) != 1) continue;
      count += read(ends[0], &byte, 1) == 1 ? 1 : 0;
    }
    close(ends[0]);
    close(ends[1]);
    return count;
  }

  unsigned char* begin_ = nullptr;
  std::size_t bytes_;
};

// Makes system calls of one name fail while it lives: all of them, or only the nth.
class FailCall {
 public:
  FailCall(std::string_view call, int error, int nth = 0) {
    s_call = call;
    s_error = error;
    s_nth = nth;
    s_seen = 0;
    os::set_injector([](std::string_view made) noexcept {
      if (made != s_call) return 0;
      ++s_seen;
      return s_nth == 0 || s_nth == s_seen ? s_error : 0;
    });
  }
  ~FailCall() { os::set_injector(nullptr); }
  FailCall(const FailCall&) = delete;
  FailCall& operator=(const FailCall&) = delete;

  int seen() const { return s_seen; }

 private:
  static inline std::string_view s_call;
  static inline int s_error = 0;
  static inline int s_nth = 0;
  static inline int s_seen = 0;
};

TEST(Memory, PagesArePowersOfTwo) {
  EXPECT_TRUE(is_power_of_two(kPage));
  EXPECT_TRUE(os::huge_page_bytes() == 0 || (is_power_of_two(os::huge_page_bytes()) && os::huge_page_bytes() > kPage));
}

TEST(Memory, ReservesAtTheAlignmentAskedFor) {
  for (std::size_t alignment = 1; alignment <= std::size_t{1} << 30; alignment *= 2) {
    for (const std::size_t bytes : {std::size_t{1}, kPage, 3 * kPage + 1}) {
      const auto reserved = os::reserve(bytes, alignment);
      ASSERT_TRUE(reserved) << alignment;
      EXPECT_EQ(reinterpret_cast<std::uintptr_t>(*reserved) % std::max(alignment, kPage), 0U);
      EXPECT_TRUE(os::commit(*reserved, *try_align_up(bytes, kPage)));
      static_cast<unsigned char*>(*reserved)[bytes - 1] = 1;
      EXPECT_TRUE(os::release(*reserved, bytes));
    }
  }
}

TEST(Memory, RefusesRangesThatCannotBe) {
  for (const std::size_t bytes : {SIZE_MAX, SIZE_MAX - kPage + 2, SIZE_MAX - kPage, std::size_t{1} << 63}) {
    const auto reserved = os::reserve(bytes, kPage);
    ASSERT_FALSE(reserved) << bytes;
    EXPECT_EQ(reserved.failure().code, ErrorCode::out_of_memory);
  }
  EXPECT_FALSE(os::reserve(kPage, std::size_t{1} << 63));
}

TEST(Memory, RefusesARangeOfNoBytesAtEveryAlignment) {
  for (std::size_t alignment = 1; alignment <= std::size_t{1} << 30; alignment *= 2) ASSERT_FALSE(os::reserve(0, alignment)) << alignment;
}

TEST(Memory, CanBeTouchedExactlyWhileItIsCommitted) {
  const Range range(4);
  EXPECT_TRUE(range.inaccessible());
  ASSERT_TRUE(os::commit(range.page(0), range.bytes()));
  EXPECT_TRUE(range.accessible());
  EXPECT_TRUE(range.is_zero());
  range.fill(3);
  ASSERT_TRUE(os::commit(range.page(0), range.bytes())) << "committing again";
  EXPECT_TRUE(range.holds(3)) << "changes nothing";
  ASSERT_TRUE(os::decommit(range.page(0), range.bytes()));
  EXPECT_TRUE(range.inaccessible());
  ASSERT_TRUE(os::commit(range.page(0), range.bytes()));
  EXPECT_TRUE(range.is_zero()) << "nothing of the old contents comes back";
}

TEST(Memory, DecommitsAPartAndLeavesTheRest) {
  const Range range(3);
  ASSERT_TRUE(os::commit(range.page(0), range.bytes()));
  std::memset(range.page(0), 9, range.bytes());
  ASSERT_TRUE(os::decommit(range.page(1), kPage));
  ASSERT_TRUE(os::commit(range.page(1), kPage));
  EXPECT_EQ(*range.page(0), 9);
  EXPECT_EQ(*range.page(1), 0);
  EXPECT_EQ(*range.page(2), 9);
}

TEST(Memory, MovesTheContentsAndLeavesAReservedRangeBehind) {
  for (const std::size_t pages : {1UL, 2UL, 7UL, 600UL}) {
    const Range from(pages);
    const Range to(pages);
    ASSERT_TRUE(os::commit(from.page(0), from.bytes()));
    from.fill(1);
    ASSERT_TRUE(os::move(from.page(0), to.page(0), to.bytes()));
    EXPECT_TRUE(to.holds(1));
    EXPECT_TRUE(from.inaccessible());
    ASSERT_TRUE(os::commit(from.page(0), from.bytes()));
    EXPECT_TRUE(from.is_zero());
    from.fill(2);
    EXPECT_TRUE(to.holds(1)) << "the ranges do not share pages";
  }
}

// Ways to split a range into several kernel mappings, which a single mremap may refuse.
struct Divider {
  const char* name;
  void (*divide)(void* address, std::size_t bytes);
};
const Divider kDividers[] = {
    {"huge pages", [](void* address, std::size_t bytes) { os::prefer_huge_pages(address, bytes); }},
    {"a NUMA node", [](void* address, std::size_t bytes) { (void)os::bind_to_node(address, bytes, 0).ok(); }},
    {"no core dump", [](void* address, std::size_t bytes) { EXPECT_EQ(madvise(address, bytes, MADV_DONTDUMP), 0); }},
};

// Commits a range in two pieces and makes the second a mapping of its own.
void commit_in_pieces(const Range& range, const Divider& divider, unsigned char first) {
  const std::size_t front = kPage * (range.bytes() / kPage / 3);
  ASSERT_TRUE(os::commit(range.page(0), front));
  ASSERT_TRUE(os::commit(range.page(0) + front, range.bytes() - front));
  divider.divide(range.page(0) + front, range.bytes() - front);
  range.fill(first);
}

TEST(Memory, MovesARangeThatWasCommittedInPieces) {
  int divided = 0;
  for (const Divider& divider : kDividers) {
    SCOPED_TRACE(divider.name);
    const Range from(11);
    const Range to(11);
    ASSERT_NO_FATAL_FAILURE(commit_in_pieces(from, divider, 5));
    divided += from.mappings() > 1 ? 1 : 0;
    ASSERT_TRUE(os::move(from.page(0), to.page(0), to.bytes()));
    EXPECT_TRUE(to.accessible());
    EXPECT_TRUE(to.holds(5));
    EXPECT_TRUE(from.inaccessible());
    ASSERT_TRUE(os::commit(from.page(0), from.bytes()));
    EXPECT_TRUE(from.is_zero());
  }
  EXPECT_GT(divided, 0) << "no range was in pieces";
}

TEST(Memory, MovesARangeOfManyPieces) {
  const Range from(64);
  const Range to(64);
  ASSERT_TRUE(os::commit(from.page(0), from.bytes()));
  for (std::size_t i = 0; i < 64; i += 2) ASSERT_EQ(madvise(from.page(i), kPage, MADV_DONTDUMP), 0);
  from.fill(8);
  EXPECT_EQ(from.mappings(), 64);
  ASSERT_TRUE(os::move(from.page(0), to.page(0), to.bytes()));
  EXPECT_TRUE(to.holds(8));
  EXPECT_TRUE(from.inaccessible());
}

// The lengths of the mappings of a committed range.
std::vector<std::size_t> lengths_of(const Range& range) {
  std::vector<std::size_t> lengths;
  for (std::size_t seen = 0; seen < range.bytes(); seen += lengths.back())
    lengths.push_back(os::mapping_bytes(range.page(0) + seen, range.bytes() - seen));
  return lengths;
}

TEST(Memory, FindsTheEndsOfMappingsHoweverTheyChange) {
  constexpr std::size_t kPages = 300;
  const Range range(kPages);
  ASSERT_TRUE(os::commit(range.page(0), range.bytes()));
  std::vector<bool> is_dumped(kPages, true);
  base::Random random(berth::testing::seed());
  for (std::uint64_t round = 0; round < berth::testing::scaled(2'000, 200); ++round) {
    const std::size_t begin = random.below(kPages);
    const std::size_t count = 1 + random.below(random.one_in(4) ? kPages - begin : std::min<std::size_t>(4, kPages - begin));
    const bool dump = random.one_in(2);
    ASSERT_EQ(madvise(range.page(begin), count * kPage, dump ? MADV_DODUMP : MADV_DONTDUMP), 0);
    std::fill_n(is_dumped.begin() + static_cast<std::ptrdiff_t>(begin), count, dump);
    std::vector<std::size_t> expected;
    for (std::size_t i = 0; i < kPages; ++i) {
      if (i == 0 || is_dumped[i] != is_dumped[i - 1]) expected.push_back(0);
      expected.back() += kPage;
    }
    ASSERT_EQ(lengths_of(range), expected) << "round " << round;
  }
  EXPECT_TRUE(range.is_zero());
}

bool pays(const Range& range, std::size_t bytes) {
  os::MappingLengths found;
  return os::pays_to_move(range.page(0), bytes, found);
}

TEST(Memory, ManyShortMappingsAreNotWorthAMove) {
  const Range range(2_MiB / kPage);
  ASSERT_TRUE(os::commit(range.page(0), range.bytes()));
  EXPECT_TRUE(pays(range, kPage)) << "one mapping always is";
  EXPECT_TRUE(pays(range, range.bytes()));
  ASSERT_EQ(madvise(range.page(0), 1_MiB, MADV_DONTDUMP), 0);
  EXPECT_TRUE(pays(range, range.bytes())) << "two of 1 MiB";
  for (std::size_t i = 0; i < 6; i += 2) ASSERT_EQ(madvise(range.page(i), kPage, MADV_DODUMP), 0);
  EXPECT_FALSE(pays(range, range.bytes()));
}

TEST(Memory, MovesByTheLengthsThatWereFound) {
  for (const std::size_t pages : {12UL, 100UL}) {  // fewer mappings than are kept, and more
    const Range from(pages);
    const Range to(pages);
    ASSERT_TRUE(os::commit(from.page(0), from.bytes()));
    for (std::size_t i = 0; i < pages; i += 2) ASSERT_EQ(madvise(from.page(i), kPage, MADV_DONTDUMP), 0);
    from.fill(6);
    os::MappingLengths found;
    for (const std::size_t length : lengths_of(from))
      if (found.count < found.bytes.size()) found.bytes[found.count++] = length;
    ASSERT_TRUE(os::move(from.page(0), to.page(0), to.bytes(), found));
    EXPECT_TRUE(to.holds(6));
    EXPECT_TRUE(from.inaccessible());
  }
}

TEST(Memory, LeavesTheBytesWhereTheyWereWhenAMoveFails) {
  for (const Divider& divider : kDividers) {
    SCOPED_TRACE(divider.name);
    const Range from(12);
    const Range to(12);
    ASSERT_NO_FATAL_FAILURE(commit_in_pieces(from, divider, 7));
    bool moved = false;
    for (int nth = 1; !moved; ++nth) {
      const FailCall fail("mremap", ENOMEM, nth);
      const Status status = os::move(from.page(0), to.page(0), to.bytes());
      ASSERT_EQ(status.ok(), fail.seen() < nth) << "call " << nth << " of mremap failed";
      moved = status.ok();
      if (moved) break;
      EXPECT_EQ(status.failure().code, ErrorCode::out_of_memory);
      EXPECT_EQ(status.failure().os_error, ENOMEM);
      ASSERT_TRUE(from.accessible() && from.holds(7)) << "call " << nth;
      ASSERT_TRUE(to.inaccessible()) << "call " << nth;
    }
    EXPECT_TRUE(to.holds(7)) << "and the next attempt works";
  }
}

// The kernel itself may reach a limit halfway: since 6.17 one mremap moves several mappings in turn.
TEST(Memory, LeavesTheBytesWhereTheyWereWhenTheKernelFailsHalfWay) {
  const Range from(12);
  const Range to(12);
  ASSERT_NO_FATAL_FAILURE(commit_in_pieces(from, kDividers[2], 9));
  std::ifstream status_file("/proc/self/status");
  unsigned long data_kib = 0;
  for (std::string line; std::getline(status_file, line);) (void)std::sscanf(line.c_str(), "VmData: %lu kB", &data_kib);
  ASSERT_GT(data_kib, 0UL);
  rlimit before{};
  ASSERT_EQ(getrlimit(RLIMIT_DATA, &before), 0);
  rlimit tight = before;
  tight.rlim_cur = data_kib * 1024 + 6 * kPage;  // room for the first piece, 4 pages, but not for the second, 8
  ASSERT_EQ(setrlimit(RLIMIT_DATA, &tight), 0);
  const Status status = os::move(from.page(0), to.page(0), to.bytes());
  ASSERT_EQ(setrlimit(RLIMIT_DATA, &before), 0);
  if (status.ok()) GTEST_SKIP() << "this kernel does not count moved pages against RLIMIT_DATA";
  ASSERT_EQ(status.failure().code, ErrorCode::out_of_memory) << status.failure().why;
  EXPECT_TRUE(from.accessible() && from.holds(9));
  EXPECT_TRUE(to.inaccessible());
  ASSERT_TRUE(os::move(from.page(0), to.page(0), to.bytes()));
  EXPECT_TRUE(to.holds(9)) << "and the next attempt works";
}

TEST(Memory, AMoveIsDoneEvenIfTheOldRangeCannotBeDecommitted) {
  const Range from(2);
  const Range to(2);
  ASSERT_TRUE(os::commit(from.page(0), from.bytes()));
  from.fill(4);
  {
    const FailCall fail("mmap_fixed", ENOMEM);
    EXPECT_TRUE(os::move(from.page(0), to.page(0), to.bytes()));
  }
  EXPECT_TRUE(to.holds(4));
  EXPECT_TRUE(from.is_zero());
}

TEST(Memory, EverySystemCallThatFailsIsAFailure) {
  const Range range(4);
  const Range target(4);
  struct Row {
    const char* call;
    std::function<Status()> attempt;
  };
  const Row rows[] = {
      {"mmap",
       [&] {
         const auto made = os::reserve(kPage, kPage);
         return made ? Status() : Status(made.failure());
       }},
      {"mprotect", [&] { return os::commit(range.page(0), kPage); }},
      {"mmap_fixed", [&] { return os::decommit(range.page(0), kPage); }},
      {"munmap", [&] { return os::release(range.page(0), kPage); }},
      {"mremap", [&] { return os::move(range.page(0), target.page(0), kPage); }},
      {"mbind", [&] { return os::bind_to_node(range.page(0), kPage, 0); }},
  };
  ASSERT_TRUE(os::commit(range.page(0), range.bytes()));
  range.fill(6);
  for (const Row& row : rows) {
    for (const auto& [error, code] :
         {std::pair(ENOMEM, ErrorCode::out_of_memory), {EAGAIN, ErrorCode::out_of_memory}, {EPERM, ErrorCode::device_error}}) {
      SCOPED_TRACE(row.call);
      const FailCall fail(row.call, error);
      const Status status = row.attempt();
      ASSERT_FALSE(status.ok());
      EXPECT_EQ(status.failure().code, code);
      EXPECT_EQ(status.failure().os_error, error);
      EXPECT_STRNE(status.failure().why, "");
      EXPECT_TRUE(range.accessible() && range.holds(6)) << "nothing has changed";
    }
  }
}

TEST(Memory, HintsKeepTheContents) {
  const Range range(8);
  ASSERT_TRUE(os::commit(range.page(0), range.bytes()));
  range.fill(2);
  os::prefer_huge_pages(range.page(0), range.bytes());
  (void)os::bind_to_node(range.page(0), range.bytes(), 0).ok();  // kernels without NUMA refuse
  EXPECT_TRUE(range.holds(2));
}

TEST(Memory, RefusesNodesThatCannotBe) {
  const Range range(1);
  for (const int node : {-1, INT32_MIN, 1024, INT32_MAX}) {
    const Status status = os::bind_to_node(range.page(0), kPage, node);
    ASSERT_FALSE(status.ok()) << node;
    EXPECT_EQ(status.failure().code, ErrorCode::invalid_argument) << node;
  }
}

}  // namespace
