// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

// A file of the command line in the system's folder for temporary files, removed with the object. It is not made here:
// whoever writes to `path` does that.
namespace berth::internal::cli {

class TemporaryFile {
 public:
  // "tour.safetensors" becomes ".../berth-<process>-tour.safetensors". Throws ArgumentError if there is no such folder.
  explicit TemporaryFile(std::string_view name);
  ~TemporaryFile();
  TemporaryFile(const TemporaryFile&) = delete;
  TemporaryFile& operator=(const TemporaryFile&) = delete;

  const std::string& path() const noexcept { return path_; }

 private:
  const std::string path_;
};

}  // namespace berth::internal::cli
