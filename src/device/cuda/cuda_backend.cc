// SPDX-License-Identifier: Apache-2.0
#include "device/cuda/cuda_backend.h"

#include <algorithm>
#include <new>

#include "base/text.h"
#include "berth/base/error.h"
#include "berth/device/backend.h"
#include "berth/device/element_copy.h"
#include "berth/device/registry.h"
#include "device/cuda/cuda_copy.h"
#include "device/host_access.h"
#include "device/host_bytes.h"

namespace berth::internal::device::cuda {

namespace {

constexpr std::size_t kMostGathered = std::size_t{1} << 20;

std::size_t total_memory(CudaContext& context) noexcept {
  std::size_t free = 0;
  std::size_t total = 0;
  return BERTH_CUDA_CALL(context, cuMemGetInfo, &free, &total) ? total : 0;
}

// Whether the device's memory is page-locked, and so accessible to a GPU.
bool is_locked_kind(Device device) noexcept {
  const Backend* const other = find_backend(device);
  return other != nullptr && other->properties().abilities.pinned;
}

std::size_t next_inner() noexcept {
  static std::atomic<std::size_t> g_threads{0};
  thread_local const std::size_t mine = g_threads.fetch_add(1, std::memory_order_relaxed);
  return mine;
}

}  // namespace

CudaBackend::CudaBackend(std::unique_ptr<CudaContext> context, DeviceFacts facts)
    : Backend(context->device()),
      context_(std::move(context)),
      total_bytes_(total_memory(*context_)),
      exports_(facts.exports),
      uuid_(facts.uuid),
      reachable_(std::move(facts.reachable)),
      memory_(*context_, facts.unit_bytes, facts.virtual_memory, facts.exports, std::move(facts.access)),
      flags_(*context_) {
  properties_.description = std::move(facts.name);
  properties_.unit_bytes = facts.unit_bytes;
  properties_.alignment = 512;
  properties_.max_alignment = std::size_t{1} << 36;
  properties_.abilities = {.host_access = false,
                           .move = facts.virtual_memory,
                           .streams = true,
                           .pinned = false,
                           .fork_safe = false,
                           .kernels = load_kernels_here(),
                           .wants_pinned = true,
                           .move_in_use = facts.virtual_memory};
  properties_.piece_bytes = facts.virtual_memory ? CudaMemory::kMostPiece : 0;
  properties_.commit_us_per_mib = 20;
}

MemoryInfo CudaBackend::memory_info() const {
  const Scope scope(*context_);
  std::size_t free = 0;
  std::size_t total = 0;
  if (!scope || !BERTH_CUDA_CALL(*context_, cuMemGetInfo, &free, &total)) return {total_bytes_, 0, false};
  return {total, std::min(free, total), false};
}

// Single blocks come from the driver's allocator: it packs small ones, and CUDA's tools know their bounds.
Result<void*> CudaBackend::allocate(std::size_t bytes, std::size_t alignment) noexcept {
  if (alignment > properties_.alignment) return Backend::allocate(bytes, alignment);
  const Scope scope(*context_);
  if (!scope) return scope.failure();
  CUdeviceptr address = 0;
  if (const Status made = BERTH_CUDA_CALL(*context_, cuMemAlloc, &address, bytes); !made) return made.failure();
  if (address % alignment == 0) return reinterpret_cast<void*>(address);
  (void)BERTH_CUDA_CALL(*context_, cuMemFree, address).ok();
  return Backend::allocate(bytes, alignment);
}

void CudaBackend::free(void* address, std::size_t bytes, std::size_t alignment) noexcept {
  if (memory_.find(address, 1) != CudaMemory::Found::elsewhere) return Backend::free(address, bytes, alignment);
  const Scope scope(*context_);
  if (scope) (void)BERTH_CUDA_CALL(*context_, cuMemFree, reinterpret_cast<std::uintptr_t>(address)).ok();
}

// ---- work

Result<CUstream> CudaBackend::inner_stream() noexcept {
  std::atomic<CUstream>& place = inner_[next_inner() % kInnerStreams];
  if (const CUstream known = place.load(std::memory_order_acquire)) return known;
  // Of the highest priority: the device has few hardware queues, which streams of one priority share, and a
  // copy that a host function waits for must not be queued behind the stream that waits for that function.
  CUstream made = nullptr;
  int least = 0;
  int greatest = 0;
  if (const Status done = BERTH_CUDA_CALL(*context_, cuCtxGetStreamPriorityRange, &least, &greatest); !done) return done.failure();
  if (const Status done = BERTH_CUDA_CALL(*context_, cuStreamCreateWithPriority, &made, CU_STREAM_NON_BLOCKING, greatest); !done)
    return done.failure();
  CUstream expected = nullptr;
  if (place.compare_exchange_strong(expected, made, std::memory_order_acq_rel)) return made;
  (void)BERTH_CUDA_CALL(*context_, cuStreamDestroy, made).ok();
  return expected;
}

template <class Submit>
Status CudaBackend::run_now(const Submit& submit) noexcept {
  const Scope scope(*context_);
  if (!scope) return scope.failure();
  const Result<CUstream> stream = inner_stream();
  if (!stream) return stream.failure();
  const Status submitted = submit(*stream);
  // Synchronized also after a failure: part of the work may be pending, and the caller may free the memory.
  const Status done = BERTH_CUDA_CALL(*context_, cuStreamSynchronize, *stream);
  return submitted ? done : submitted;
}

template <class Submit, class AtOnce>
Status CudaBackend::run(StreamRef stream, bool own_turn, const Submit& submit, const AtOnce& at_once) noexcept {
  if (!stream) return run_now(submit);
  CudaStream* const ours = own_turn ? cuda_stream(stream, device()) : nullptr;
  if (ours == nullptr) return run_on(stream, [at_once, where = device()] { require(at_once(), where, "work in a stream"); });
  const Scope scope(*context_);
  return scope ? submit(ours->handle()) : Status(scope.failure());
}

Status CudaBackend::check_own(const void* address, std::size_t bytes) noexcept {
  switch (memory_.find(address, bytes)) {
    case CudaMemory::Found::committed: return {};
    case CudaMemory::Found::not_committed: return Failure{ErrorCode::out_of_bounds, 0, "an address is not committed memory of the device"};
    case CudaMemory::Found::elsewhere: break;
  }
  const Scope scope(*context_);
  if (!scope) return scope.failure();
  unsigned type = 0;
  int ordinal = -1;
  const auto at = reinterpret_cast<std::uintptr_t>(address);
  // Not through check(): an unknown address is not an error here.
  const Driver& driver = context_->driver();
  if (driver.cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, at) != CUDA_SUCCESS || type != CU_MEMORYTYPE_DEVICE ||
      driver.cuPointerGetAttribute(&ordinal, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, at) != CUDA_SUCCESS || ordinal != context_->number())
    return Failure{ErrorCode::out_of_bounds, 0, "an address is not memory of the device"};
  return {};
}

