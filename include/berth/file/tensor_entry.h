// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "berth/base/dtype.h"
#include "berth/base/shape.h"

// What a file says about one tensor: everything needed to read it. When the file was opened, every number was
// checked against the file's size, and the byte count against dtype and shape. Plain data, used by all file
// formats.
namespace berth {

struct TensorEntry {
  std::string name;
  std::optional<DType> dtype;     // empty: berth has no such dtype, and the tensor is readable only as bytes
  std::string format_dtype;       // what the file calls it: "BF16", "F8_E8M0", "<f4"
  Shape shape;                    // in elements of the file's dtype
  std::uint64_t file_offset = 0;  // of the first byte, from the start of the file
  std::size_t size_bytes = 0;
  std::size_t file = 0;        // which of the files: an index into files()
  bool fortran_order = false;  // column-major: the first axis is the dense one (npy only)
};

// One of the files that tensors come from.
struct TensorFile {
  std::string path;
  std::uint64_t size_bytes = 0;
  std::uint64_t data_offset = 0;  // of the first byte of tensor data
};

}  // namespace berth
