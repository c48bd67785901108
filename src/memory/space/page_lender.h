// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "memory/space/extent.h"

// Pages that a pool and its private pools exchange. The borrower calls without holding its own lock; what it
// gets is in transit in the lender's range, so that no thread there touches it, until the borrower reports its
// outcome. So no two pools' locks are ever held at once.
namespace berth::internal::memory {

struct Loan {
  enum class End : std::uint8_t {
    kept,   // not used: the lender's again
    moved,  // the borrower has the pages now
    lost,   // gone from the lender, and the borrower got none
  };
  PoolExtent* extent = nullptr;  // in transit; not the borrower's to change
  std::byte* address = nullptr;
  std::size_t bytes = 0;
  End end = End::kept;
};

class PageLender {
 public:
  // Whole free pages for pieces of so many bytes, in that order; each loan is at most as long as the piece that
  // it is for, and a piece may get several. Returns how many there are.
  virtual std::size_t lend(std::span<const std::size_t> wanted, std::span<Loan> loans) noexcept = 0;
  virtual void settle(std::span<const Loan> loans) noexcept = 0;

  // Takes pages over for good: they are moved to addresses of its own. False: it cannot, and they stay where
  // they are.
  virtual bool adopt(std::byte* pages, std::size_t bytes) noexcept = 0;

 protected:
  PageLender() noexcept = default;
  ~PageLender() = default;
};

}  // namespace berth::internal::memory
