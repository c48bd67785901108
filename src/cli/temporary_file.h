// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

// A file of the command line, in a folder of its own within the system's folder for temporary files, so that nobody
// else can be there first; both are removed with the object. The file is not made here: whoever writes to `path` does
// that.
namespace berth::internal::cli {

class TemporaryFile {
 public:
  // "tour.safetensors" becomes ".../berth-<random>/tour.safetensors". Throws ArgumentError if no folder can be made.
  explicit TemporaryFile(std::string_view name);
  ~TemporaryFile();
  TemporaryFile(const TemporaryFile&) = delete;
  TemporaryFile& operator=(const TemporaryFile&) = delete;

  const std::string& path() const noexcept { return path_; }

 private:
  const std::string folder_;
  const std::string path_;
};

}  // namespace berth::internal::cli
