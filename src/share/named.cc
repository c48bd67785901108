// SPDX-License-Identifier: Apache-2.0
#include "berth/share/named.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "base/text.h"
#include "berth/base/error.h"
#include "os/file/named_files.h"
#include "share/errors.h"
#include "share/exchange.h"
#include "share/named_file.h"
#include "share/names.h"
#include "storage/make.h"

namespace berth {

using namespace internal;
using namespace internal::storage;

using namespace internal::share;

namespace {

// Holds a named storage open for a buffer.
class NameGuard : public BufferGuard {
 public:
  explicit NameGuard(std::unique_ptr<NamedFile> file) : file_(std::move(file)) {}
  void release_block(const Block&, Allocator*, std::shared_ptr<Allocator>) noexcept override { file_.reset(); }
  const NamedFile& file() const noexcept { return *file_; }

 private:
  std::unique_ptr<NamedFile> file_;
};

const NameGuard* guard_of(const Storage& storage) noexcept {
  return storage.buffer() ? dynamic_cast<const NameGuard*>(BufferMaker::guard(storage.buffer()).get()) : nullptr;
}

// A storage over the file. If an allocation fails, the file is closed again.
Storage storage_over(std::unique_ptr<NamedFile> file, bool read_only, const Site& site) {
  Deleter none;
  const StorageLayout layout = file->layout();
  const Buffer buffer = BufferMaker::wrap(file->data(), file->bytes(), shared_device(), none, read_only, Owner::shared, site);
  Storage made(buffer, layout.dtype, layout.shape, layout.strides, layout.offset);
  BufferMaker::guard(buffer) = std::make_unique<NameGuard>(std::move(file));
  return made;
}

[[noreturn]] void throw_not_created(const Failure& failure, std::string_view name, std::uint64_t bytes) {
  const NamesFolder where;
  std::vector<Fact> facts{{"need", bytes}};
  if (const Result<os::Descriptor> folder = where.open(false)) facts.emplace_back("available", os::free_bytes_of(folder->number()));
  throw_name_failure(failure, "creating the shared storage", name, std::move(facts));
}

// Visits every file of the directory that could be a storage; none when the directory does not exist.
template <class See>
void for_each_name(See see) {
  const NamesFolder where;
  const Result<os::Descriptor> folder = where.open(false);
  if (!folder && folder.failure().code == ErrorCode::not_found) return;
  if (!folder) throw_name_failure(folder.failure(), "listing the named storages of", where.path());
  for (const std::string& name : value_or_throw(os::names_in(folder->number()), "listing named storages")) {
    if (!name.starts_with('.')) see(folder->number(), name);
  }
}

}  // namespace

Storage create_shared(std::string_view name, const Shape& shape, DType dtype, Site site) {
  const std::string chosen = name.empty() ? fresh_name() : std::string(name);
  require_name(chosen, "creating the shared storage");
  const std::uint64_t bytes = shape.size_bytes(dtype);
  const StorageLayout layout{.dtype = dtype, .shape = shape, .strides = Strides::contiguous(shape)};
  Result<std::unique_ptr<NamedFile>> file = NamedFile::create(chosen, layout, bytes);
  if (!file) throw_not_created(file.failure(), chosen, bytes);
  return storage_over(std::move(*file), false, site);
}

Storage open_shared(std::string_view name, const ImportOptions& options, Site site) {
  require_name(name, "opening the shared storage");
  Result<std::unique_ptr<NamedFile>> file = NamedFile::open(std::string(name), options.read_only);
  if (!file) throw_name_failure(file.failure(), "opening the shared storage", name);
  return storage_over(std::move(*file), options.read_only, site);
}

bool unlink_shared(std::string_view name) {
  require_name(name, "unlinking the shared storage");
  const Result<bool> done = NamedFile::unlink(std::string(name));
  if (!done) throw_name_failure(done.failure(), "unlinking the shared storage", name);
  return *done;
}

std::string shared_name(const Storage& storage) {
  const NameGuard* const guard = guard_of(storage);
  return guard == nullptr ? std::string() : guard->file().name();
}

bool NamedShared::is_dead() const noexcept {
  return is_ours && std::ranges::none_of(holders, [](const SharedHolder& holder) { return holder.is_alive; });
}

std::vector<NamedShared> list_shared() {
  std::vector<NamedShared> all;
  for_each_name([&](int folder, const std::string& name) {
    const Result<NamedFile::Found> found = NamedFile::look(folder, name, false);
    if (found)
      all.push_back(found->facts);
    else if (found.failure().code != ErrorCode::not_found)
      all.push_back({.name = name, .is_ours = false, .problem = found.failure().why});
  });
  return all;
}

std::vector<NamedShared> reap_named() {
  std::vector<NamedShared> removed;
  for_each_name([&](int folder, const std::string& name) {
    const Result<NamedFile::Found> found = NamedFile::look(folder, name, true);
    if (found && found->removed) removed.push_back(found->facts);
  });
  NamesFolder().remove_if_empty();
  return removed;
}

}  // namespace berth
