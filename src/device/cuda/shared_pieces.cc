// SPDX-License-Identifier: Apache-2.0
#include "device/cuda/shared_pieces.h"

#include <algorithm>
#include <cstring>

#include "berth/device/backend.h"
#include "berth/device/registry.h"
#include "device/cuda/mapped_handles.h"

namespace berth::internal::device::cuda {

namespace {

constexpr Failure kNoPieces{ErrorCode::unsupported, 0,
                            "its memory cannot be shared: it did not come from a pool, or the device does not share memory by descriptors"};
constexpr Failure kTooMany{ErrorCode::limit_exceeded, 0,
                           "it lies in more pieces of memory than a message can carry: send a clone, made after release_cached"};
constexpr Failure kCannotBe{ErrorCode::format_error, 0, "its list of memory pieces is inconsistent"};

CudaBackend* find_cuda(Device device) noexcept { return dynamic_cast<CudaBackend*>(find_backend(device)); }

class Imported final : public ImportedPieces {
 public:
  explicit Imported(CudaBackend& backend) noexcept : mapped_(backend) {}

  Status import(const PieceRun& run, std::span<os::Descriptor> files) {
    const Scope scope(mapped_.backend().context());
    if (!scope) return scope.failure();
    for (std::size_t i = 0; i < files.size(); ++i) {
      if (const Status added = mapped_.add_imported(std::move(files[i]), run.pieces[i].bytes); !added) return added;
    }
    return mapped_.map();
  }

  std::byte* data() const noexcept override { return reinterpret_cast<std::byte*>(mapped_.address()); }

  Result<std::vector<os::Descriptor>> export_again() const override {
    const Scope scope(mapped_.backend().context());
    if (!scope) return scope.failure();
    std::vector<os::Descriptor> files;
    for (std::size_t i = 0; i < mapped_.handles(); ++i) {
      Result<os::Descriptor> file = mapped_.export_handle(i);
      if (!file) return file.failure();
      files.push_back(std::move(*file));
    }
    return files;
  }

 private:
  MappedHandles mapped_;
};

}  // namespace

Uuid uuid_of(const Driver& driver, CUdevice device) noexcept {
  CUuuid found{};
  Uuid uuid{};
  if (driver.cuDeviceGetUuid(&found, device) == CUDA_SUCCESS) std::memcpy(uuid.data(), found.bytes, sizeof uuid);
  return uuid;
}

Result<PieceRun> run_under(Device device, const void* address, std::size_t bytes) {
  CudaBackend* const backend = find_cuda(device);
  if (backend == nullptr || !backend->exports()) return kNoPieces;
  const Result<std::vector<PieceMemory::Piece>> under = backend->memory().pieces_under(address, bytes);
  if (!under) return kNoPieces;
  if (under->size() > PieceRun::kMostPieces) return kTooMany;
  PieceRun run{.device = backend->uuid(), .offset = reinterpret_cast<std::uintptr_t>(address) - under->front().address, .bytes = bytes};
  run.pieces.reserve(under->size());
  for (const PieceMemory::Piece& piece : *under) run.pieces.push_back({piece.serial, piece.bytes});
  return run;
}

Result<std::vector<os::Descriptor>> export_pieces(Device device, const PieceRun& run) {
  CudaBackend* const backend = find_cuda(device);
  if (backend == nullptr) return kNoPieces;
  std::vector<os::Descriptor> files;
  files.reserve(run.pieces.size());
  for (const PieceRun::Piece& piece : run.pieces) {
    Result<os::Descriptor> file = backend->memory().export_piece(piece.id);
    if (!file) return file.failure();
    files.push_back(std::move(*file));
  }
  return files;
}

Result<Device> device_of(const PieceRun& run) {
  const DriverState& state = driver_state();
  for (int i = 0; i < state.devices; ++i) {
    CUdevice number = 0;
    if (state.driver.cuDeviceGet(&number, i) != CUDA_SUCCESS) continue;
    if (uuid_of(state.driver, number) == run.device) return Device("cuda", i);
  }
  return Failure{ErrorCode::not_found, 0, "this process does not see the device that the memory is on"};
}

Result<std::shared_ptr<ImportedPieces>> import_pieces(const PieceRun& run, std::span<os::Descriptor> files) {
  const Result<Device> device = device_of(run);
  if (!device) return device.failure();
  CudaBackend* const backend = find_cuda(*device);
  if (backend == nullptr || !backend->exports()) return kNoPieces;
  const auto is_whole = [&](const PieceRun::Piece& piece) { return piece.bytes % backend->memory().unit_bytes() == 0; };
  if (!run.can_be() || files.size() != run.pieces.size() || !std::ranges::all_of(run.pieces, is_whole)) return kCannotBe;
  auto made = std::make_shared<Imported>(*backend);
  if (const Status done = made->import(run, files); !done) return done.failure();
  return std::shared_ptr<ImportedPieces>(std::move(made));
}

}  // namespace berth::internal::device::cuda
