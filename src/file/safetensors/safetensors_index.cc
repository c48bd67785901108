// SPDX-License-Identifier: Apache-2.0
#include "file/safetensors/safetensors_index.h"

#include <algorithm>
#include <utility>

#include "base/text.h"
#include "file/safetensors/json_reader.h"

namespace berth::internal::file {

namespace {

// Whether no component of the path is empty, "." or "..".
bool stays_inside(std::string_view path) noexcept {
  for (std::string_view rest = path;;) {
    const std::size_t end = std::min(rest.find('/'), rest.size());
    const std::string_view part = rest.substr(0, end);
    if (part.empty() || part == "." || part == "..") return false;
    if (end == rest.size()) return true;
    rest.remove_prefix(end + 1);
  }
}

class IndexParser {
 public:
  IndexParser(const JsonText& json, const SafetensorsOptions& options, std::string_view path)
      : options_(options), path_(path), reader_(json, path, 0) {}

  SafetensorsIndex run() {
    reader_.read(" \t\r\n", [&](std::string_view key, lazy::value value) {
      if (key == "weight_map")
        read_map(value);
      else if (key == "metadata")
        read_metadata(value);
      else if (options_.lax)
        reader_.skip(value);
      else
        reader_.refuse("member_unknown", text::join("an index has no member called ", text::quoted(key)));
    });
    if (!has_map_) reader_.refuse("member_missing", "there is no weight_map");
    number_shards();
    check_names();
    return std::move(index_);
  }

 private:
  void read_map(lazy::value value) {
    if (std::exchange(has_map_, true)) reader_.refuse("duplicate_key", "weight_map appears twice");
    reader_.each_member(value, "weight_map", [&](std::string_view name, lazy::value file) {
      reader_.about(name);
      const std::string_view shard = reader_.text(file, "the name of a file");
      if (!stays_inside(shard)) {
        reader_.refuse("path_escape", text::join("the file ", text::quoted(shard), " is not inside the folder of the index"),
                       ErrorCode::path_escape);
      }
      index_.rows.push_back({std::string(name), 0});
      files_.emplace_back(shard);  // valid as long as the reader
    });
    reader_.about({});
  }

  void read_metadata(lazy::value value) {
    if (std::exchange(has_metadata_, true)) reader_.refuse("duplicate_key", "metadata appears twice");
    reader_.each_member(value, "metadata", [&](std::string_view key, lazy::value member) {
      if (key != "total_size" || options_.lax) return reader_.skip(member);
      if (index_.total_bytes) reader_.refuse("duplicate_key", "total_size appears twice");
      index_.total_bytes = reader_.whole(member, "total_size");
    });
  }

  void number_shards() {
    std::vector<std::string_view> sorted = files_;
    std::sort(sorted.begin(), sorted.end());
    sorted.erase(std::unique(sorted.begin(), sorted.end()), sorted.end());
    index_.shards.assign(sorted.begin(), sorted.end());
    for (std::size_t i = 0; i < files_.size(); ++i) {
      const auto found = std::lower_bound(sorted.begin(), sorted.end(), files_[i]);
      index_.rows[i].shard = static_cast<std::size_t>(found - sorted.begin());
    }
  }

  void check_names() {
    const auto name_of = [&](std::size_t i) -> std::string_view { return index_.rows[i].name; };
    index_.names = NameIndex(index_.rows.size(), name_of);
    const auto twice = index_.names.duplicate(name_of);
    if (twice) throw_fault(path_, {.rule = "duplicate_key", .why = "the tensor appears twice", .name = name_of(*twice)});
  }

  const SafetensorsOptions& options_;
  std::string_view path_;
  JsonReader reader_;
  SafetensorsIndex index_;
  std::vector<std::string_view> files_;  // of each row
  bool has_map_ = false;
  bool has_metadata_ = false;
};

}  // namespace

const SafetensorsIndex::Row* SafetensorsIndex::find(std::string_view name) const noexcept {
  const auto found = names.find(name, [&](std::size_t i) -> std::string_view { return rows[i].name; });
  return found ? &rows[*found] : nullptr;
}

SafetensorsIndex parse_safetensors_index(const JsonText& json, const SafetensorsOptions& options, std::string_view path) {
  return IndexParser(json, options, path).run();
}

}  // namespace berth::internal::file
