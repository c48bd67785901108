// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "berth/berth.h"

namespace berth::internal::cli {

// A tensor file of any supported format, determined by its extension: .npy, .npz, .json (an index); anything
// else is safetensors.
class TensorSource {
 public:
  explicit TensorSource(const std::string& path, bool lax = false);

  std::string_view format() const noexcept;
  std::span<const TensorEntry> entries() const noexcept;
  std::span<const TensorFile> files() const noexcept;
  SafetensorsFile::Metadata metadata() const;
  Storage tensor(const TensorEntry& entry) const;
  Storage bytes(const TensorEntry& entry) const;
  // Verifies what opening does not: the checksums of an archive.
  void verify() const;

 private:
  // One array without a name: it gets the name of its file.
  struct Npy {
    explicit Npy(const std::string& path);
    std::vector<TensorEntry> entries;
    std::vector<TensorFile> files;
  };
  using File = std::variant<SafetensorsFile, NpzFile, Npy>;
  static File open(const std::string& path, bool lax);

  File file_;
  bool index_;
};

}  // namespace berth::internal::cli
