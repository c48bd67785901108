// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

#include "berth/base/result.h"
#include "os/file/descriptor.h"

// All files that berth writes as a whole, whatever names them. One thread at a time.
namespace berth::internal::os {

// A file that is created atomically: it is written without a name, in the directory of its path, and is deleted
// with this object unless put_in_place() succeeded. Where the file system supports O_TMPFILE it has no name at
// all until then, so that not even a crash leaves it behind.
//
// The new file has the permissions of the one that it replaces if that has the same owner, those of the group if
// it has the same group, and never a set-user, set-group or sticky bit; else those of any new file.
class NewFile {
 public:
  // A link itself is replaced, not its target. Fails with `unsupported` when the path is, or leads to, a folder, a
  // pipe, a device or an open file (/dev/stdout); with `untrusted` when it is another user's, in a sticky folder that others may write: there
  // anyone can lay out a file for somebody to replace.
  static Result<NewFile> make(const std::string& path);
  NewFile(NewFile&& other) noexcept;
  NewFile& operator=(NewFile&&) = delete;
  ~NewFile();

  int descriptor() const noexcept { return file_.number(); }
  // Syncs the bytes to disk and renames the file to its path atomically. Call it once.
  Status put_in_place() noexcept;
  // Writes all of the file and puts it in place. Call it once, and nothing else.
  Status write_whole(std::string_view bytes) noexcept;

 private:
  NewFile(Descriptor folder, std::string name, std::string temporary);
  Status look_at_target() noexcept;
  Status begin() noexcept;
  Status take_over_mode() noexcept;

  Descriptor folder_;
  Descriptor file_;
  std::string name_;           // in the directory
  std::string temporary_;      // its name until it is in place
  bool has_name_ = false;      // the temporary one exists
  bool replaces_own_ = false;  // a regular file of this user, with this group and mode
  unsigned group_ = 0;
  unsigned mode_ = 0;
};

// Writes all of a file.
Status write_new_file(const std::string& path, std::string_view bytes);
// The same for a path that a user types: where it leads to a pipe, a device or an open file, that is written to, at
// its end. Does not wait for the reader of a FIFO.
Status write_file_or_device(const std::string& path, std::string_view bytes);

// Makes a folder that only this user may look into; its name begins with `prefix`, and nobody could foresee the rest.
Result<std::string> make_private_folder(const std::string& prefix);

}  // namespace berth::internal::os
