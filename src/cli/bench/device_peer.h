// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>

#include "berth/storage/storage.h"
#include "cli/bench/cases.h"

// The baseline for copies that involve a device: the device's own copy of as many bytes, read and written,
// within its memory; or, if the host is one end, its own copy from or to page-locked memory.
namespace berth::internal::cli {

class DevicePeer {
 public:
  DevicePeer(const BenchCase& one, std::size_t bytes);

  void run() const;

 private:
  Storage source_;
  Storage target_;
};

}  // namespace berth::internal::cli
