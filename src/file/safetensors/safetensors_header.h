// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "berth/file/safetensors.h"
#include "file/name_index.h"

// The header of a safetensors file:
//
//     | N, 8 bytes, least first | N bytes of JSON, padded with spaces | tensors, one right after another, to the end of the file |
//
//     {"__metadata__": {"format": "pt"}, "w": {"dtype": "F32", "shape": [2, 3], "data_offsets": [0, 24]}, …}
//
// Offsets count from the end of the header. The parser knows no files, only bytes and a size, so that it can be
// fuzzed. Pure functions; any thread.
namespace berth::internal::file {

class JsonText;

inline constexpr std::uint64_t kSafetensorsLengthBytes = 8;
inline constexpr std::uint64_t kMostHeaderBytes = 100'000'000;  // of JSON: the limit of the reference
                                                                // implementation

struct SafetensorsHeader {
  std::vector<TensorEntry> entries;  // sorted by offset; `file` is 0
  NameIndex names;                   // of the entries; no two are equal
  SafetensorsFile::Metadata metadata;
  std::uint64_t data_offset = 0;
};

// Reads N from the first eight bytes of the file (fewer if it is shorter). Throws FormatError: too_small,
// header_length, header_limit.
std::uint64_t safetensors_header_bytes(std::string_view first, std::uint64_t file_bytes, std::string_view path);

// Throws FormatError for a header that breaks a rule.
SafetensorsHeader parse_safetensors(const JsonText& json, std::uint64_t file_bytes, const SafetensorsOptions& options,
                                    std::string_view path);

}  // namespace berth::internal::file
