// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "berth/base/dtype.h"
#include "berth/base/shape.h"

// What a file says of one tensor: enough to read it without asking anyone else. Every number has been checked against the file's size
// when the file was opened, and the bytes against dtype and shape.
namespace berth {

struct TensorEntry {
  std::string name;
  std::optional<DType> dtype;     // nothing: berth has no such dtype, and the tensor is readable as bytes alone
  std::string format_dtype;       // what the file calls it: "BF16", "F8_E8M0", "<f4"
  Shape shape;                    // in elements of the file's dtype
  std::uint64_t file_offset = 0;  // of the first byte, from the start of the file
  std::size_t size_bytes = 0;
  std::size_t file = 0;        // which of the files: an index into files()
  bool fortran_order = false;  // the first axis is the one whose elements are neighbours (npy alone)
};

// One of the files that tensors come from.
struct TensorFile {
  std::string path;
  std::uint64_t size_bytes = 0;
  std::uint64_t data_offset = 0;  // where the bytes of tensors begin
};

}  // namespace berth