bool CudaBackend::is_page_locked(const void* address, std::size_t bytes) noexcept {
  const Scope scope(*context_);
  if (!scope) return false;
  const auto at = reinterpret_cast<std::uintptr_t>(address);
  for (const std::uintptr_t end : {at, at + (bytes - 1)}) {
    unsigned type = 0;
    if (context_->driver().cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, end) != CUDA_SUCCESS ||
        type != CU_MEMORYTYPE_HOST)
      return false;
  }
  return true;
}

Status CudaBackend::copy(const Transfer& transfer, StreamRef stream) noexcept {
  const bool to_here = transfer.target_device == device();
  const bool from_here = transfer.source_device == device();
  if (!to_here && !from_here) return Failure{ErrorCode::unsupported, 0, "neither end is on this device"};
  if (const Status usable = context_->usable(); !usable) return usable;
  if (transfer.bytes == 0) return {};
  if (to_here) {
    if (const Status known = check_own(transfer.target, transfer.bytes); !known) return known;
  }
  if (from_here) {
    if (const Status known = check_own(transfer.source, transfer.bytes); !known) return known;
  }
  bool own_turn = true;
  if (to_here != from_here) {
    const Device other = to_here ? transfer.source_device : transfer.target_device;
    const void* const there = to_here ? transfer.source : transfer.target;
    if (is_host(other)) {
      // For memory that is not page-locked the driver would block the caller until the stream is done, so a
      // host function does the copy.
      own_turn = !stream || is_page_locked(there, transfer.bytes);
    } else if (!reaches(other)) {
      return Failure{ErrorCode::unsupported, 0, "the other end is on a device that this one does not reach"};
    }
  }
  const auto submit = [&](CUstream in) {
    return to_here && from_here ? submit_copy_within(*context_, transfer.target, transfer.source, transfer.bytes, in)
                                : submit_copy(*context_, transfer.target, transfer.source, transfer.bytes, in);
  };
  return run(stream, own_turn, submit, [this, transfer] { return copy(transfer, {}); });
}

Status CudaBackend::fill(void* target, std::size_t bytes, std::span<const std::byte> pattern, StreamRef stream) noexcept {
  if (!is_pattern(bytes, pattern))
    return Failure{ErrorCode::invalid_argument, 0, "a pattern has 1, 2, 4, 8 or 16 bytes and divides the target"};
  if (const Status usable = context_->usable(); !usable) return usable;
  if (bytes == 0) return {};
  if (const Status known = check_own(target, bytes); !known) return known;
  const KeptPattern kept(pattern);
  return run(
      stream, true, [&](CUstream in) { return submit_fill(*context_, target, bytes, kept.span(), properties_.abilities.kernels, in); },
      [this, target, bytes, kept] { return fill(target, bytes, kept.span(), {}); });
}

