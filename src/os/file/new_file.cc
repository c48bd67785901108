// SPDX-License-Identifier: Apache-2.0
#include "os/file/new_file.h"

#include <fcntl.h>
#include <linux/magic.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <utility>

#include "os/file/data_file.h"
#include "os/file/file.h"
#include "os/file/file_calls.h"
#include "os/file/shared_file.h"
#include "os/system.h"

namespace berth::internal::os {

namespace {

Result<std::string> fresh_name() {
  std::uint64_t word = 0;
  if (const Status drawn = random_bytes(&word, sizeof word); !drawn) return drawn.failure();
  char name[40];
  std::snprintf(name, sizeof name, ".berth-%016llx", static_cast<unsigned long long>(word));
  return std::string(name);
}

// Whether a link leads to an open file, as /dev/stdout does, or /proc/self/fd/1 itself: there is no name to replace.
bool is_open_file(int folder, const char* link) noexcept {
  constexpr std::string_view kProc = "/proc/";
  struct statfs where;
  if (fstatfs(folder, &where) == 0 && where.f_type == PROC_SUPER_MAGIC) return true;
  char text[kProc.size()];
  const ssize_t got = readlinkat(folder, link, text, sizeof text);
  return got > 0 && std::string_view(text, static_cast<std::size_t>(got)) == kProc;
}

}  // namespace

NewFile::NewFile(Descriptor folder, std::string name, std::string temporary)
    : folder_(std::move(folder)), name_(std::move(name)), temporary_(std::move(temporary)) {}

NewFile::NewFile(NewFile&& other) noexcept
    : folder_(std::move(other.folder_)),
      file_(std::move(other.file_)),
      name_(std::move(other.name_)),
      temporary_(std::move(other.temporary_)),
      has_name_(std::exchange(other.has_name_, false)),
      replaces_own_(other.replaces_own_),
      group_(other.group_),
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
  Result<std::string> temporary = fresh_name();
  if (!temporary) return temporary.failure();
  NewFile made(std::move(opened), std::move(name), std::move(*temporary));
  if (const Status status = made.look_at_target(); !status) return status.failure();
  if (const Status status = made.begin(); !status) return status.failure();
  return made;
}

Status NewFile::look_at_target() noexcept {
  constexpr Failure kFolder{ErrorCode::unsupported, EISDIR, "it is a folder, and not a file"};
  constexpr Failure kNoFile{ErrorCode::unsupported, EEXIST, "the path is a pipe, a device or an open file, and not a file to replace"};
  struct stat found;
  if (must_fail("fstatat") || fstatat(folder_.number(), name_.c_str(), &found, AT_SYMLINK_NOFOLLOW) != 0)
    return errno == ENOENT ? Status() : file_failure("the status of the file to replace cannot be read");
  if (S_ISLNK(found.st_mode)) {
    struct stat end;
    if (is_open_file(folder_.number(), name_.c_str())) return kNoFile;
    if (fstatat(folder_.number(), name_.c_str(), &end, 0) == 0 && !S_ISREG(end.st_mode)) return S_ISDIR(end.st_mode) ? kFolder : kNoFile;
  } else if (!S_ISREG(found.st_mode)) {
    return S_ISDIR(found.st_mode) ? kFolder : kNoFile;
  }
  const bool own = found.st_uid == geteuid();
  struct stat folder;
  if (must_fail("fstat") || fstat(folder_.number(), &folder) != 0) return file_failure("the status of the folder cannot be read");
  constexpr mode_t kOthersWrite = S_IWGRP | S_IWOTH;
  if (!own && (folder.st_mode & S_ISVTX) != 0 && (folder.st_mode & kOthersWrite) != 0)
    return Failure{ErrorCode::untrusted, 0, "there is a file of another user, in a folder where anyone may put one"};
  replaces_own_ = own && S_ISREG(found.st_mode);
  group_ = found.st_gid;
  mode_ = found.st_mode;
  return {};
}

Status NewFile::begin() noexcept {
  // Without /proc a file that has no name could not be given one.
  const bool can_be_named = has_proc();
  if (can_be_named)
    file_ = Descriptor(insist("tmpfile", [&] { return openat(folder_.number(), ".", O_TMPFILE | O_RDWR | O_CLOEXEC, 0666); }));
  if (!can_be_named || (!file_ && (errno == EOPNOTSUPP || errno == EISDIR || errno == ENOENT || errno == EINVAL))) {
    // Nor on a file system without O_TMPFILE.
    constexpr int kNew = O_CREAT | O_EXCL | O_RDWR | O_CLOEXEC | O_NOFOLLOW;
    file_ = Descriptor(insist("openat", [&] { return openat(folder_.number(), temporary_.c_str(), kNew, 0666); }));
    has_name_ = static_cast<bool>(file_);
  }
  if (!file_) return file_failure("no file can be created in the folder");
  return replaces_own_ ? take_over_mode() : Status();
}

Status NewFile::take_over_mode() noexcept {
  struct stat made;
  if (must_fail("fstat") || fstat(file_.number(), &made) != 0) return file_failure("the status of the new file cannot be read");
  const mode_t kept = made.st_gid == group_ ? S_IRWXU | S_IRWXG | S_IRWXO : S_IRWXU | S_IRWXO;
  if (must_fail("fchmod") || fchmod(file_.number(), mode_ & kept) != 0) return file_failure("the file's permissions cannot be set");
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

Status NewFile::write_whole(std::string_view bytes) noexcept {
  if (const Status done = write_at(file_.number(), 0, bytes.data(), bytes.size()); !done) return done;
  return put_in_place();
}

Status write_new_file(const std::string& path, std::string_view bytes) {
  Result<NewFile> file = NewFile::make(path);
  return file ? file->write_whole(bytes) : file.failure();
}

Status write_file_or_device(const std::string& path, std::string_view bytes) {
  Result<NewFile> file = NewFile::make(path);
  if (file) return file->write_whole(bytes);
  struct stat found;
  const bool is_no_file = file.failure().os_error == EEXIST && !must_fail("stat") && stat(path.c_str(), &found) == 0;
  if (!is_no_file || S_ISDIR(found.st_mode)) return file.failure();
  constexpr int kDeviceToAppend = O_WRONLY | O_APPEND;
  const Descriptor device(insist("open", [&] { return open(path.c_str(), kDeviceToAppend | O_NONBLOCK | O_NOCTTY | O_CLOEXEC); }));
  if (!device && errno == ENXIO) return Failure{ErrorCode::unsupported, ENXIO, "nobody reads from it"};
  if (!device || fcntl(device.number(), F_SETFL, kDeviceToAppend) != 0) return file_failure("it cannot be opened");
  return write_file(device.number(), bytes.data(), bytes.size());
}

Result<std::string> make_private_folder(const std::string& prefix) {
  std::string path = prefix + "XXXXXX";
  if (must_fail("mkdtemp") || mkdtemp(path.data()) == nullptr) return file_failure("no folder can be made");
  return path;
}

}  // namespace berth::internal::os
