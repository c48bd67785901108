// SPDX-License-Identifier: Apache-2.0
#include "file/open_file.h"

#include <optional>
#include <utility>

#include "base/text.h"
#include "berth/base/error.h"
#include "file/errors.h"

namespace berth::internal::file {

std::shared_ptr<const OpenFile> OpenFile::open(const std::string& path, os::OpenFor use, const char* asked) {
  require_path(path, asked);
  return value_or_throw(try_open(path, use), asked, path);
}

Result<std::shared_ptr<const OpenFile>> OpenFile::try_open(const std::string& path, os::OpenFor use) {
  Result<os::Descriptor> file = os::open_data(path.c_str(), use);
  if (!file) return file.failure();
  const Result<os::FileStamp> stamp = os::stamp_of(file->number());
  if (!stamp) return stamp.failure();
  return std::make_shared<const OpenFile>(path, std::move(*file), *stamp);
}

std::shared_ptr<const OpenFile> OpenFile::create(const std::string& path, std::uint64_t bytes, const char* asked) {
  require_path(path, asked);
  os::Descriptor file = value_or_throw(os::open_data(path.c_str(), os::OpenFor::create), asked, path);
  require_room(file.number(), bytes, asked, path);
  require_done(os::set_data_size(file.number(), bytes), asked, path);
  const os::FileStamp stamp = value_or_throw(os::stamp_of(file.number()), asked, path);
  return std::make_shared<const OpenFile>(path, std::move(file), stamp);
}

std::shared_ptr<const OpenFile> OpenFile::open_grown(const std::string& path, std::uint64_t bytes, const char* asked) {
  require_path(path, asked);
  os::Descriptor file = value_or_throw(os::open_data(path.c_str(), os::OpenFor::read_write), asked, path);
  os::FileStamp stamp = value_or_throw(os::stamp_of(file.number()), asked, path);
  if (stamp.bytes < bytes) {
    require_room(file.number(), bytes - stamp.bytes, asked, path);
    require_done(os::set_data_size(file.number(), bytes, stamp.bytes), asked, path);
    stamp = value_or_throw(os::stamp_of(file.number()), asked, path);
  }
  return std::make_shared<const OpenFile>(path, std::move(file), stamp);
}

void require_room(int descriptor, std::uint64_t bytes, std::string_view asked, const std::string& path) {
  const std::optional<std::uint64_t> have = os::free_bytes(descriptor);
  if (!have || bytes <= *have) return;
  throw DeviceError(ErrorCode::out_of_memory,
                    {text::join(asked, ' ', text::quoted(path)),
                     text::join("it needs ", text::bytes(bytes), ", and the disk has ", text::bytes(*have), " free"),
                     "free space on the disk, or write to another"},
                    {{"path", text::printable(path, 4096)}, {"need", bytes}, {"have", *have}});
}

void OpenFile::read(std::uint64_t offset, std::span<std::byte> target) const {
  const Result<std::size_t> got = os::read_at(descriptor(), offset, target.data(), target.size());
  if (!got) throw_file_failure(got.failure(), "reading", path_);
  if (*got != target.size()) throw_truncated(offset + *got, offset + target.size());
}

void OpenFile::throw_truncated(std::uint64_t have, std::uint64_t need) const {
  throw_fault(path_, {.rule = "file_truncated",
                      .why = text::join("the file was truncated while it was open: it ends at byte ", have, ", and ", need, " are needed"),
                      .help = "open it again when nobody writes to it",
                      .code = ErrorCode::file_truncated,
                      .facts = {{"have", have}, {"need", need}}});
}

os::FileStamp OpenFile::stamp_now() const { return value_or_throw(os::stamp_of(descriptor()), "looking at", path_); }

FileState OpenFile::state() const {
  const os::FileStamp now = stamp_now();
  if (now.bytes < stamp_.bytes) return FileState::truncated;
  if (now != stamp_) return FileState::changed;
  const Result<os::FileStamp> named = os::stamp_of_path(path_.c_str());
  if (!named && named.failure().code != ErrorCode::not_found) throw_file_failure(named.failure(), "looking at", path_);
  return named && named->same_file(stamp_) ? FileState::current : FileState::replaced;
}

void OpenFile::require_unchanged() const {
  const os::FileStamp now = stamp_now();
  if (now.bytes < stamp_.bytes) throw_truncated(now.bytes, stamp_.bytes);
  if (now == stamp_) return;
  throw_fault(path_, {.rule = "file_changed",
                      .why = "someone has written to the file since it was opened",
                      .help = "open it again; to use a file that others write to on purpose, map it with expect_changes",
                      .code = ErrorCode::file_changed});
}

void OpenFile::require_bytes(std::uint64_t need) const {
  const os::FileStamp now = stamp_now();
  if (now.bytes < need) throw_truncated(now.bytes, need);
}

}  // namespace berth::internal::file
