// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "berth/base/result.h"
#include "berth/storage/buffer.h"
#include "device/cuda/shared_pieces.h"
#include "share/segment.h"

// Storages on a device, in the words of segments. A few bytes of shared memory stand for one, its *stub*: they say in which pieces of the device's
// memory it lies. The stub has a slot like any storage, and all claims are on that; the process whose memory it is keeps the memory for as long as
// there is a claim on the stub. So what is proved of slots and tickets holds for devices too, whoever dies.
//
//     a stub     0 "berthgpu" | 8 device u64 × 2 | 24 offset u64 | 32 bytes u64 | 40 pieces u64 | 48 (id u64, bytes u64) × pieces
//
// Whoever shares the segment can write a stub, so that nothing in it is believed: it is copied, and then checked.
namespace berth::internal::share {

// What a stub stands for, in the process whose memory it is: kept until nobody has a claim on the stub.
struct DeviceMemory {
  Buffer buffer;
  device::cuda::PieceRun run;
};

std::vector<std::uint64_t> stub_words(const device::cuda::PieceRun& run);
Result<device::cuda::PieceRun> read_stub(std::span<const std::byte> bytes);
// The one that a ticket leads to. A look at what others may change: the ticket may be used up already. REQUIRES: the segment is another's.
Result<device::cuda::PieceRun> look_at_stub(Segment& segment, const TicketName& name);

// The pieces, here; takes the descriptors. Those that are mapped already, or what came with the ticket. `not_found` when neither is there.
Result<std::shared_ptr<device::cuda::ImportedPieces>> pieces_here(const Segment& segment, const device::cuda::PieceRun& run,
                                                                  std::span<os::Descriptor> files);

// Descriptors to go along with a ticket, new ones. The owner does not ask the stub, which others can write, and which goes with the last claim.
Result<std::vector<os::Descriptor>> files_for(Segment& segment, const TicketName& name);
Result<std::vector<os::Descriptor>> files_of(const DeviceMemory& memory);
// Of a ticket of an own segment; nullptr when it is used up. REQUIRES: the stub itself was let go.
std::shared_ptr<const DeviceMemory> own_memory(const Segment& segment, const TicketName& name);

}  // namespace berth::internal::share
