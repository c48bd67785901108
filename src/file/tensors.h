// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "berth/file/tensor_entry.h"
#include "berth/storage/create.h"
#include "file/open_file.h"

// Tensors of a file as storages, for all formats. Any thread.
namespace berth::internal::file {

// Maps the whole file as one read-only buffer, which keeps the file open.
Buffer map_whole(const std::shared_ptr<const OpenFile>& file);
// Maps a part of the file, as map_file does. REQUIRES: the file has enough bytes from the offset on.
Storage map_open(std::shared_ptr<const OpenFile> file, const Shape& shape, DType dtype, FileMode mode, const MapOptions& options,
                 const Site& site);

// Throws ArgumentError(unsupported_dtype) when berth has no such dtype.
DType dtype_of(const TensorEntry& entry);

// tensor_over: a view of `mapped`, which is the whole file; or the tensor read into memory, if its offset is
// misaligned for its elements. Throw as dtype_of does (except bytes_over), and FormatError when the file
// differs from what was opened.
Storage tensor_over(const Buffer& mapped, const OpenFile& file, const TensorEntry& entry);
Storage bytes_over(const Buffer& mapped, const OpenFile& file, const TensorEntry& entry);
Storage read_tensor(const OpenFile& file, const TensorEntry& entry, const AllocatorRef& where);

// Reverses the axes: a tensor in Fortran order, seen as its bytes in C order, and back.
Shape reversed(const Shape& shape);
Storage turned(const Storage& storage);

}  // namespace berth::internal::file
