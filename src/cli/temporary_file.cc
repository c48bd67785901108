// SPDX-License-Identifier: Apache-2.0
#include "cli/temporary_file.h"

#include <filesystem>
#include <system_error>

#include "base/text.h"
#include "berth/base/error.h"
#include "os/file/new_file.h"

namespace berth::internal::cli {

namespace {

std::string new_folder() {
  std::error_code wrong;
  const std::filesystem::path all = std::filesystem::temp_directory_path(wrong);
  if (wrong) {
    throw ArgumentError(ErrorCode::not_found, {"a temporary file", "the folder for temporary files does not exist",
                                               "set TMPDIR to a folder that exists, or unset it"});
  }
  Result<std::string> made = os::make_private_folder(all / "berth-");
  if (made) return std::move(*made);
  throw ArgumentError(made.failure().code,
                      {"a temporary file", text::join("nothing can be written to ", text::quoted(all.string()), ": ", made.failure().why),
                       "set TMPDIR to a folder that you may write to"});
}

}  // namespace

TemporaryFile::TemporaryFile(std::string_view name) : folder_(new_folder()), path_(folder_ + "/" + std::string(name)) {}

TemporaryFile::~TemporaryFile() {
  std::error_code ignored;
  std::filesystem::remove_all(folder_, ignored);
}

}  // namespace berth::internal::cli
