// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/mman.h>
#include <unistd.h>

#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <new>
#include <vector>

// Memory at addresses that are hard for kernels: misaligned, at the end of an allocation, or between guard
// pages.
namespace berth::testing {

// Bytes that begin `offset` bytes past a multiple of 64 and end at the end of their heap allocation, so that
// the address sanitizer sees a read past them; with an offset of 0 also one before.
class Misaligned {
 public:
  Misaligned(std::size_t bytes, std::size_t offset) : offset_(offset), bytes_(bytes) {
    void* made = nullptr;
    if (posix_memalign(&made, 64, offset + bytes) != 0) throw std::bad_alloc();
    block_.reset(static_cast<std::byte*>(made));
  }
  Misaligned(const std::vector<std::byte>& content, std::size_t bytes, std::size_t offset) : Misaligned(bytes, offset) {
    if (bytes != 0) std::memcpy(data(), content.data(), bytes);
  }

  std::byte* data() const noexcept { return block_.get() + offset_; }
  std::size_t size() const noexcept { return bytes_; }

 private:
  struct Free {
    void operator()(std::byte* block) const noexcept { std::free(block); }
  };
  std::unique_ptr<std::byte, Free> block_;
  std::size_t offset_;
  std::size_t bytes_;
};

// Whole pages between two guard pages, on which an access faults.
class Fenced {
 public:
  explicit Fenced(std::size_t bytes)
      : page_(static_cast<std::size_t>(sysconf(_SC_PAGESIZE))), inside_((bytes + page_ - 1) / page_ * page_) {
    void* const made = mmap(nullptr, inside_ + 2 * page_, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (made == MAP_FAILED) throw std::bad_alloc();
    begin_ = static_cast<std::byte*>(made) + page_;
    if (mprotect(begin_, inside_, PROT_READ | PROT_WRITE) != 0) throw std::bad_alloc();
  }
  ~Fenced() { munmap(begin_ - page_, inside_ + 2 * page_); }
  Fenced(const Fenced&) = delete;
  Fenced& operator=(const Fenced&) = delete;

  // `bytes` bytes, right after the first guard page or right before the last.
  std::byte* first(std::size_t) const noexcept { return begin_; }
  std::byte* last(std::size_t bytes) const noexcept { return begin_ + inside_ - bytes; }

 private:
  const std::size_t page_;
  const std::size_t inside_;
  std::byte* begin_ = nullptr;
};

// A target of a kernel with guard bytes around it that must stay as they are.
class Guarded {
 public:
  static constexpr std::size_t kGuard = 64;
  static constexpr std::byte kUntouched{0xc7};

  Guarded(std::size_t bytes, std::size_t offset) : whole_(bytes + 2 * kGuard, offset) {
    std::memset(whole_.data(), std::to_integer<int>(kUntouched), whole_.size());
  }

  std::byte* data() const noexcept { return whole_.data() + kGuard; }
  // Compares the target and its guards.
  bool equals(const Guarded& other) const noexcept { return std::memcmp(whole_.data(), other.whole_.data(), whole_.size()) == 0; }

 private:
  Misaligned whole_;
};

}  // namespace berth::testing
