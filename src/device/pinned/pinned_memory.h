// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "device/cpu/cpu_backend.h"
#include "device/piece_memory.h"

// Page-locked host memory. Locking is slowest when the driver has to fault in the pages one by one, so they are
// faulted in first, as huge pages and by several threads, and then locked in long pieces: for 2 GiB this takes
// a fifth of the time of cudaHostAlloc. Any thread.
namespace berth::internal::device {

// The functions that lock and unlock pages; tests have their own.
struct PageLocks {
  Status (*lock)(void* address, std::size_t bytes) noexcept = nullptr;
  Status (*unlock)(void* address) noexcept = nullptr;
};

class PinnedMemory final : public PieceMemory {
 public:
  static constexpr std::size_t kUnit = std::size_t{2} << 20;
  static constexpr std::size_t kMostPiece = std::size_t{1} << 30;

  PinnedMemory(CpuBackend& pages, const PageLocks& locks) : PieceMemory(kUnit, kMostPiece), pages_(pages), locks_(locks) {}

 private:
  Result<Addresses> reserve_addresses(std::size_t bytes, std::size_t alignment) noexcept override;
  void give_addresses_back(const Addresses& addresses) noexcept override;
  Status make_piece(Piece& piece) noexcept override;
  Status drop_piece(const Piece& piece) noexcept override;

  CpuBackend& pages_;
  const PageLocks locks_;
};

// Writes to every page, with several threads where that pays.
void touch_pages(void* address, std::size_t bytes) noexcept;

}  // namespace berth::internal::device
