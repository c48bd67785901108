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

// Exports and imports memory of a CUDA device, for share/. A block lies in one or more adjacent pieces
// (device/piece_memory.h). Each piece can be exported as a file descriptor; an importer maps the same pieces
// contiguously at its own address. The driver keeps a piece for as long as any process has it, so that it may
// outlive the process that made it.
//
// This header includes none of CUDA's, and exists in every build; without the backend everything fails. Any
// thread.
namespace berth::internal::device::cuda {

// The location of a block, in terms that mean the same in every process.
struct PieceRun {
  static constexpr std::size_t kMostPieces = 250;  // the file descriptors of one message
  struct Piece {
    std::uint64_t id = 0;  // unique in the process that made it, while the piece exists
    std::uint64_t bytes = 0;
    friend auto operator<=>(const Piece&, const Piece&) = default;
  };

  std::array<std::uint64_t, 2> device{};  // the device's UUID, the same in every process
  std::uint64_t offset = 0;               // of the block, in the first piece
  std::uint64_t bytes = 0;                // of the block
  std::vector<Piece> pieces = {};

  // Whether the run is consistent: it may come from an untrusted process.
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

// `unsupported` for memory that is not in pieces: that of `direct`, or of a device that cannot export.
// REQUIRES: the caller owns the block.
Result<PieceRun> run_under(Device device, const void* address, std::size_t bytes);

// Exports pieces of this process as new file descriptors. `not_found` when a piece does not exist.
Result<std::vector<os::Descriptor>> export_pieces(Device device, const PieceRun& run);

// The device of this process that holds the run's memory. `not_found` when there is none.
Result<Device> device_of(const PieceRun& run);

// Pieces of another process, mapped until this is destroyed. No pending device work may use them then.
class ImportedPieces {
 public:
  virtual ~ImportedPieces() = default;
  virtual std::byte* data() const noexcept = 0;  // address of the first piece
  virtual Result<std::vector<os::Descriptor>> export_again() const = 0;
};

// Takes ownership of the descriptors. The run is untrusted: fails with `format_error` when it is inconsistent,
// or with the driver's failure.
Result<std::shared_ptr<ImportedPieces>> import_pieces(const PieceRun& run, std::span<os::Descriptor> files);

}  // namespace berth::internal::device::cuda
