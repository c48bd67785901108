// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "device/cpu/cpu_backend.h"
#include "device/piece_memory.h"

// Page-locked host memory. Locking costs most when the driver has to find the pages one by one, so they are made first, on huge pages and by
// several threads, and then locked in long pieces: for 2 GiB a fifth of the time that cudaHostAlloc takes.
namespace berth::internal::device {

// What the pages come from, and what locks them; tests have a lock of their own.
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

// Writes to every page, by several threads where it is worth it.
void touch_pages(void* address, std::size_t bytes) noexcept;

}  // namespace berth::internal::device
