// SPDX-License-Identifier: Apache-2.0
#include "file/safetensors/safetensors_header.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "base/text.h"
#include "berth/base/checked.h"
#include "file/errors.h"
#include "file/safetensors/json_reader.h"
#include "file/safetensors/safetensors_dtypes.h"

namespace berth::internal::file {

namespace {

class HeaderParser {
 public:
  HeaderParser(const JsonText& json, std::uint64_t file_bytes, const SafetensorsOptions& options, std::string_view path)
      : json_(json), options_(options), path_(path), reader_(json, path, kSafetensorsLengthBytes) {
    header_.data_offset = kSafetensorsLengthBytes + json.size();
    data_bytes_ = file_bytes - header_.data_offset;
  }

  SafetensorsHeader run() {
    if (json_.size() == 0 || json_.data()[0] != '{') {
      fault({.rule = "header_start", .why = "the header does not begin with {", .offset = kSafetensorsLengthBytes});
    }
    header_.entries.reserve(std::min<std::size_t>(json_.size() / 64, 1 << 16));
    reader_.read(" ", [&](std::string_view name, lazy::value value) {
      if (name == "__metadata__")
        read_metadata(value);
      else
        read_tensor(name, value);
    });
    sort_by_offset();
    check_names();
    check_layout();
    return std::move(header_);
  }

 private:
  // The members of a tensor, which may come in any order.
  struct Members {
    bool dtype = false;
    bool shape = false;
    bool offsets = false;
    const SafetensorsDType* known = nullptr;  // null: an unknown dtype, in lax mode
    std::uint64_t begin = 0;
    std::uint64_t end = 0;
  };

  [[noreturn]] void fault(Fault broken) const { throw_fault(path_, std::move(broken)); }

  void read_metadata(lazy::value value) {
    if (std::exchange(has_metadata_, true)) reader_.refuse("duplicate_key", "__metadata__ appears twice");
    reader_.each_member(value, "__metadata__", [&](std::string_view key, lazy::value text) {
      header_.metadata.emplace_back(key, reader_.text(text, "a value of __metadata__"));
    });
    const auto name_of = [&](std::size_t i) -> std::string_view { return header_.metadata[i].first; };
    const auto twice = NameIndex(header_.metadata.size(), name_of).duplicate(name_of);
    if (twice) reader_.refuse("duplicate_key", text::join("__metadata__ has ", text::quoted(name_of(*twice)), " twice"));
  }

  void read_tensor(std::string_view name, lazy::value value) {
    TensorEntry& entry = header_.entries.emplace_back();
    entry.name = name;
    reader_.about(name);
    Members members;
    reader_.each_member(value, "a tensor", [&](std::string_view key, lazy::value member) { read_member(key, member, entry, members); });
    if (!members.dtype || !members.shape || !members.offsets) {
      const char* const missing = !members.dtype ? "dtype" : !members.shape ? "shape" : "data_offsets";
      reader_.refuse("member_missing", text::join("the tensor has no ", std::string_view(missing)));
    }
    check_tensor(entry, members);
  }

  void read_member(std::string_view key, lazy::value value, TensorEntry& entry, Members& members) {
    if (key == "dtype") {
      once(members.dtype, key);
      read_dtype(value, entry, members);
    } else if (key == "shape") {
      once(members.shape, key);
      read_shape(value, entry);
    } else if (key == "data_offsets") {
      once(members.offsets, key);
      read_offsets(value, members);
    } else if (options_.lax) {
      reader_.skip(value);
    } else {
      reader_.refuse("member_unknown", text::join("a tensor has no member called ", text::quoted(key)));
    }
  }

  void once(bool& seen, std::string_view key) {
    if (std::exchange(seen, true)) reader_.refuse("duplicate_key", text::join("the tensor has ", key, " twice"));
  }

  void read_dtype(lazy::value value, TensorEntry& entry, Members& members) {
    const std::string_view name = reader_.text(value, "dtype");
    members.known = find_safetensors_dtype(name);
    if (members.known == nullptr && !options_.lax)
      reader_.refuse("dtype", text::join("the format has no dtype ", text::quoted(name)), ErrorCode::unsupported_dtype);
    if (members.known != nullptr) entry.dtype = members.known->dtype;
    entry.format_dtype = name;
  }

  void read_shape(lazy::value value, TensorEntry& entry) {
    std::int64_t dims[kMaxRank];
    std::size_t rank = 0;
    reader_.each_item(value, "shape", [&](lazy::value item) {
      const std::optional<std::int64_t> dim = try_narrow<std::int64_t>(reader_.whole(item, "a dimension"));
      if (!dim) reader_.refuse("shape", "a dimension does not fit in 63 bits");
      if (rank == kMaxRank) reader_.refuse("rank", text::join("it has more than ", kMaxRank, " dimensions"), ErrorCode::limit_exceeded);
      dims[rank++] = *dim;
    });
    entry.shape = Shape(std::span<const std::int64_t>(dims, rank));
  }

  void read_offsets(lazy::value value, Members& members) {
    std::size_t count = 0;
    reader_.each_item(value, "data_offsets", [&](lazy::value item) {
      const std::uint64_t offset = reader_.whole(item, "an offset");
      if (count == 0) members.begin = offset;
      if (count == 1) members.end = offset;
      ++count;
    });
    if (count != 2) reader_.refuse("offsets", text::join("data_offsets must be two numbers, and there are ", count));
    if (members.begin > members.end)
      reader_.refuse("offsets", text::join("the tensor begins at ", members.begin, " and ends before that, at ", members.end));
  }

