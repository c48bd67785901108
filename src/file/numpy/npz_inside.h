// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "berth/file/npy.h"
#include "file/tensor_set.h"

namespace berth::internal::file {

// Access to the private parts of NpzFile, for code in file/ that needs its open file.
struct NpzInside {
  static NpzFile open(const std::string& path);
  static const file::TensorSet& set(const NpzFile& file) noexcept;
};

}  // namespace berth::internal::file
