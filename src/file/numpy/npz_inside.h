// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "berth/file/npy.h"
#include "file/tensor_set.h"

namespace berth::internal::file {

// The door into NpzFile, for those in file/ who need its open file.
struct NpzInside {
  static NpzFile open(const std::string& path);
  static const file::TensorSet& set(const NpzFile& file) noexcept;
};

}  // namespace berth::internal::file
