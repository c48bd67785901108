// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "berth/storage/storage.h"
#include "file/open_file.h"
#include "file/output_file.h"

namespace berth::internal::file {

// Reads the start of an array: as many bytes as its header can have.
std::string read_front(const OpenFile& file, std::uint64_t offset, std::uint64_t bytes);

// The bytes of an array as an .npy file. Throws as NpyArray does.
std::uint64_t npy_bytes(const Storage& array, std::string_view name);

// An array as the two parts of an .npy file. Throws ArgumentError(unsupported_dtype), which mentions the name.
// One thread at a time.
class NpyArray {
 public:
  NpyArray(const Storage& array, std::string_view name);
  const std::string& header() const noexcept { return header_; }
  const HostBytes& elements() const noexcept { return bytes_; }
  std::uint64_t size_bytes() const noexcept { return header_.size() + bytes_.size(); }

 private:
  std::string header_;
  HostBytes bytes_;
};

}  // namespace berth::internal::file
