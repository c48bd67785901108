// SPDX-License-Identifier: Apache-2.0
#include <utility>

#include "base/text.h"
#include "berth/base/checked.h"
#include "berth/base/error.h"
#include "berth/device/cuda.h"
#include "device/cuda/mapped_handles.h"
#include "os/file/shared_file.h"

namespace berth::cuda {

using namespace internal;
using namespace internal::device::cuda;

namespace {

void require(const Status& done, Device device, std::string_view asked) {
  if (!done) throw_failure(done.failure(), device, asked);
}

CudaStream& ours(const Stream& stream, std::string_view asked) {
  if (auto* const found = dynamic_cast<CudaStream*>(stream.state().get())) return *found;
  throw DeviceError(ErrorCode::wrong_device,
                    {text::join(asked, " of ", stream.device().to_string()), "it is not a stream of a CUDA device", "make it on cuda:0"},
                    {{"device", stream.device().to_string()}});
}

}  // namespace

Stream wrap_stream(Device device, CUstream_st* handle) { return cuda_backend(device, "wrapping a CUDA stream").wrap(handle); }
void end_stream(const Stream& stream) { ours(stream, "ending a stream").end(); }
CUstream_st* native_stream(const Stream& stream) { return ours(stream, "the handle of a stream").handle(); }

Stream dlpack_stream(Device device, std::int64_t number) {
  if (number == -1) return {};
  if (number <= 0) {
    throw ArgumentError(
        ErrorCode::invalid_argument,
        {text::join("a DLPack stream ", number, " on ", device.to_string()), "the protocol forbids it, as it could mean two streams",
         "use 1 for the legacy default stream, -1 for no stream, or a handle"},
        {{"stream", number}});
  }
  // 1 and 2 are the driver's own special handles.
  return wrap_stream(device, reinterpret_cast<CUstream_st*>(static_cast<std::uintptr_t>(number)));
}

struct SharedMemory::State {
  explicit State(CudaBackend& device) noexcept : backend(device), mapped(device) {}

  CudaBackend& backend;
  MappedHandles mapped;
};

namespace {

void check_can_share(const CudaBackend& backend, std::string_view asked) {
  if (backend.exports()) return;
  throw_failure({ErrorCode::unsupported, 0, "the device, or its driver, does not share memory by descriptors"}, backend.device(), asked);
}

}  // namespace

SharedMemory::SharedMemory(std::unique_ptr<State> state) noexcept : state_(std::move(state)) {}
SharedMemory::~SharedMemory() = default;
SharedMemory::SharedMemory(SharedMemory&& other) noexcept = default;
SharedMemory& SharedMemory::operator=(SharedMemory&& other) noexcept = default;

SharedMemory SharedMemory::make(Device device, std::size_t bytes) {
  constexpr std::string_view kAsked = "making shared memory";
  CudaBackend& backend = cuda_backend(device, kAsked);
  check_can_share(backend, kAsked);
  auto state = std::make_unique<State>(backend);
  const auto length = try_align_up(bytes, backend.memory().unit_bytes());
  if (!length || *length == 0)
    throw_failure({ErrorCode::invalid_argument, 0, "shared memory has at least one byte, and fits into memory"}, device, kAsked);
  const Scope scope(backend.context());
  if (!scope) throw_failure(scope.failure(), device, kAsked);
  require(state->mapped.add_new(*length), device, kAsked);
  require(state->mapped.map(), device, kAsked);
  return SharedMemory(std::move(state));
}

SharedMemory SharedMemory::import_descriptor(Device device, int descriptor, std::size_t bytes) {
  constexpr std::string_view kAsked = "importing shared memory";
  CudaBackend& backend = cuda_backend(device, kAsked);
  check_can_share(backend, kAsked);
  if (bytes == 0 || bytes % backend.memory().unit_bytes() != 0)
    throw_failure({ErrorCode::invalid_argument, 0, "the size is not a multiple of the device's unit: pass size_bytes() of the exporter"},
                  device, kAsked);
  auto state = std::make_unique<State>(backend);
  const Scope scope(backend.context());
  if (!scope) throw_failure(scope.failure(), device, kAsked);
  Result<os::Descriptor> own = os::duplicate(descriptor);  // the caller keeps its own
  if (!own) throw_failure(own.failure(), device, kAsked);
  require(state->mapped.add_imported(std::move(*own), bytes), device, kAsked);
  require(state->mapped.map(), device, kAsked);
  return SharedMemory(std::move(state));
}

int SharedMemory::export_descriptor() const {
  constexpr std::string_view kAsked = "exporting shared memory";
  if (state_ == nullptr) {
    throw DeviceError(ErrorCode::unsupported,
                      {std::string(kAsked), "it is empty", "export what SharedMemory::make or import_descriptor returned"});
  }
  CudaContext& context = state_->backend.context();
  const Scope scope(context);
  if (!scope) throw_failure(scope.failure(), context.device(), kAsked);
  Result<os::Descriptor> made = state_->mapped.export_handle(0);
  if (!made) throw_failure(made.failure(), context.device(), kAsked);
  return made->take();
}

void* SharedMemory::data() const noexcept { return state_ == nullptr ? nullptr : reinterpret_cast<void*>(state_->mapped.address()); }
std::size_t SharedMemory::size_bytes() const noexcept { return state_ == nullptr ? 0 : state_->mapped.bytes(); }

}  // namespace berth::cuda
