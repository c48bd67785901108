// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "berth/export.h"
#include "berth/storage/dlpack_abi.h"
#include "berth/storage/storage.h"

// Zero-copy exchange of storages with other frameworks. Any thread.
//
//     DlpackTensor out = to_dlpack(x);              // give out.take() to a framework; x's bytes live until it calls the deleter
//     Storage y = from_dlpack(DlpackTensor(theirs));    // their bytes live until the last storage over them is gone
//
// Host frameworks differ in how they treat streams: synchronise before handing over bytes that a stream still
// writes. On CUDA devices the consumer names its stream, which has to wait for the producer's:
// cuda::dlpack_stream (device/cuda.h).
namespace berth {

// Owns a DLPack tensor that has not been consumed yet. It is consumed once, by `take`, or freed once, when this
// is destroyed.
class BERTH_EXPORT DlpackTensor {
 public:
  explicit DlpackTensor(dlpack::ManagedTensorVersioned* tensor) noexcept : tensor_(tensor) {}
  DlpackTensor(DlpackTensor&& other) noexcept;
  DlpackTensor& operator=(DlpackTensor&& other) noexcept;
  ~DlpackTensor();

  const dlpack::ManagedTensorVersioned* get() const noexcept { return tensor_; }

  // Passes ownership to the caller. Throws AccessError(already_consumed) the second time.
  dlpack::ManagedTensorVersioned* take();

 private:
  dlpack::ManagedTensorVersioned* tensor_;
};

// Throws DeviceError(unsupported) for devices that DLPack has no type for. Simulated devices are exported as
// "extension" devices, which only this library can import again: to others that type means another device.
BERTH_EXPORT DlpackTensor to_dlpack(const Storage& storage);

// For consumers of DLPack before version 1; the caller owns the tensor. Throws AccessError(read_only) for a
// read-only storage, which the old layout cannot express.
BERTH_EXPORT dlpack::ManagedTensor* to_dlpack_legacy(const Storage& storage);

// Nothing in the tensor is trusted. Throws FormatError for an inconsistent or impossible layout, ArgumentError
// for what berth lacks (unsupported_dtype, limit_exceeded for too high a rank), DeviceError for an unknown
// device and for an extension device that berth did not export itself. The tensor is consumed in every case;
// when it is refused, its deleter has been called.
BERTH_EXPORT Storage from_dlpack(DlpackTensor tensor, Site site = Site::here());
BERTH_EXPORT Storage from_dlpack(dlpack::ManagedTensor* tensor, Site site = Site::here());

}  // namespace berth
