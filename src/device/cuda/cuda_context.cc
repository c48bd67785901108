// SPDX-License-Identifier: Apache-2.0
#include "device/cuda/cuda_context.h"

#include <new>

namespace berth::internal::device::cuda {

Status CudaContext::usable() const noexcept {
  if (is_inherited()) return Failure{ErrorCode::fork_unsafe, 0, "the device was opened before fork, and CUDA does not work in the child"};
  if (lost_.load(std::memory_order_relaxed)) return Failure{ErrorCode::device_lost, 0, "the device was lost by an earlier error"};
  return {};
}

Status CudaContext::check(const char* call, CUresult result) noexcept {
  if (result == CUDA_SUCCESS) return {};
  if (is_fatal(result) || is_shut_down(result)) lost_.store(true, std::memory_order_relaxed);
  return failure_of(call, result);
}

Result<CUevent> CudaContext::borrow_event(Waiting waiting) noexcept {
  {
    const os::Lock lock(mutex_);
    std::vector<CUevent>& free = events_[static_cast<std::size_t>(waiting)];
    if (!free.empty()) {
      const CUevent event = free.back();
      free.pop_back();
      return event;
    }
  }
  CUevent event = nullptr;
  const unsigned flags = CU_EVENT_DISABLE_TIMING | (waiting == Waiting::sleeps ? CU_EVENT_BLOCKING_SYNC : CU_EVENT_DEFAULT);
  if (const Status made = BERTH_CUDA_CALL(*this, cuEventCreate, &event, flags); !made) return made.failure();
  return event;
}

void CudaContext::return_event(CUevent event, Waiting waiting) noexcept {
  if (!is_alive()) return;
  try {
    const os::Lock lock(mutex_);
    events_[static_cast<std::size_t>(waiting)].push_back(event);
  } catch (const std::bad_alloc&) {  // leak it: destroying it would call the driver at a bad moment
  }
}

Scope::Scope(CudaContext& context) noexcept : context_(context), status_(context.usable()) {
  if (!status_) return;
  status_ = BERTH_CUDA_CALL(context_, cuCtxPushCurrent, context_.handle());
  if (!status_) return;
  mode_changed_ = context_.driver().cuThreadExchangeStreamCaptureMode(&mode_) == CUDA_SUCCESS;
}

Scope::~Scope() {
  if (!status_) return;
  // swaps: mode_ is ours again
  if (mode_changed_) (void)context_.driver().cuThreadExchangeStreamCaptureMode(&mode_);
  CUcontext popped = nullptr;
  (void)context_.driver().cuCtxPopCurrent(&popped);
}

}  // namespace berth::internal::device::cuda
