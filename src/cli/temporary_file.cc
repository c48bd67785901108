// SPDX-License-Identifier: Apache-2.0
#include "cli/temporary_file.h"

#include <fmt/core.h>

#include <filesystem>
#include <system_error>

#include "berth/base/error.h"
#include "os/system.h"

namespace berth::internal::cli {

namespace {

std::string temporary_path(std::string_view name) {
  std::error_code wrong;
  const std::filesystem::path folder = std::filesystem::temp_directory_path(wrong);
  if (wrong) {
    throw ArgumentError(ErrorCode::not_found, {"a temporary file", "the folder for temporary files does not exist",
                                               "set TMPDIR to a folder that exists, or unset it"});
  }
  return (folder / fmt::format("berth-{}-{}", os::process_id(), name)).string();
}

}  // namespace

TemporaryFile::TemporaryFile(std::string_view name) : path_(temporary_path(name)) {}

TemporaryFile::~TemporaryFile() {
  std::error_code ignored;
  std::filesystem::remove(path_, ignored);
}

}  // namespace berth::internal::cli
