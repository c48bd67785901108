// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/annotations.h"
#include "berth/file/tensor_entry.h"
#include "berth/storage/create.h"
#include "file/name_index.h"
#include "file/open_file.h"
#include "os/lock/mutex.h"

namespace berth::internal::file {

// The tensors of one or more open files, by name: the state behind the handles of all formats. Immutable,
// except that each file is mapped on first access to one of its tensors. Any thread.
class TensorSet {
 public:
  // REQUIRES: no two entries have the same name; each refers to an open file, and is inside it.
  TensorSet(std::string path, std::vector<TensorEntry> entries, NameIndex names, std::vector<TensorFile> files,
            std::vector<std::shared_ptr<const OpenFile>> open);

  const std::string& path() const noexcept { return path_; }
  const std::vector<TensorEntry>& entries() const noexcept { return entries_; }
  const std::vector<TensorFile>& files() const noexcept { return files_; }
  const OpenFile& file(std::size_t index) const noexcept { return *open_[index]; }
  const TensorEntry* find(std::string_view name) const noexcept;
  // Throws AccessError(not_found).
  const TensorEntry& at(std::string_view name) const;

  Storage tensor(const TensorEntry& entry) const;
  Storage bytes(const TensorEntry& entry) const;
  Storage read(const TensorEntry& entry, const AllocatorRef& where) const;
  FileState state() const;

 private:
  Buffer mapped(std::size_t index) const;

  const std::string path_;
  const std::vector<TensorEntry> entries_;
  const NameIndex names_;
  const std::vector<TensorFile> files_;
  const std::vector<std::shared_ptr<const OpenFile>> open_;
  mutable os::Mutex mutex_;
  mutable std::vector<Buffer> mapped_ BERTH_GUARDED_BY(mutex_);  // by file; empty: not mapped yet
};

}  // namespace berth::internal::file
