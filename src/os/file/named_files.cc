// SPDX-License-Identifier: Apache-2.0
#include "os/file/named_files.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstdio>

#include "os/file/file_calls.h"
#include "os/inject.h"
#include "os/process/no_cancel.h"

namespace berth::internal::os {

namespace {

Failure name_failure(const char* why) noexcept {
  switch (errno) {
    case ENOENT: return {ErrorCode::not_found, errno, why};
    case EEXIST: return {ErrorCode::already_exists, errno, why};
    case EACCES:
    case EPERM: return {ErrorCode::permission_denied, errno, why};
    case ELOOP:
    case ENXIO:
    case ENODEV: return {ErrorCode::untrusted, errno, "it is a link, a pipe or a device, and not a file"};
    case ENOSPC:
    case EDQUOT:
    case EFBIG:
    case ENOMEM: return {ErrorCode::out_of_memory, errno, why};
    case EMFILE:
    case ENFILE: return {ErrorCode::too_many_descriptors, errno, why};
    case EROFS:
    case ENOTDIR:
    case EOPNOTSUPP: return {ErrorCode::device_unavailable, errno, why};
    default: return {ErrorCode::device_error, errno, why};
  }
}

FileFacts facts_from(const struct stat& found) noexcept {
  return {.bytes = static_cast<std::uint64_t>(found.st_size),
          .device = static_cast<std::uint64_t>(found.st_dev),
          .inode = static_cast<std::uint64_t>(found.st_ino),
          .used_bytes = static_cast<std::uint64_t>(found.st_blocks) * 512,
          .user = found.st_uid,
          .mode = found.st_mode & 07777U,
          .links = static_cast<std::uint32_t>(found.st_nlink),
          .is_regular = S_ISREG(found.st_mode),
          .is_socket = S_ISSOCK(found.st_mode)};
}

}  // namespace

Result<Descriptor> open_own_folder(const char* path, bool make) noexcept {
  constexpr int kFolder = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC;
  Descriptor folder(insist("open_folder", [&] { return open(path, kFolder); }));
  if (!folder && errno == ENOENT && make) {
    const bool made = insist("mkdir", [&] { return mkdir(path, 0700); }) == 0;
    if (!made && errno != EEXIST) {
      if (errno == ENOENT) return Failure{ErrorCode::device_unavailable, errno, "there is no folder to put named storages in"};
      if (errno == EACCES || errno == EPERM)
        return Failure{ErrorCode::device_unavailable, errno, "this user may not create the folder for named storages"};
      return name_failure("the folder for named storages cannot be created");
    }
    // Whatever the umask. chmod fails for a directory of another user, which is rejected below.
    if (made) (void)chmod(path, 0700);
    folder = Descriptor(insist("open_folder", [&] { return open(path, kFolder); }));
  }
  if (!folder && (errno == ELOOP || errno == ENOTDIR))
    return Failure{ErrorCode::untrusted, errno, "the path of the folder for named storages is not a folder"};
  if (!folder && errno == EACCES)
    return Failure{ErrorCode::untrusted, errno, "the folder for named storages is another user's, or within another user's"};
  if (!folder) return name_failure("the folder for named storages cannot be opened");
  struct stat found;
  if (must_fail("fstat") || fstat(folder.number(), &found) != 0)
    return name_failure("the status of the folder for named storages cannot be read");
  if (found.st_uid != geteuid() || (found.st_mode & 077) != 0)
    return Failure{ErrorCode::untrusted, 0, "the folder for named storages is another user's, or others have access to it"};
  return folder;
}

void remove_empty_folder(const char* path) noexcept { (void)rmdir(path); }

Result<Descriptor> make_unnamed_file(int folder) noexcept {
  Descriptor file(insist("tmpfile", [&] { return openat(folder, ".", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600); }));
  if (!file) return name_failure("the folder's file system does not support unnamed files (O_TMPFILE)");
  if (must_fail("fchmod") || fchmod(file.number(), 0600) != 0) return name_failure("the file's permissions cannot be set");
  return file;
}

Status set_file_size(int descriptor, std::uint64_t bytes) noexcept {
  rlimit limit{};
  const bool short_files = getrlimit(RLIMIT_FSIZE, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY && bytes > limit.rlim_cur;
  if (bytes > LONG_MAX || short_files) return kFilesAreLimited;
  if (insist("ftruncate", [&] { return ftruncate(descriptor, static_cast<off_t>(bytes)); }) != 0)
    return name_failure("ftruncate refused to size the file");
  return {};
}

Status give_name(int descriptor, int folder, const char* name) noexcept {
  char path[40];
  std::snprintf(path, sizeof path, "/proc/self/fd/%d", descriptor);
  if (insist("linkat", [&] { return linkat(AT_FDCWD, path, folder, name, AT_SYMLINK_FOLLOW); }) != 0)
    return name_failure("the file cannot be linked to its name");
  return {};
}

Result<Descriptor> open_named(int folder, const char* name) noexcept {
  Descriptor file(insist("openat", [&] { return openat(folder, name, O_RDWR | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK | O_NOCTTY); }));
  if (!file) return name_failure("the name cannot be opened");
  return file;
}

Result<FileFacts> facts_of_name(int folder, const char* name) noexcept {
  struct stat found;
  if (must_fail("fstatat") || fstatat(folder, name, &found, AT_SYMLINK_NOFOLLOW) != 0)
    return name_failure("the file's status cannot be read");
  return facts_from(found);
}

Status remove_name(int folder, const char* name) noexcept {
  if (must_fail("unlinkat") || unlinkat(folder, name, 0) != 0) return name_failure("the name cannot be removed");
  return {};
}

Status rename_name(int folder, const char* from, const char* to) noexcept {
  if (insist("renameat", [&] { return renameat(folder, from, folder, to); }) != 0) return name_failure("the name cannot be changed");
  return {};
}

Result<std::vector<std::string>> names_in(int folder) {
  const NoCancel whole;
  Descriptor again(insist("open_folder", [&] { return openat(folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC); }));
  if (!again) return name_failure("the folder cannot be read");
  struct Reading {
    DIR* stream;
    ~Reading() { closedir(stream); }
  } reading{fdopendir(again.number())};
  if (reading.stream == nullptr) return name_failure("the folder cannot be read");
  (void)again.take();
  std::vector<std::string> names;
  errno = 0;  // at the end too, readdir returns nothing
  while (const dirent* const entry = readdir(reading.stream)) {
    const std::string name = entry->d_name;
    if (name != "." && name != "..") names.push_back(name);
    errno = 0;
  }
  if (errno != 0) return name_failure("the folder cannot be read");
  std::sort(names.begin(), names.end());
  return names;
}

std::uint64_t free_bytes_of(int folder) noexcept {
  struct statvfs found;
  return fstatvfs(folder, &found) == 0 ? static_cast<std::uint64_t>(found.f_bavail) * found.f_frsize : 0;
}

}  // namespace berth::internal::os
