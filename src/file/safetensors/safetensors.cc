// SPDX-License-Identifier: Apache-2.0
#include "berth/file/safetensors.h"

#include <algorithm>
#include <utility>

#include "base/text.h"
#include "berth/base/checked.h"
#include "file/errors.h"
#include "file/safetensors/json_text.h"
#include "file/safetensors/safetensors_header.h"
#include "file/safetensors/safetensors_index.h"
#include "file/safetensors/safetensors_inside.h"
#include "file/tensor_set.h"

namespace berth {

using namespace internal;

using namespace internal::file;

namespace {

// One open file with its parsed header.
struct Opened {
  std::shared_ptr<const OpenFile> file;
  SafetensorsHeader header;

  TensorFile facts() const { return {.path = file->path(), .size_bytes = file->bytes(), .data_offset = header.data_offset}; }
};

JsonText read_text(const OpenFile& file, std::uint64_t offset, std::uint64_t bytes) {
  JsonText text(checked_narrow<std::size_t>(bytes, "the bytes of the header"));
  file.read(offset, std::as_writable_bytes(std::span(text.data(), text.size())));
  return text;
}

Opened read_header(std::shared_ptr<const OpenFile> file, const SafetensorsOptions& options) {
  char first[kSafetensorsLengthBytes];
  const auto there = static_cast<std::size_t>(std::min<std::uint64_t>(sizeof first, file->bytes()));
  file->read(0, std::as_writable_bytes(std::span(first, there)));
  const std::uint64_t bytes = safetensors_header_bytes({first, there}, file->bytes(), file->path());
  const JsonText text = read_text(*file, kSafetensorsLengthBytes, bytes);
  SafetensorsHeader header = parse_safetensors(text, file->bytes(), options, file->path());
  return {std::move(file), std::move(header)};
}

std::uint64_t sum_of(const std::vector<TensorEntry>& entries) noexcept {
  std::uint64_t sum = 0;  // cannot overflow: the ranges are disjoint parts of files
  for (const TensorEntry& entry : entries) sum += entry.size_bytes;
  return sum;
}

// Assembles a model from several files.
class ShardedModel {
 public:
  ShardedModel(const OpenFile& file, const SafetensorsOptions& options) : path_(file.path()), options_(options) {
    if (file.bytes() > kMostHeaderBytes) {
      throw_fault(path_, {.rule = "header_limit",
                          .why = text::join("an index of ", file.bytes(), " bytes is too long: at most ", kMostHeaderBytes, " are read"),
                          .help = "check that it is the index of a model",
                          .code = ErrorCode::limit_exceeded});
    }
    const JsonText text = read_text(file, 0, file.bytes());
    index_ = parse_safetensors_index(text, options, path_);
  }

  void open_shards() {
    const std::string folder = path_.substr(0, path_.rfind('/') + 1);  // "" if there is none
    for (const std::string& shard : index_.shards) {
      Result<std::shared_ptr<const OpenFile>> file = OpenFile::try_open(folder + shard, os::OpenFor::read);
      if (!file && file.failure().code == ErrorCode::not_found)
        refuse("missing_shard", text::join("there is no file ", text::quoted(shard)));
      add(read_header(value_or_throw(std::move(file), "opening", folder + shard), options_));
    }
    check();
  }

  std::vector<TensorEntry> entries;
  std::vector<TensorFile> files;
  std::vector<std::shared_ptr<const OpenFile>> open;
  SafetensorsFile::Metadata metadata;

 private:
  [[noreturn]] void refuse(std::string_view rule, std::string why, std::optional<std::string_view> name = {}) const {
    throw_fault(path_, {.rule = rule, .why = std::move(why), .help = "get all files of the model again", .name = name});
  }

  void add(Opened shard) {
    const std::size_t number = open.size();
    if (number == 0) metadata = std::move(shard.header.metadata);
    for (TensorEntry& entry : shard.header.entries) {
      const SafetensorsIndex::Row* const row = index_.find(entry.name);
      if (row == nullptr && options_.lax) continue;
      if (row == nullptr)
        refuse("not_in_index", text::join("the index does not name a tensor of ", text::quoted(shard.file->path())), entry.name);
      if (row->shard != number)
        refuse("duplicate_tensor", text::join("it is in ", text::quoted(shard.file->path()), " too, and the index names another file"),
               entry.name);
      entry.file = number;
      entries.push_back(std::move(entry));
    }
    files.push_back(shard.facts());
    open.push_back(std::move(shard.file));
  }

