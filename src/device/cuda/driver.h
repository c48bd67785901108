// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cuda.h>

#include <cstdint>
#include <string>

#include "berth/base/result.h"
#include "os/process/fork.h"

// The entry points of the CUDA driver, loaded at run time: a build of berth with this backend runs without a
// driver, and reports that. The names are those of <cuda.h> after macro expansion (cuMemAlloc is
// cuMemAlloc_v2), so that types and symbols always match. Any thread.
namespace berth::internal::device::cuda {

// clang-format off
#define BERTH_CUDA_ENTRIES(X) \
  X(cuInit) X(cuDriverGetVersion) X(cuGetErrorName) X(cuGetErrorString) X(cuDeviceGetCount) X(cuDeviceGet) X(cuDeviceGetName) X(cuDeviceGetUuid) \
  X(cuDeviceGetAttribute) X(cuDeviceTotalMem) X(cuDeviceCanAccessPeer) X(cuDevicePrimaryCtxRetain) X(cuCtxPushCurrent) \
  X(cuCtxPopCurrent) X(cuThreadExchangeStreamCaptureMode) X(cuMemGetInfo) X(cuMemAlloc) X(cuMemFree) X(cuMemAllocAsync) \
  X(cuMemFreeAsync) X(cuMemHostAlloc) X(cuMemFreeHost) X(cuMemHostRegister) X(cuMemHostUnregister) X(cuMemHostGetDevicePointer) \
  X(cuPointerGetAttribute) X(cuMemGetAddressRange) X(cuMemGetAllocationGranularity) X(cuMemAddressReserve) X(cuMemAddressFree) \
  X(cuMemCreate) X(cuMemRelease) X(cuMemMap) X(cuMemUnmap) X(cuMemSetAccess) X(cuMemExportToShareableHandle) \
  X(cuMemImportFromShareableHandle) X(cuMemcpyAsync) \
  X(cuMemcpyDtoDAsync) X(cuMemsetD8Async) X(cuMemsetD16Async) X(cuMemsetD32Async) X(cuStreamCreate) X(cuStreamCreateWithPriority) \
  X(cuCtxGetStreamPriorityRange) X(cuStreamDestroy) X(cuStreamSynchronize) X(cuStreamQuery) X(cuStreamWaitEvent) \
  X(cuStreamIsCapturing) X(cuStreamGetCtx) X(cuStreamGetId) X(cuStreamWaitValue32) X(cuLaunchHostFunc) X(cuEventCreate) \
  X(cuEventDestroy) X(cuEventRecord) X(cuEventQuery) X(cuEventSynchronize) X(cuLibraryLoadData) X(cuLibraryGetKernel) \
  X(cuKernelGetFunction) X(cuFuncGetAttribute) X(cuLaunchKernel)
// clang-format on

struct Driver {
#define BERTH_CUDA_MEMBER(name) decltype(&::name) name = nullptr;
  BERTH_CUDA_ENTRIES(BERTH_CUDA_MEMBER)
#undef BERTH_CUDA_MEMBER
};

// The result of loading the driver, at the first use. Never unloaded.
struct DriverState {
  Driver driver;
  int devices = 0;       // 0: none is usable
  std::string why_none;  // the reason, and what would help
  int version = 0;       // of the driver: 13000 is CUDA 13.0
  os::Origin origin;     // the process that initialized it; no other can use it
};
const DriverState& driver_state();
inline const Driver& driver() { return driver_state().driver; }

// Whether the device is unusable in this process after this result.
bool is_fatal(CUresult result) noexcept;
// The driver has shut down, as it does at process exit: there is no pending work any more.
inline bool is_shut_down(CUresult result) noexcept { return result == CUDA_ERROR_DEINITIALIZED; }

// The failure of a call: "cuMemCreate: CUDA_ERROR_OUT_OF_MEMORY (out of memory)". The text is interned for
// ever, one for each call and result.
Failure failure_of(const char* call, CUresult result) noexcept;

}  // namespace berth::internal::device::cuda