  void check_tensor(TensorEntry& entry, const Members& members) {
    const std::uint64_t length = members.end - members.begin;
    if (!fits(members.begin, length, data_bytes_)) {
      fault({.rule = "file_truncated",
             .why = text::join("its bytes end at ", members.end, " of the data, and the file has ", data_bytes_, " of them"),
             .help = "get the file again: it was truncated, or its header is of another file",
             .code = ErrorCode::file_truncated,
             .name = entry.name,
             .facts = {{"have", data_bytes_}, {"need", members.end}}});
    }
    if (members.known != nullptr) {
      const std::optional<std::uint64_t> need = packed_bytes(entry.shape, members.known->bits);
      if (!need || *need != length) refuse_size(entry, length, need);
    }
    entry.file_offset = header_.data_offset + members.begin;
    entry.size_bytes = length;
  }

  [[noreturn]] void refuse_size(const TensorEntry& entry, std::uint64_t have, std::optional<std::uint64_t> need) const {
    const std::string wanted =
        need ? text::join("takes ", *need, " bytes") : std::string("is not a whole number of bytes, or does not fit in 64 bits");
    fault(
        {.rule = "size_mismatch",
         .why = text::join(entry.shape.to_string(), " of ", text::printable(entry.format_dtype), ' ', wanted, ", and its range has ", have),
         .code = ErrorCode::size_mismatch,
         .name = entry.name,
         .facts = {{"have", have}}});
  }

  void sort_by_offset() {
    const auto before = [](const TensorEntry& a, const TensorEntry& b) {
      return a.file_offset != b.file_offset ? a.file_offset < b.file_offset : a.size_bytes < b.size_bytes;
    };
    if (!std::is_sorted(header_.entries.begin(), header_.entries.end(), before))
      std::stable_sort(header_.entries.begin(), header_.entries.end(), before);
  }

  // Requires that the tensors are back to back from the end of the header to the end of the file.
  void check_layout() const {
    std::uint64_t at = header_.data_offset;
    for (const TensorEntry& entry : header_.entries) {
      if (entry.file_offset != at) refuse_offset(entry, at);
      at += entry.size_bytes;  // inside the file: check_tensor checked it
    }
    const std::uint64_t end = header_.data_offset + data_bytes_;
    if (at != end) {
      fault({.rule = "trailing_bytes", .why = text::join(end - at, " bytes after the last tensor belong to none"), .offset = at});
    }
  }

  [[noreturn]] void refuse_offset(const TensorEntry& entry, std::uint64_t expected) const {
    const bool overlap = entry.file_offset < expected;
    fault({.rule = overlap ? std::string_view("overlap") : std::string_view("hole"),
           .why = overlap ? text::join("it begins ", expected - entry.file_offset, " bytes before the end of the previous tensor")
                          : text::join(entry.file_offset - expected, " bytes before it belong to no tensor"),
           .offset = entry.file_offset,
           .name = entry.name});
  }

  void check_names() {
    const auto name_of = [&](std::size_t i) -> std::string_view { return header_.entries[i].name; };
    header_.names = NameIndex(header_.entries.size(), name_of);
    const auto twice = header_.names.duplicate(name_of);
    if (twice) fault({.rule = "duplicate_key", .why = "two tensors have that name", .name = name_of(*twice)});
  }

  const JsonText& json_;
  const SafetensorsOptions& options_;
  std::string_view path_;
  JsonReader reader_;
  SafetensorsHeader header_;
  std::uint64_t data_bytes_ = 0;
  bool has_metadata_ = false;
};

}  // namespace

std::uint64_t safetensors_header_bytes(std::string_view first, std::uint64_t file_bytes, std::string_view path) {
  if (first.size() < kSafetensorsLengthBytes || file_bytes <= kSafetensorsLengthBytes) {
    throw_fault(path, {.rule = "too_small",
                       .why = text::join("the file has ", file_bytes, " bytes, and a header alone takes more than 8"),
                       .help = "get the file again: it is empty, or was truncated"});
  }
  std::uint64_t bytes = 0;
  for (std::size_t i = kSafetensorsLengthBytes; i-- > 0;) bytes = bytes << 8 | static_cast<unsigned char>(first[i]);
  if (bytes > kMostHeaderBytes) {
    throw_fault(path, {.rule = "header_limit",
                       .why = text::join("the header would be ", bytes, " bytes long, and at most ", kMostHeaderBytes, " are read"),
                       .help = "check that it is a safetensors file",
                       .code = ErrorCode::limit_exceeded,
                       .offset = 0});
  }
  if (!fits(kSafetensorsLengthBytes, bytes, file_bytes)) {
    throw_fault(path, {.rule = "header_length",
                       .why = text::join("the header would be ", bytes, " bytes long, and the file has ", file_bytes),
                       .help = "get the file again: it was truncated, or is not a safetensors file",
                       .code = ErrorCode::file_truncated,
                       .offset = 0,
                       .facts = {{"have", file_bytes}, {"need", kSafetensorsLengthBytes + bytes}}});
  }
  return bytes;
}

SafetensorsHeader parse_safetensors(const JsonText& json, std::uint64_t file_bytes, const SafetensorsOptions& options,
                                    std::string_view path) {
  return HeaderParser(json, file_bytes, options, path).run();
}

}  // namespace berth::internal::file