  void check() const {
    // Each tensor found is in the index once, so tensors are missing exactly if the counts differ.
    if (entries.size() != index_.rows.size()) {
      const auto name_of = [&](std::size_t i) -> std::string_view { return entries[i].name; };
      const NameIndex names(entries.size(), name_of);
      for (const SafetensorsIndex::Row& row : index_.rows) {
        if (!names.find(row.name, name_of))
          refuse("missing_tensor", text::join("it is not in ", text::quoted(index_.shards[row.shard]), ", where the index says"), row.name);
      }
    }
    const std::uint64_t sum = sum_of(entries);
    if (index_.total_bytes && *index_.total_bytes != sum)
      refuse("total_size", text::join("the index says that all tensors have ", *index_.total_bytes, " bytes, and they have ", sum));
  }

  const std::string path_;
  const SafetensorsOptions& options_;
  SafetensorsIndex index_;
};

NameIndex index_of(const std::vector<TensorEntry>& entries) {
  return NameIndex(entries.size(), [&](std::size_t i) -> std::string_view { return entries[i].name; });
}

}  // namespace

struct SafetensorsFile::State {
  explicit State(SafetensorsInside::Parts parts)
      : tensor_bytes(sum_of(parts.entries)),
        metadata(std::move(parts.metadata)),
        set(std::move(parts.path), std::move(parts.entries), std::move(parts.names), std::move(parts.files), std::move(parts.open)) {}

  const std::uint64_t tensor_bytes;
  const Metadata metadata;
  const TensorSet set;
};

std::span<const TensorEntry> SafetensorsFile::entries() const noexcept { return state_->set.entries(); }
std::span<const TensorFile> SafetensorsFile::files() const noexcept { return state_->set.files(); }
std::uint64_t SafetensorsFile::tensor_bytes() const noexcept { return state_->tensor_bytes; }
const SafetensorsFile::Metadata& SafetensorsFile::metadata() const noexcept { return state_->metadata; }
const std::string& SafetensorsFile::path() const noexcept { return state_->set.path(); }
const TensorEntry* SafetensorsFile::find(std::string_view name) const noexcept { return state_->set.find(name); }
Storage SafetensorsFile::operator[](std::string_view name) const { return state_->set.tensor(state_->set.at(name)); }
Storage SafetensorsFile::operator[](const TensorEntry& entry) const { return state_->set.tensor(state_->set.at(entry.name)); }
Storage SafetensorsFile::bytes(std::string_view name) const { return state_->set.bytes(state_->set.at(name)); }
Storage SafetensorsFile::bytes(const TensorEntry& entry) const { return state_->set.bytes(state_->set.at(entry.name)); }
Storage SafetensorsFile::read(std::string_view name, const AllocatorRef& where) const {
  return state_->set.read(state_->set.at(name), where);
}
Storage SafetensorsFile::read(const TensorEntry& entry, const AllocatorRef& where) const {
  return state_->set.read(state_->set.at(entry.name), where);
}
FileState SafetensorsFile::state() const { return state_->set.state(); }

SafetensorsFile SafetensorsInside::make(Parts parts) {
  return SafetensorsFile(std::make_shared<const SafetensorsFile::State>(std::move(parts)));
}

const file::TensorSet& SafetensorsInside::set(const SafetensorsFile& file) noexcept { return file.state_->set; }

SafetensorsFile open_safetensors(const std::string& path, const SafetensorsOptions& options) {
  std::shared_ptr<const OpenFile> file = OpenFile::open(path, os::OpenFor::read, "opening");
  if (path.ends_with(".json")) {
    ShardedModel model(*file, options);
    model.open_shards();
    NameIndex names = index_of(model.entries);
    return SafetensorsInside::make(
        {path, std::move(model.entries), std::move(names), std::move(model.files), std::move(model.open), std::move(model.metadata)});
  }
  Opened one = read_header(std::move(file), options);
  std::vector<TensorFile> files{one.facts()};
  return SafetensorsInside::make(
      {path, std::move(one.header.entries), std::move(one.header.names), std::move(files), {one.file}, std::move(one.header.metadata)});
}

}  // namespace berth
