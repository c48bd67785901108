// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "device/cuda/cuda_context.h"
#include "device/piece_memory.h"
#include "os/file/descriptor.h"
#include "os/file/own_descriptor.h"

// Address ranges of a CUDA device, and the physical memory under them: a piece is a handle of cuMemCreate. A
// move maps pieces at the new address before it unmaps them at the old one, so that a failure leaves them where
// they were. Any thread.
//
// Where the device has no virtual memory management, a range is one block of cuMemAlloc, and commit only
// updates the table.
namespace berth::internal::device::cuda {

class CudaMemory final : public PieceMemory {
 public:
  static constexpr std::size_t kMostPiece = std::size_t{128} << 20;

  CudaMemory(CudaContext& context, std::size_t unit_bytes, bool virtual_memory, bool exports, std::vector<CUmemAccessDesc> access)
      : PieceMemory(unit_bytes, virtual_memory ? kMostPiece : SIZE_MAX / unit_bytes * unit_bytes),
        context_(context),
        virtual_memory_(virtual_memory),
        exports_(exports),
        access_(std::move(access)) {}

  CUmemAllocationProp properties() const noexcept;  // of the allocations made here
  std::span<const CUmemAccessDesc> access() const noexcept { return access_; }

  // Exports a piece as a new file descriptor. The first one is kept until the piece is dropped: the driver
  // takes 30 µs for each export, and 600 when none is open. `not_found` when there is no such piece. Throws
  // bad_alloc. REQUIRES: the piece is not dropped concurrently.
  Result<os::Descriptor> export_piece(std::uint64_t serial);

 private:
  Result<Addresses> reserve_addresses(std::size_t bytes, std::size_t alignment) noexcept override;
  void give_addresses_back(const Addresses& addresses) noexcept override;
  Status make_piece(Piece& piece) noexcept override;
  Status drop_piece(const Piece& piece) noexcept override;
  Status open_pieces(std::uintptr_t address, std::size_t bytes) noexcept override;
  Status map_pieces_again(std::span<const Piece> pieces, std::uintptr_t distance, std::size_t bytes) noexcept override;
  Status unmap_echo(std::uintptr_t address, std::size_t bytes) noexcept override;

  Result<Addresses> reserve_plainly(std::size_t bytes, std::size_t alignment) noexcept;
  Status give_access(std::uintptr_t address, std::size_t bytes) noexcept;

  CudaContext& context_;
  const bool virtual_memory_;
  const bool exports_;                         // pieces can be exported
  const std::vector<CUmemAccessDesc> access_;  // for this device, and those that may access it
  os::Mutex mutex_;
  std::map<std::uint64_t, os::OwnDescriptor> exported_ BERTH_GUARDED_BY(mutex_);  // by serial
};

// Exports a handle that was created in this process as a file descriptor. REQUIRES: the context is current.
Result<os::Descriptor> export_handle(CudaContext& context, CUmemGenericAllocationHandle handle) noexcept;

}  // namespace berth::internal::device::cuda
