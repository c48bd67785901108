// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "berth/base/checked.h"
#include "berth/base/result.h"
#include "berth/device/device.h"
#include "os/file/descriptor.h"

// Memory of a CUDA device as another process gets it: for share/. A block lies in one or more pieces, side by side (device/piece_memory.h). Each can
// be a descriptor; whoever has these maps the same pieces side by side, at an address of its own. The driver keeps a piece for as long as anyone has
// it, so that it outlives the process that made it.
//
// This needs none of CUDA's headers, and is there in every build; without the backend everything is refused. Any thread.
namespace berth::internal::device::cuda {

// Where a block lies, in words that mean the same in every process.
struct PieceRun {
  static constexpr std::size_t kMostPieces = 250;  // as many descriptors as go with one message
  struct Piece {
    std::uint64_t id = 0;  // of the process that made it, for as long as the piece lives
    std::uint64_t bytes = 0;
    friend auto operator<=>(const Piece&, const Piece&) = default;
  };

  std::array<std::uint64_t, 2> device{};  // the driver's name of the device, the same in every process
  std::uint64_t offset = 0;               // of the block, in the first piece
  std::uint64_t bytes = 0;                // of the block
  std::vector<Piece> pieces = {};

  // Whether a block can lie so, whoever says it.
  bool can_be() const noexcept {
    std::size_t total = 0;
    for (const Piece& piece : pieces) {
      const auto sum = try_add(total, static_cast<std::size_t>(piece.bytes));
      if (piece.bytes == 0 || !sum) return false;
      total = *sum;
    }
    return bytes > 0 && fits(offset, bytes, total) && pieces.size() <= kMostPieces;
  }
};

// REQUIRES: the block is the caller's. `unsupported` for memory that is in no pieces: that of `direct`, or of a device that cannot share.
Result<PieceRun> run_under(Device device, const void* address, std::size_t bytes);

// New descriptors of pieces of this process. `not_found` when one of them is none.
Result<std::vector<os::Descriptor>> export_pieces(Device device, const PieceRun& run);

// The device of this process that the run's memory is on. `not_found` when there is none.
Result<Device> device_of(const PieceRun& run);

// Pieces of another process, mapped here until this is destroyed. Nothing on the device may use them then.
class ImportedPieces {
 public:
  virtual ~ImportedPieces() = default;
  virtual std::byte* data() const noexcept = 0;  // of the first piece
  virtual Result<std::vector<os::Descriptor>> export_again() const = 0;
};

// Takes the descriptors. Nothing about the run is believed: `format_error` when it cannot be, and what the driver says.
Result<std::shared_ptr<ImportedPieces>> import_pieces(const PieceRun& run, std::span<os::Descriptor> files);

}  // namespace berth::internal::device::cuda
