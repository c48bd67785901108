// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "berth/base/result.h"
#include "os/file/descriptor.h"

namespace berth::internal::os {

// A file that is created atomically: it is written without a name, in the directory of its path, and is deleted
// with this object unless put_in_place() succeeded. Where the file system supports O_TMPFILE it has no name at
// all until then, so that not even a crash leaves it behind. One thread at a time.
class NewFile {
 public:
  // Fails with `unsupported` when the path exists and is neither a regular file nor a link. A link itself is
  // replaced, not its target.
  static Result<NewFile> make(const std::string& path);
  NewFile(NewFile&& other) noexcept;
  NewFile& operator=(NewFile&&) = delete;
  ~NewFile();

  int descriptor() const noexcept { return file_.number(); }
  // Syncs the bytes to disk and renames the file to its path atomically, with the permissions of the file that
  // it replaces. Call it once.
  Status put_in_place() noexcept;

 private:
  NewFile(Descriptor folder, std::string name);
  Status begin() noexcept;
  Status look_at_target() noexcept;

  Descriptor folder_;
  Descriptor file_;
  std::string name_;       // in the directory
  std::string temporary_;  // its name until it is in place
  bool has_name_ = false;  // the temporary one exists
  int mode_ = -1;          // permissions of the file that it replaces
};

}  // namespace berth::internal::os