// Small copies within the device and to and from page-locked memory: one kernel does hundreds of them, and runs
// while the next ones are prepared.
Status CudaBackend::copy_batch(std::span<const Transfer> transfers, StreamRef stream) noexcept {
  constexpr std::size_t kTogether = 512;
  CudaStream* const ours = cuda_stream(stream, device());
  if (!properties_.abilities.kernels || (stream && ours == nullptr)) return Backend::copy_batch(transfers, stream);
  if (const Status usable = context_->usable(); !usable) return usable;
  const auto submit = [&](CUstream in) {
    for (Status done; !transfers.empty();) {
      const std::span<const Transfer> next = transfers.first(std::min(kTogether, transfers.size()));
      if (!std::ranges::all_of(next, [this](const Transfer& transfer) { return is_gathered(transfer); })) break;
      if (done = submit_gather(*context_, next, in); !done) return done;
      transfers = transfers.subspan(next.size());
    }
    return Status();
  };
  const Status gathered = stream ? run(stream, true, submit, [] { return Status(); }) : run_now(submit);
  return gathered && !transfers.empty() ? Backend::copy_batch(transfers, stream) : gathered;
}

// Whether a kernel can do the copy, and faster than the driver, which is as fast for large ones.
bool CudaBackend::is_gathered(const Transfer& transfer) noexcept {
  if (transfer.bytes > kMostGathered) return false;
  for (const bool target : {true, false}) {
    const Device place = target ? transfer.target_device : transfer.source_device;
    const void* const address = target ? transfer.target : transfer.source;
    if (place == device() ? !check_own(address, transfer.bytes).ok() : !is_locked_kind(place)) return false;
  }
  return true;
}

Status CudaBackend::copy_elements(const ElementCopy& copy, StreamRef stream) noexcept {
  if (const Status usable = context_->usable(); !usable) return usable;
  return run(
      stream, true, [&](CUstream in) { return submit_elements(*context_, copy, in); }, [this, copy] { return copy_elements(copy, {}); });
}

bool CudaBackend::reaches(Device other) const noexcept {
  return other.kind_name() == "cuda" && other != device() && std::ranges::find(reachable_, other.index()) != reachable_.end();
}

// ---- streams

Result<Stream> CudaBackend::make_stream() noexcept {
  const Scope scope(*context_);
  if (!scope) return scope.failure();
  CUstream made = nullptr;
  // Not ordered with the legacy default stream, which would serialize concurrent streams.
  if (const Status done = BERTH_CUDA_CALL(*context_, cuStreamCreate, &made, CU_STREAM_NON_BLOCKING); !done) return done.failure();
  try {
    return Stream(std::make_shared<CudaStream>(*context_, flags_, made, CudaStream::Owned::yes));
  } catch (const std::bad_alloc&) {
    (void)BERTH_CUDA_CALL(*context_, cuStreamDestroy, made).ok();
    return Failure{ErrorCode::out_of_memory, 0, "no heap for a stream"};
  }
}

Stream CudaBackend::wrap(CUstream stream) {
  const auto refuse = [&](ErrorCode code, const char* why, const char* help) {
    throw DeviceError(code, {text::join("wrapping a CUDA stream for ", device().to_string()), why, help},
                      {{"device", device().to_string()}});
  };
  if (stream == CU_STREAM_PER_THREAD)
    refuse(ErrorCode::unsupported, "the per-thread default stream is another stream in each thread, and memory is freed by any of them",
           "make a stream, or use the legacy default stream");
  if (stream == nullptr) stream = CU_STREAM_LEGACY;
  const Scope scope(*context_);
  if (!scope) throw_failure(scope.failure(), device(), "wrapping a CUDA stream");
  CUcontext owner = nullptr;
  require(BERTH_CUDA_CALL(*context_, cuStreamGetCtx, stream, &owner), device(), "wrapping a CUDA stream");
  if (owner != context_->handle())
    refuse(ErrorCode::wrong_device, "the stream is of another device, or of a context that is not the device's primary one",
           "pass the device it was made on");
  unsigned long long id = 0;
  require(BERTH_CUDA_CALL(*context_, cuStreamGetId, stream, &id), device(), "wrapping a CUDA stream");
  auto made = std::make_shared<CudaStream>(*context_, flags_, stream, CudaStream::Owned::no);
  const os::Lock lock(mutex_);
  std::erase_if(wrapped_, [](const auto& entry) { return entry.second.expired(); });
  std::weak_ptr<CudaStream>& known = wrapped_[id];
  if (const std::shared_ptr<CudaStream> same = known.lock()) return Stream(same);  // one handle is one stream
  known = made;
  return Stream(std::move(made));
}

CudaBackend& cuda_backend(Device device, std::string_view asked) {
  Backend& found = backend(device);
  if (auto* const ours = dynamic_cast<CudaBackend*>(&found)) return *ours;
  throw DeviceError(
      ErrorCode::wrong_device,
      {text::join(asked, " of ", device.to_string()), "it is not a CUDA device", "use cuda:0, or another that berth devices shows"},
      {{"device", device.to_string()}});
}

}  // namespace berth::internal::device::cuda
