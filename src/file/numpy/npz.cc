// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <utility>
#include <vector>

#include "base/text.h"
#include "berth/base/error.h"
#include "berth/file/npy.h"
#include "file/errors.h"
#include "file/name_index.h"
#include "file/numpy/crc32.h"
#include "file/numpy/npy_array.h"
#include "file/numpy/npy_header.h"
#include "file/numpy/npz_inside.h"
#include "file/numpy/zip.h"
#include "file/tensor_set.h"

namespace berth {

using namespace internal;

using namespace internal::file;

namespace {

constexpr std::string_view kEnding = ".npy";
constexpr std::size_t kAlignment = 64;  // of an array in the archive, and so of its elements

struct Archive {
  std::vector<ZipMember> members;
  std::vector<TensorEntry> entries;  // one for each
};

Archive read_archive(const OpenFile& file) {
  Archive archive;
  archive.members =
      parse_zip([&](std::uint64_t offset, std::span<std::byte> target) { file.read(offset, target); }, file.bytes(), file.path());
  archive.entries.reserve(archive.members.size());
  for (const ZipMember& member : archive.members) {
    std::string_view name = member.name;
    if (!name.ends_with(kEnding)) {
      throw_fault(file.path(),
                  {.rule = "not_npy", .why = "it is not an array: its name does not end in .npy", .offset = member.offset, .name = name});
    }
    name.remove_suffix(kEnding.size());
    const NpyPosition position{.path = file.path(), .offset = member.offset, .bytes = member.bytes, .name = name};
    archive.entries.push_back(parse_npy(read_front(file, member.offset, member.bytes), position));
  }
  return archive;
}

void require_array_name(const std::string& name) {
  require_text_name(name, "writing the array");
  constexpr std::size_t kMostBytes = UINT16_MAX - 4;  // followed by ".npy"
  if (name.size() > kMostBytes) {
    throw ArgumentError(ErrorCode::invalid_name,
                        {text::join("writing an array whose name has ", name.size(), " bytes"),
                         text::join("a name in an archive has at most ", kMostBytes), "use a shorter one"},
                        {{"bytes", name.size()}, {"limit", kMostBytes}});
  }
  if (!name.empty() && name.find('/') == std::string::npos && name.find("..") == std::string::npos) return;
  throw ArgumentError(ErrorCode::invalid_name,
                      {text::join("writing the array ", text::quoted(name)), "tools that unpack archives make files of such names",
                       "use names without '/' and \"..\""},
                      {{"name", text::printable(name)}});
}

void require_array_names(std::span<const NamedTensor> arrays) {
  for (const NamedTensor& one : arrays) require_array_name(one.name);
  const auto name_of = [&](std::size_t i) -> std::string_view { return arrays[i].name; };
  if (const auto twice = NameIndex(arrays.size(), name_of).duplicate(name_of)) {
    throw ArgumentError(ErrorCode::duplicate_value,
                        {text::join("writing the array ", text::quoted(name_of(*twice))), "another has that name", "use each name once"},
                        {{"name", text::printable(name_of(*twice))}});
  }
}

// Of the whole file. Its layout does not depend on the checksums.
std::uint64_t archive_bytes(std::span<const NamedTensor> arrays) {
  ZipLayout layout;
  for (const NamedTensor& one : arrays) layout.add(one.name + std::string(kEnding), npy_bytes(one.storage, one.name), 0, kAlignment);
  return layout.directory_offset() + layout.directory().size();
}

}  // namespace

struct NpzFile::State {
  State(const std::string& path, Archive archive, const std::shared_ptr<const OpenFile>& file)
      : members(std::move(archive.members)),
        set(path, std::move(archive.entries),
            NameIndex(members.size(),
                      [&](std::size_t i) { return std::string_view(members[i].name).substr(0, members[i].name.size() - kEnding.size()); }),
            {{.path = path, .size_bytes = file->bytes(), .data_offset = 0}}, {file}) {}

  const std::vector<ZipMember> members;  // parallel to the entries
  const TensorSet set;
};

std::span<const TensorEntry> NpzFile::entries() const noexcept { return state_->set.entries(); }
std::span<const TensorFile> NpzFile::files() const noexcept { return state_->set.files(); }
const std::string& NpzFile::path() const noexcept { return state_->set.path(); }
const TensorEntry* NpzFile::find(std::string_view name) const noexcept { return state_->set.find(name); }
Storage NpzFile::operator[](std::string_view name) const { return state_->set.tensor(state_->set.at(name)); }
Storage NpzFile::operator[](const TensorEntry& entry) const { return state_->set.tensor(state_->set.at(entry.name)); }
Storage NpzFile::bytes(std::string_view name) const { return state_->set.bytes(state_->set.at(name)); }
Storage NpzFile::bytes(const TensorEntry& entry) const { return state_->set.bytes(state_->set.at(entry.name)); }
Storage NpzFile::read(std::string_view name, const AllocatorRef& where) const { return state_->set.read(state_->set.at(name), where); }
Storage NpzFile::read(const TensorEntry& entry, const AllocatorRef& where) const {
  return state_->set.read(state_->set.at(entry.name), where);
}
FileState NpzFile::state() const { return state_->set.state(); }

void NpzFile::verify() const {
  std::vector<std::byte> piece(std::size_t{1} << 20);
  const OpenFile& file = state_->set.file(0);
  for (std::size_t i = 0; i < state_->members.size(); ++i) {
    const ZipMember& member = state_->members[i];
    std::uint32_t sum = 0;
    for (std::uint64_t done = 0; done < member.bytes;) {
      const std::span part = std::span(piece).first(static_cast<std::size_t>(std::min<std::uint64_t>(piece.size(), member.bytes - done)));
      file.read(member.offset + done, part);
      sum = crc32(part, sum);
      done += part.size();
    }
    if (sum != member.crc) {
      throw_fault(path(), {.rule = "checksum",
                           .why = text::join("its CRC-32 is ", text::hex(sum), ", and should be ", text::hex(member.crc),
                                             ": its bytes are damaged"),
                           .offset = member.offset,
                           .name = entries()[i].name});
    }
  }
}

NpzFile NpzInside::open(const std::string& path) {
  const auto file = OpenFile::open(path, os::OpenFor::read, "opening");
  return NpzFile(std::make_shared<const NpzFile::State>(path, read_archive(*file), file));
}

const TensorSet& NpzInside::set(const NpzFile& file) noexcept { return file.state_->set; }

NpzFile open_npz(const std::string& path) { return NpzInside::open(path); }

void save_npz(const std::string& path, std::span<const NamedTensor> arrays) {
  require_array_names(arrays);
  OutputFile file(path, archive_bytes(arrays));
  ZipLayout layout;
  for (const NamedTensor& one : arrays) {
    const NpyArray parts(one.storage, one.name);
    const std::uint32_t sum = parts.elements().crc32(crc32(std::as_bytes(std::span(parts.header()))));
    const std::uint64_t begin = layout.add(one.name + std::string(kEnding), parts.size_bytes(), sum, kAlignment);
    file.write(layout.local_offset(), layout.local_header());
    file.write(begin, std::string_view(parts.header()));
    parts.elements().write_to(file, begin + parts.header().size());
  }
  file.write(layout.directory_offset(), layout.directory());
  file.commit();
}

void save_npz(const std::string& path, std::initializer_list<NamedTensor> arrays) {
  save_npz(path, std::span(arrays.begin(), arrays.size()));
}

}  // namespace berth
