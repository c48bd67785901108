// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <map>
#include <memory>
#include <span>
#include <vector>

#include "berth/base/result.h"

// The memory of a simulated device: a page table. Addresses come from ranges that the host may not touch; the bytes live in frames on
// the host's heap that only this class knows.
//
//     address range (no access)  [ page 0 | page 1 | page 2 | ... ]
//                                    |                 |
//     frames on the heap           bytes             bytes          at most capacity_bytes of them
//
// Not thread-safe: the backend holds its lock around every call.
namespace berth {

class SimMemory {
 public:
  SimMemory(std::size_t capacity_bytes, std::size_t page_bytes) noexcept : capacity_bytes_(capacity_bytes), page_bytes_(page_bytes) {}
  ~SimMemory();
  SimMemory(const SimMemory&) = delete;
  SimMemory& operator=(const SimMemory&) = delete;

  Result<void*> reserve(std::size_t bytes, std::size_t alignment);
  Status release(void* address, std::size_t bytes);
  Status commit(void* address, std::size_t bytes);
  Status decommit(void* address, std::size_t bytes);
  Status move(void* from, void* to, std::size_t bytes);

  // Between device and host, and within the device (overlaps allowed). Nothing is written unless every page is committed.
  Status read(void* host, const void* device, std::size_t bytes) const;
  Status write(void* device, const void* host, std::size_t bytes);
  Status copy(void* target, const void* source, std::size_t bytes);
  Status fill(void* device, std::size_t bytes, std::span<const std::byte> pattern);

  // Gives everything back, as when the device is lost.
  void clear() noexcept;

  std::size_t committed_bytes() const noexcept { return committed_bytes_; }
  std::size_t reserved_bytes() const noexcept { return reserved_bytes_; }
  std::size_t capacity_bytes() const noexcept { return capacity_bytes_; }

 private:
  using Frame = std::unique_ptr<std::byte[]>;

  struct Range {
    std::size_t bytes;
    std::vector<Frame> pages;  // empty frame: not committed
  };

  // Calls visit(piece of a frame, offset from `address`) for each page the bytes lie on, after checking that all are committed.
  template <class Visit>
  Status for_each_piece(const void* address, std::size_t bytes, Visit visit) const;

  // The pages [address, address + bytes) exactly, or a failure when they are not whole pages of one range.
  Result<std::span<Frame>> pages(void* address, std::size_t bytes);
  const Range* find(std::size_t address, std::size_t bytes, std::size_t& base) const noexcept;

  const std::size_t capacity_bytes_;
  const std::size_t page_bytes_;
  std::size_t committed_bytes_ = 0;      // == page_bytes_ * number of frames, <= capacity_bytes_
  std::size_t reserved_bytes_ = 0;       // == sum of range sizes
  std::map<std::size_t, Range> ranges_;  // by first address
};

}  // namespace berth
