// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "berth/file/tensor_entry.h"

// The header of an .npy file:
//
//     | \x93NUMPY | major | minor | length: 2 bytes (version 1), 4 bytes (2, 3) | a Python dictionary, padded, \n | elements |
//
//     {'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }
//
// The dictionary is read by a parser of its own, without recursion: three keys, each once, and each with one
// type of value. Nothing is evaluated. Pure functions; any thread.
namespace berth::internal::file {

// The most bytes that a header can have, and so the most that the parser is given.
inline constexpr std::size_t kMostNpyHeaderBytes = 10'000;  // NumPy's own limit for untrusted files
inline constexpr std::size_t kNpyStartBytes = 12;           // magic, version and the longer length
inline constexpr std::size_t kMostNpyBytes = kNpyStartBytes + kMostNpyHeaderBytes;

// `front` is the start of an array that takes `bytes` in all, at that position of the file; as much of it as
// there is, up to kMostNpyBytes. The entry's offset is from the start of the file; its name is the given one.
// Throws FormatError.
struct NpyPosition {
  std::string_view path;
  std::uint64_t offset = 0;  // of the array in the file
  std::uint64_t bytes = 0;   // that it takes, header included
  std::string_view name = {};
};
TensorEntry parse_npy(std::string_view front, const NpyPosition& position);

// The header of an array, padded to a multiple of 64 bytes. Returns nullopt when NumPy has no such dtype.
std::optional<std::string> npy_header(DType dtype, const Shape& shape, bool fortran_order);

}  // namespace berth::internal::file
