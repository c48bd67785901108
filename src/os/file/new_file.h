// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "berth/base/result.h"
#include "os/file/descriptor.h"

namespace berth::internal::os {

// A file that has no name yet, in the folder where it will get one. It goes with this object unless it was put in place: where the file
// system can, it has no name at all until then, so that not even a crash leaves it.
class NewFile {
 public:
  // Refuses to take the place of what is neither a regular file nor a link: `unsupported`. A link itself is replaced, not what it leads to.
  static Result<NewFile> make(const std::string& path);
  NewFile(NewFile&& other) noexcept;
  NewFile& operator=(NewFile&&) = delete;
  ~NewFile();

  int descriptor() const noexcept { return file_.number(); }
  // All bytes are on the disk, and under the name, in one step. With the rights of the file whose place it takes. Call it once.
  Status put_in_place() noexcept;

 private:
  NewFile(Descriptor folder, std::string name);
  Status begin() noexcept;
  Status look_at_target() noexcept;

  Descriptor folder_;
  Descriptor file_;
  std::string name_;       // in the folder
  std::string temporary_;  // what it is called in between
  bool has_name_ = false;  // that one
  int mode_ = -1;          // the rights of the file whose place it takes
};

}  // namespace berth::internal::os
