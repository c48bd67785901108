// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "berth/file/safetensors.h"
#include "file/tensor_set.h"

namespace berth::internal::file {

// Access to the private parts of SafetensorsFile, for code in file/ that needs its open files.
struct SafetensorsInside {
  struct Parts {
    std::string path;
    std::vector<TensorEntry> entries;
    file::NameIndex names;
    std::vector<TensorFile> files;
    std::vector<std::shared_ptr<const file::OpenFile>> open;
    SafetensorsFile::Metadata metadata;
  };
  static SafetensorsFile make(Parts parts);
  static const file::TensorSet& set(const SafetensorsFile& file) noexcept;
};

}  // namespace berth::internal::file
