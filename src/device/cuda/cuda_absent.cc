// SPDX-License-Identifier: Apache-2.0
#include <string>

#include "berth/base/error.h"
#include "berth/device/backend.h"
#include "berth/device/cuda.h"
#include "berth/device/registry.h"
#include "device/builtin.h"
#include "device/cuda/host_register.h"
#include "device/cuda/shared_pieces.h"
#include "os/system.h"

// The kind "cuda" in a build without its backend: a known name, with the reason why it is unavailable.
namespace berth {

using namespace internal;
using namespace internal::device;

namespace {

class AbsentCuda : public BackendFactory {
 public:
  int count() override { return 0; }

  std::string unavailable_reason() override {
    const bool driver = os::library_loads("libcuda.so.1");
    return std::string("this build of berth has no CUDA backend") +
           (driver ? " (the machine has an NVIDIA driver)" : " (and the machine has no NVIDIA driver: libcuda.so.1 is not found)");
  }

  std::unique_ptr<Backend> make(Device) override { return nullptr; }
};

[[noreturn]] void refuse(std::string asked) {
  throw DeviceError(ErrorCode::device_unavailable,
                    {std::move(asked), "this build of berth has no CUDA backend", "configure with -DBERTH_CUDA=ON"});
}

}  // namespace

std::unique_ptr<BackendFactory> internal::device::make_cuda_factory() { return std::make_unique<AbsentCuda>(); }

namespace internal::device::cuda {

namespace {

constexpr Failure kAbsent{ErrorCode::device_unavailable, 0, "this build of berth has no CUDA backend"};

}  // namespace

bool can_register_host() noexcept { return false; }
Status register_host(void*, std::size_t) noexcept { return kAbsent; }
Status unregister_host(void*) noexcept { return kAbsent; }

Result<PieceRun> run_under(Device, const void*, std::size_t) { return kAbsent; }
Result<std::vector<os::Descriptor>> export_pieces(Device, const PieceRun&) { return kAbsent; }
Result<Device> device_of(const PieceRun&) { return kAbsent; }
Result<std::shared_ptr<ImportedPieces>> import_pieces(const PieceRun&, std::span<os::Descriptor>) { return kAbsent; }

}  // namespace internal::device::cuda

namespace cuda {

Stream wrap_stream(Device, CUstream_st*) { refuse("wrapping a CUDA stream"); }
void end_stream(const Stream&) { refuse("ending a CUDA stream"); }
CUstream_st* native_stream(const Stream&) { refuse("the handle of a CUDA stream"); }
Stream dlpack_stream(Device, std::int64_t) { refuse("a DLPack stream"); }

struct SharedMemory::State {};
SharedMemory::SharedMemory(std::unique_ptr<State> state) noexcept : state_(std::move(state)) {}
SharedMemory::~SharedMemory() = default;
SharedMemory::SharedMemory(SharedMemory&& other) noexcept = default;
SharedMemory& SharedMemory::operator=(SharedMemory&& other) noexcept = default;
SharedMemory SharedMemory::make(Device, std::size_t) { refuse("making CUDA shared memory"); }
SharedMemory SharedMemory::import_descriptor(Device, int, std::size_t) { refuse("importing CUDA shared memory"); }
int SharedMemory::export_descriptor() const { refuse("exporting CUDA shared memory"); }
void* SharedMemory::data() const noexcept { return nullptr; }
std::size_t SharedMemory::size_bytes() const noexcept { return 0; }

}  // namespace cuda

}  // namespace berth
