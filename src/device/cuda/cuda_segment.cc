// SPDX-License-Identifier: Apache-2.0
#include <cstring>
#include <utility>

#include "base/text.h"
#include "berth/base/checked.h"
#include "berth/base/error.h"
#include "berth/device/cuda.h"
#include "device/cuda/cuda_backend.h"

namespace berth::cuda {

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
  return wrap_stream(device, reinterpret_cast<CUstream_st*>(static_cast<std::uintptr_t>(number)));  // 1 and 2 are the driver's own names
}

struct Segment::State {
  explicit State(CudaBackend& device) noexcept : backend(device) {}
  ~State();

  CudaBackend& backend;
  CUmemGenericAllocationHandle handle = 0;
  CUdeviceptr address = 0;
  std::size_t bytes = 0;
  bool is_mapped = false;  // from here on down in the order they were done, to be undone
  bool is_reserved = false;
  bool has_handle = false;
  bool is_ipc = false;
};

Segment::State::~State() {
  CudaContext& context = backend.context();
  const Scope scope(context);
  if (!scope) return;  // the device, or this process's right to it, is gone
  if (is_ipc) (void)BERTH_CUDA_CALL(context, cuIpcCloseMemHandle, address).ok();
  if (is_mapped) (void)BERTH_CUDA_CALL(context, cuMemUnmap, address, bytes).ok();
  if (is_reserved) (void)BERTH_CUDA_CALL(context, cuMemAddressFree, address, bytes).ok();
  if (has_handle) (void)BERTH_CUDA_CALL(context, cuMemRelease, handle).ok();
}

namespace {

void check_can_share(const CudaBackend& backend, std::string_view asked) {
  if (backend.exports()) return;
  throw_failure({ErrorCode::unsupported, 0, "the device, or its driver, does not share memory by descriptors"}, backend.device(), asked);
}

// Maps the handle at an address of its own. What was done before a failure is undone by the state.
void map(Segment::State& state, std::string_view asked) {
  CudaContext& context = state.backend.context();
  const Device device = context.device();
  require(BERTH_CUDA_CALL(context, cuMemAddressReserve, &state.address, state.bytes, state.backend.memory().unit_bytes(), 0, 0), device,
          asked);
  state.is_reserved = true;
  require(BERTH_CUDA_CALL(context, cuMemMap, state.address, state.bytes, 0, state.handle, 0), device, asked);
  state.is_mapped = true;
  const std::span<const CUmemAccessDesc> access = state.backend.memory().access();
  require(BERTH_CUDA_CALL(context, cuMemSetAccess, state.address, state.bytes, access.data(), access.size()), device, asked);
}

}  // namespace

Segment::Segment(std::unique_ptr<State> state) noexcept : state_(std::move(state)) {}
Segment::~Segment() = default;
Segment::Segment(Segment&& other) noexcept = default;
Segment& Segment::operator=(Segment&& other) noexcept = default;

Segment Segment::make(Device device, std::size_t bytes) {
  constexpr std::string_view kAsked = "making a segment";
  CudaBackend& backend = cuda_backend(device, kAsked);
  check_can_share(backend, kAsked);
  auto state = std::make_unique<State>(backend);
  const auto length = try_align_up(bytes, backend.memory().unit_bytes());
  if (!length || *length == 0)
    throw_failure({ErrorCode::invalid_argument, 0, "a segment has at least one byte, and fits into memory"}, device, kAsked);
  state->bytes = *length;
  const Scope scope(backend.context());
  if (!scope) throw_failure(scope.failure(), device, kAsked);
  const CUmemAllocationProp prop = backend.memory().properties(CudaMemory::Exported::yes);
  require(BERTH_CUDA_CALL(backend.context(), cuMemCreate, &state->handle, state->bytes, &prop, 0), device, kAsked);
  state->has_handle = true;
  map(*state, kAsked);
  return Segment(std::move(state));
}

Segment Segment::import_descriptor(Device device, int descriptor, std::size_t bytes) {
  constexpr std::string_view kAsked = "importing a segment";
  CudaBackend& backend = cuda_backend(device, kAsked);
  check_can_share(backend, kAsked);
  if (bytes == 0 || bytes % backend.memory().unit_bytes() != 0)
    throw_failure({ErrorCode::invalid_argument, 0, "a segment has whole units of its device: pass size_bytes() of the exporter"}, device,
                  kAsked);
  auto state = std::make_unique<State>(backend);
  state->bytes = bytes;
  const Scope scope(backend.context());
  if (!scope) throw_failure(scope.failure(), device, kAsked);
  // The driver takes the descriptor itself where other systems have a pointer to a handle.
  void* const number = reinterpret_cast<void*>(static_cast<std::uintptr_t>(descriptor));
  require(
      BERTH_CUDA_CALL(backend.context(), cuMemImportFromShareableHandle, &state->handle, number, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR),
      device, kAsked);
  state->has_handle = true;
  map(*state, kAsked);
  return Segment(std::move(state));
}

Segment Segment::open_ipc(Device device, const IpcHandle& handle, std::size_t bytes) {
  constexpr std::string_view kAsked = "opening a legacy IPC handle";
  CudaBackend& backend = cuda_backend(device, kAsked);
  CUipcMemHandle raw;
  static_assert(sizeof(raw) == sizeof(handle));
  std::memcpy(&raw, handle.data(), sizeof(raw));
  auto state = std::make_unique<State>(backend);
  const Scope scope(backend.context());
  if (!scope) throw_failure(scope.failure(), device, kAsked);
  require(BERTH_CUDA_CALL(backend.context(), cuIpcOpenMemHandle, &state->address, raw, CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS), device, kAsked);
  state->is_ipc = true;
  CUdeviceptr first = 0;
  std::size_t size = 0;
  require(BERTH_CUDA_CALL(backend.context(), cuMemGetAddressRange, &first, &size, state->address), device, kAsked);
  if (bytes > size) throw_failure({ErrorCode::size_mismatch, 0, "the block behind the handle is shorter"}, device, kAsked);
  state->bytes = bytes;
  return Segment(std::move(state));
}

int Segment::export_descriptor() const {
  constexpr std::string_view kAsked = "exporting a segment";
  if (state_ == nullptr || !state_->has_handle) {
    throw DeviceError(ErrorCode::unsupported, {std::string(kAsked), state_ == nullptr ? "there is none" : "it came by a legacy IPC handle",
                                               "export what Segment::make or import_descriptor gave"});
  }
  CudaContext& context = state_->backend.context();
  const Scope scope(context);
  if (!scope) throw_failure(scope.failure(), context.device(), kAsked);
  int descriptor = -1;
  require(BERTH_CUDA_CALL(context, cuMemExportToShareableHandle, &descriptor, state_->handle, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0),
          context.device(), kAsked);
  return descriptor;
}

void* Segment::data() const noexcept { return state_ == nullptr ? nullptr : reinterpret_cast<void*>(state_->address); }
std::size_t Segment::size_bytes() const noexcept { return state_ == nullptr ? 0 : state_->bytes; }

}  // namespace berth::cuda
