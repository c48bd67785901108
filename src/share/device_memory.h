// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "berth/base/result.h"
#include "berth/storage/buffer.h"
#include "device/cuda/shared_pieces.h"
#include "share/segment.h"

// Storages on a device, shared through segments. A few bytes of shared memory, its *stub*, stand for one: they
// say which pieces of device memory it consists of. The stub has an entry like any storage, and all claims are
// on that entry; the process that owns the device memory keeps it for as long as there is a claim on the stub.
// So the guarantees of entries and tickets hold for devices too, whichever process dies. Any thread.
//
//     a stub     0 "berthgpu" | 8 device u64 × 2 | 24 offset u64 | 32 bytes u64 | 40 pieces u64 | 48 (id u64, bytes u64) × pieces
//
// Every process that shares the segment can write a stub, so it is not trusted: it is copied, then validated.
namespace berth::internal::share {

// What a stub stands for, in the process that owns the memory: kept until there is no claim on the stub.
struct DeviceMemory {
  Buffer buffer;
  device::cuda::PieceRun run;
};

std::vector<std::uint64_t> stub_words(const device::cuda::PieceRun& run);
Result<device::cuda::PieceRun> read_stub(std::span<const std::byte> bytes);
// Reads the stub that a ticket names. Others may change it concurrently: the ticket may be consumed already.
// REQUIRES: !segment.is_own().
Result<device::cuda::PieceRun> look_at_stub(Segment& segment, const TicketName& name);

// The pieces, mapped into this process: an existing mapping, or a new one of the descriptors that came with the
// ticket. Consumes the descriptors. `not_found` when there is neither.
Result<std::shared_ptr<device::cuda::ImportedPieces>> pieces_here(const Segment& segment, const device::cuda::PieceRun& run,
                                                                  std::span<os::Descriptor> files);

// New descriptors to send with a ticket. The owner does not read the stub, since others can write it and it is
// freed with the last claim.
Result<std::vector<os::Descriptor>> files_for(Segment& segment, const TicketName& name);
Result<std::vector<os::Descriptor>> files_of(const DeviceMemory& memory);
// The memory behind a ticket of an own segment; nullptr when the ticket is consumed. REQUIRES: the stub itself
// was released.
std::shared_ptr<const DeviceMemory> own_memory(const Segment& segment, const TicketName& name);

}  // namespace berth::internal::share
