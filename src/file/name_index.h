// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

namespace berth::files {

// Finds names by binary search over their hashes. Building it costs n log n whatever the names are: names that were made to have equal hashes
// are ordered among themselves, and gain nothing.
class NameIndex {
 public:
  NameIndex() = default;
  // `name_of(i)` for each i below `count` must stay where it is.
  template <class NameOf>
  NameIndex(std::size_t count, NameOf name_of) {
    rows_.reserve(count);
    for (std::size_t i = 0; i < count; ++i) rows_.push_back({std::hash<std::string_view>()(name_of(i)), i});
    std::sort(rows_.begin(), rows_.end(), [&](const Row& a, const Row& b) {
      return a.hash != b.hash ? a.hash < b.hash : std::string_view(name_of(a.at)) < std::string_view(name_of(b.at));
    });
  }

  // One of two that are equal; the later in the order of numbers.
  template <class NameOf>
  std::optional<std::size_t> duplicate(NameOf name_of) const {
    for (std::size_t i = 1; i < rows_.size(); ++i) {
      if (rows_[i].hash == rows_[i - 1].hash && std::string_view(name_of(rows_[i].at)) == std::string_view(name_of(rows_[i - 1].at)))
        return std::max(rows_[i].at, rows_[i - 1].at);
    }
    return std::nullopt;
  }

  template <class NameOf>
  std::optional<std::size_t> find(std::string_view name, NameOf name_of) const {
    const std::size_t hash = std::hash<std::string_view>()(name);
    auto row = std::lower_bound(rows_.begin(), rows_.end(), hash, [](const Row& a, std::size_t wanted) { return a.hash < wanted; });
    for (; row != rows_.end() && row->hash == hash; ++row) {
      if (std::string_view(name_of(row->at)) == name) return row->at;
    }
    return std::nullopt;
  }

 private:
  struct Row {
    std::size_t hash;
    std::size_t at;
  };
  std::vector<Row> rows_;  // by hash, then by name
};

}  // namespace berth::files
