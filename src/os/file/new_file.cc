// SPDX-License-Identifier: Apache-2.0
#include "os/file/new_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <utility>

#include "os/file/file_calls.h"
#include "os/file/shared_file.h"

namespace berth::internal::os {

namespace {

std::string fresh_name() {
  std::uint64_t word = 0;
  random_bytes(&word, sizeof word);
  char name[40];
  std::snprintf(name, sizeof name, ".berth-%016llx", static_cast<unsigned long long>(word));
  return name;
}

}  // namespace

NewFile::NewFile(Descriptor folder, std::string name) : folder_(std::move(folder)), name_(std::move(name)), temporary_(fresh_name()) {}

NewFile::NewFile(NewFile&& other) noexcept
    : folder_(std::move(other.folder_)),
      file_(std::move(other.file_)),
      name_(std::move(other.name_)),
      temporary_(std::move(other.temporary_)),
      has_name_(std::exchange(other.has_name_, false)),
      mode_(other.mode_) {}

NewFile::~NewFile() {
  if (has_name_) (void)unlinkat(folder_.number(), temporary_.c_str(), 0);
}

Result<NewFile> NewFile::make(const std::string& path) {
  const std::size_t slash = path.rfind('/');
  std::string name = slash == std::string::npos ? path : path.substr(slash + 1);
  if (name.empty() || name == "." || name == "..") return Failure{ErrorCode::unsupported, EISDIR, "that names a folder, and not a file"};
  const std::string folder = slash == std::string::npos ? "." : slash == 0 ? "/" : path.substr(0, slash);
  Descriptor opened(insist("open_folder", [&] { return open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC); }));
  if (!opened) return file_failure("the folder cannot be opened");
  NewFile made(std::move(opened), std::move(name));
  if (const Status status = made.look_at_target(); !status) return status.failure();
  if (const Status status = made.begin(); !status) return status.failure();
  return made;
}

Status NewFile::look_at_target() noexcept {
  struct stat found;
  if (must_fail("fstatat") || fstatat(folder_.number(), name_.c_str(), &found, AT_SYMLINK_NOFOLLOW) != 0)
    return errno == ENOENT ? Status() : file_failure("the status of the file to replace cannot be read");
  if (S_ISREG(found.st_mode)) mode_ = static_cast<int>(found.st_mode & 07777U);
  if (S_ISREG(found.st_mode) || S_ISLNK(found.st_mode)) return {};
  return Failure{ErrorCode::unsupported, 0, "the path is a folder, a pipe or a device, and not a file to replace"};
}

Status NewFile::begin() noexcept {
  file_ = Descriptor(insist("tmpfile", [&] { return openat(folder_.number(), ".", O_TMPFILE | O_RDWR | O_CLOEXEC, 0666); }));
  if (!file_ && (errno == EOPNOTSUPP || errno == EISDIR || errno == ENOENT || errno == EINVAL)) {
    // A file system without O_TMPFILE.
    constexpr int kNew = O_CREAT | O_EXCL | O_RDWR | O_CLOEXEC | O_NOFOLLOW;
    file_ = Descriptor(insist("openat", [&] { return openat(folder_.number(), temporary_.c_str(), kNew, 0666); }));
    has_name_ = static_cast<bool>(file_);
  }
  if (!file_) return file_failure("no file can be created in the folder");
  if (mode_ >= 0 && (must_fail("fchmod") || fchmod(file_.number(), static_cast<mode_t>(mode_)) != 0))
    return file_failure("the file's permissions cannot be set");
  return {};
}

Status NewFile::put_in_place() noexcept {
  if (insist("fsync", [&] { return fsync(file_.number()); }) != 0) return file_failure("the bytes cannot be flushed to disk");
  if (!has_name_) {
    char path[40];
    std::snprintf(path, sizeof path, "/proc/self/fd/%d", file_.number());
    const auto call = [&] { return linkat(AT_FDCWD, path, folder_.number(), temporary_.c_str(), AT_SYMLINK_FOLLOW); };
    if (insist("linkat", call) != 0) return file_failure("the file cannot be linked to a name");
    has_name_ = true;
  }
  const auto rename = [&] { return renameat(folder_.number(), temporary_.c_str(), folder_.number(), name_.c_str()); };
  if (insist("rename", rename) != 0) return file_failure("the file cannot be renamed to its path");
  has_name_ = false;
  // The name is durable once the directory is synced. Some file systems do not need or support that, and return
  // an error.
  if (insist("fsync_folder", [&] { return fsync(folder_.number()); }) != 0 && errno != EINVAL && errno != EOPNOTSUPP)
    return file_failure("the file is renamed, but its name may not be on disk yet");
  return {};
}

}  // namespace berth::internal::os
