// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "berth/file/tensor_entry.h"
#include "berth/storage/create.h"
#include "file/open_file.h"

// Tensors of a file as storages, whatever the format.
namespace berth::internal::file {

// All of the file as one buffer, read-only, mapped now. The buffer keeps the file open.
Buffer map_whole(const std::shared_ptr<const OpenFile>& file);
// Part of it, as map_file makes it. REQUIRES: the file has as much from the offset on.
Storage map_open(std::shared_ptr<const OpenFile> file, const Shape& shape, DType dtype, FileMode mode, const MapOptions& options,
                 const Site& site);

// Throws ArgumentError(unsupported_dtype) when berth has no such dtype.
DType dtype_of(const TensorEntry& entry);

// The tensor over `mapped`, which is all of the file; or read into memory, where its place does not suit its elements. Throws as dtype_of
// does, and FormatError when the file is not what was opened.
Storage tensor_over(const Buffer& mapped, const OpenFile& file, const TensorEntry& entry);
Storage bytes_over(const Buffer& mapped, const OpenFile& file, const TensorEntry& entry);
Storage read_tensor(const OpenFile& file, const TensorEntry& entry, const Place& place);

// The shape that the bytes of a tensor in Fortran order have in C order, and back.
Shape reversed(const Shape& shape);
Storage turned(const Storage& storage);

}  // namespace berth::internal::file
