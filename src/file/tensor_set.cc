// SPDX-License-Identifier: Apache-2.0
#include "file/tensor_set.h"

#include <algorithm>
#include <utility>

#include "base/text.h"
#include "berth/base/error.h"
#include "file/tensors.h"

namespace berth::internal::file {

TensorSet::TensorSet(std::string path, std::vector<TensorEntry> entries, NameIndex names, std::vector<TensorFile> files,
                     std::vector<std::shared_ptr<const OpenFile>> open)
    : path_(std::move(path)),
      entries_(std::move(entries)),
      names_(std::move(names)),
      files_(std::move(files)),
      open_(std::move(open)),
      mapped_(open_.size()) {}

const TensorEntry* TensorSet::find(std::string_view name) const noexcept {
  const auto found = names_.find(name, [&](std::size_t i) -> std::string_view { return entries_[i].name; });
  return found ? &entries_[*found] : nullptr;
}

const TensorEntry& TensorSet::at(std::string_view name) const {
  if (const TensorEntry* const found = find(name)) return *found;
  throw AccessError(ErrorCode::not_found,
                    {text::join("the tensor ", text::quoted(name), " of ", text::quoted(path_)),
                     text::join("none of its ", entries_.size(), " tensors has that name"), "entries() and berth inspect list them"},
                    {{"name", text::printable(name)}, {"path", text::printable(path_, 4096)}});
}

// Maps outside the lock: if two threads race to be first, one mapping is kept and the other is unmapped.
Buffer TensorSet::mapped(std::size_t index) const {
  {
    const os::Lock lock(mutex_);
    if (mapped_[index]) return mapped_[index];
  }
  Buffer made = map_whole(open_[index]);
  const os::Lock lock(mutex_);
  if (!mapped_[index]) std::swap(mapped_[index], made);
  return mapped_[index];
}

Storage TensorSet::tensor(const TensorEntry& entry) const { return tensor_over(mapped(entry.file), *open_[entry.file], entry); }
Storage TensorSet::bytes(const TensorEntry& entry) const { return bytes_over(mapped(entry.file), *open_[entry.file], entry); }
Storage TensorSet::read(const TensorEntry& entry, const AllocatorRef& where) const { return read_tensor(*open_[entry.file], entry, where); }

FileState TensorSet::state() const {
  FileState worst = FileState::current;
  for (const std::shared_ptr<const OpenFile>& one : open_) worst = std::max(worst, one->state());
  return worst;
}

}  // namespace berth::internal::file
