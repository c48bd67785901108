// SPDX-License-Identifier: Apache-2.0
#include "device/cuda/cuda_memory.h"

#include "berth/base/checked.h"
#include "os/file/shared_file.h"

namespace berth::internal::device::cuda {

namespace {

constexpr Failure kTooLong{ErrorCode::out_of_memory, 0, "the range is larger than the address space"};

}  // namespace

Result<os::Descriptor> export_handle(CudaContext& context, CUmemGenericAllocationHandle handle) noexcept {
  int number = -1;
  if (const Status done =
          BERTH_CUDA_CALL(context, cuMemExportToShareableHandle, &number, handle, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0);
      !done)
    return done.failure();
  os::Descriptor made(number);
  os::keep_from_programs(number);
  return made;
}

CUmemAllocationProp CudaMemory::properties() const noexcept {
  CUmemAllocationProp prop = {};
  prop.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  prop.requestedHandleTypes = exports_ ? CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR : CU_MEM_HANDLE_TYPE_NONE;
  prop.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
  prop.location.id = context_.number();
  return prop;
}

Result<PieceMemory::Addresses> CudaMemory::reserve_plainly(std::size_t bytes, std::size_t alignment) noexcept {
  const auto longer = try_add(bytes, alignment);
  CUdeviceptr first = 0;
  if (!longer) return kTooLong;
  if (const Status made = BERTH_CUDA_CALL(context_, cuMemAlloc, &first, *longer); !made) return made.failure();
  return Addresses{static_cast<std::uintptr_t>(first), *longer};
}

Result<PieceMemory::Addresses> CudaMemory::reserve_addresses(std::size_t bytes, std::size_t alignment) noexcept {
  const Scope scope(context_);
  if (!scope) return scope.failure();
  if (!virtual_memory_) return reserve_plainly(bytes, alignment);
  CUdeviceptr first = 0;
  if (const Status reserved = BERTH_CUDA_CALL(context_, cuMemAddressReserve, &first, bytes, alignment, 0, 0); !reserved)
    return reserved.failure();
  if (first % alignment == 0) return Addresses{static_cast<std::uintptr_t>(first), bytes};
  // The driver ignored the alignment: reserve more, and use the aligned part.
  (void)BERTH_CUDA_CALL(context_, cuMemAddressFree, first, bytes).ok();
  const auto longer = try_add(bytes, alignment);
  if (!longer) return kTooLong;
  if (const Status reserved = BERTH_CUDA_CALL(context_, cuMemAddressReserve, &first, *longer, 0, 0, 0); !reserved)
    return reserved.failure();
  return Addresses{static_cast<std::uintptr_t>(first), *longer};
}

void CudaMemory::give_addresses_back(const Addresses& addresses) noexcept {
  const Scope scope(context_);
  if (!scope) return;
  const Status done = virtual_memory_ ? BERTH_CUDA_CALL(context_, cuMemAddressFree, addresses.first, addresses.bytes)
                                      : BERTH_CUDA_CALL(context_, cuMemFree, addresses.first);
  (void)done.ok();  // leaked addresses do no harm
}

Status CudaMemory::make_piece(Piece& piece) noexcept {
  const Scope scope(context_);
  if (!scope) return scope.failure();
  if (!virtual_memory_) return {};
  CUmemGenericAllocationHandle handle = 0;
  const CUmemAllocationProp prop = properties();
  if (const Status made = BERTH_CUDA_CALL(context_, cuMemCreate, &handle, piece.bytes, &prop, 0); !made) return made;
  const Status mapped = BERTH_CUDA_CALL(context_, cuMemMap, piece.address, piece.bytes, 0, handle, 0);
  if (!mapped) (void)BERTH_CUDA_CALL(context_, cuMemRelease, handle).ok();
  piece.handle = handle;
  return mapped;
}

Result<os::Descriptor> CudaMemory::export_piece(std::uint64_t serial) {
  const std::optional<Piece> piece = find_piece(serial);
  if (!piece) return Failure{ErrorCode::not_found, 0, "the memory has been released"};
  {
    const os::Lock lock(mutex_);
    const auto known = exported_.find(serial);
    if (known != exported_.end()) return os::duplicate(known->second.number());
  }
  const Scope scope(context_);
  if (!scope) return scope.failure();
  Result<os::Descriptor> made = export_handle(context_, piece->handle);
  if (!made) return made;
  Result<os::Descriptor> given = os::duplicate(made->number());
  const os::Lock lock(mutex_);
  exported_[serial].set(std::move(*made));
  return given;
}

Status CudaMemory::drop_piece(const Piece& piece) noexcept {
  decltype(exported_)::node_type exported;  // closed after the lock is released, as that is slow
  {
    const os::Lock lock(mutex_);
    if (!exported_.empty()) exported = exported_.extract(piece.serial);
  }
  const Scope scope(context_);
  if (!scope) return scope.failure();
  if (!virtual_memory_) return {};
  const Status unmapped = BERTH_CUDA_CALL(context_, cuMemUnmap, piece.address, piece.bytes);
  const Status released = BERTH_CUDA_CALL(context_, cuMemRelease, piece.handle);
  return unmapped ? released : unmapped;
}

// REQUIRES: the context is current.
Status CudaMemory::give_access(std::uintptr_t address, std::size_t bytes) noexcept {
  return BERTH_CUDA_CALL(context_, cuMemSetAccess, address, bytes, access_.data(), access_.size());
}

Status CudaMemory::open_pieces(std::uintptr_t address, std::size_t bytes) noexcept {
  const Scope scope(context_);
  if (!scope) return scope.failure();
  return virtual_memory_ ? give_access(address, bytes) : Status();
}

// (Measured on a GPU: a kernel that writes through the old address continues, and a later one of its stream
// reads every word through the new one.)
Status CudaMemory::map_pieces_again(std::span<const Piece> pieces, std::uintptr_t distance, std::size_t bytes) noexcept {
  if (!virtual_memory_) return Failure{ErrorCode::unsupported, 0, "this device has no virtual memory management, and cannot move pages"};
  const Scope scope(context_);
  if (!scope) return scope.failure();
  Status done;
  std::size_t mapped = 0;
  while (done && mapped < pieces.size()) {
    const Piece& piece = pieces[mapped];
    done = BERTH_CUDA_CALL(context_, cuMemMap, piece.address + distance, piece.bytes, 0, piece.handle, 0);
    if (done) ++mapped;
  }
  if (done) done = give_access(pieces.front().address + distance, bytes);
  if (done) return done;
  for (const Piece& piece : pieces.first(mapped)) (void)BERTH_CUDA_CALL(context_, cuMemUnmap, piece.address + distance, piece.bytes).ok();
  return done;
}

Status CudaMemory::unmap_echo(std::uintptr_t address, std::size_t bytes) noexcept {
  const Scope scope(context_);
  return scope ? BERTH_CUDA_CALL(context_, cuMemUnmap, address, bytes) : Status(scope.failure());
}

}  // namespace berth::internal::device::cuda
