// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "berth/export.h"
#include "berth/storage/dlpack_abi.h"
#include "berth/storage/storage.h"

// Handing storages to other frameworks, and taking theirs, without a copy.
//
//     DlpackTensor out = to_dlpack(x);              // give out.take() to a framework; x's bytes live until it calls the deleter
//     Storage y = from_dlpack(DlpackTensor(theirs));    // their bytes live until the last storage over them is gone
//
// Frameworks on the host differ in what they do about streams; synchronise before handing over what a stream still writes. On CUDA devices the
// consumer names its stream, and that has to wait for the producer's: cuda::dlpack_stream (device/cuda.h).
namespace berth {

// A DLPack tensor that has not been consumed yet: consumed once by `take`, or freed exactly once when this is destroyed.
class BERTH_EXPORT DlpackTensor {
 public:
  explicit DlpackTensor(dlpack::ManagedTensorVersioned* tensor) noexcept : tensor_(tensor) {}
  DlpackTensor(DlpackTensor&& other) noexcept;
  DlpackTensor& operator=(DlpackTensor&& other) noexcept;
  ~DlpackTensor();

  const dlpack::ManagedTensorVersioned* get() const noexcept { return tensor_; }

  // The tensor is the caller's from now on. Throws AccessError(already_consumed) the second time.
  dlpack::ManagedTensorVersioned* take();

 private:
  dlpack::ManagedTensorVersioned* tensor_;
};

// Throws DeviceError(unsupported) for devices that DLPack has no name for. Simulated devices travel as "extension" devices,
// which only this library can take back: to others that type means another device.
BERTH_EXPORT DlpackTensor to_dlpack(const Storage& storage);

// For consumers older than version 1; the caller owns it. Throws AccessError(read_only) for a read-only storage, which the old layout
// cannot express.
BERTH_EXPORT dlpack::ManagedTensor* to_dlpack_legacy(const Storage& storage);

// Nothing in the tensor is trusted: FormatError for a layout that contradicts itself or cannot be, ArgumentError for what berth lacks
// (unsupported_dtype, a rank past limit_exceeded), DeviceError for a device it lacks and for
// an extension device that it did not export itself. Consumed in every case; when refused, its deleter has been called.
BERTH_EXPORT Storage from_dlpack(DlpackTensor tensor, Site site = Site::here());
BERTH_EXPORT Storage from_dlpack(dlpack::ManagedTensor* tensor, Site site = Site::here());

}  // namespace berth
