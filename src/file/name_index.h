// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <functional>
#include <optional>
#include <string_view>
#include <vector>

namespace berth::internal::file {

// A hash index of names. Rows are grouped into buckets by the highest bits of the hash, about one row per
// bucket, and sorted inside a bucket. Building it takes O(n), or O(n log n) for names crafted to collide, so
// that such an attack gains nothing. `name_of(i)` returns name number i as a string_view, the same at each
// call. Immutable; any thread.
class NameIndex {
 public:
  NameIndex() = default;

  template <class NameOf>
  NameIndex(std::size_t count, NameOf name_of)
      : shift_(64 - static_cast<int>(std::bit_width(count | 1))), begins_((std::size_t{1} << (64 - shift_)) + 1), rows_(count) {
    std::vector<Row> unsorted;
    unsorted.reserve(count);
    for (std::size_t i = 0; i < count; ++i) {
      unsorted.push_back({hash_of(name_of(i)), i});
      ++begins_[bucket_of(unsorted.back().hash) + 1];
    }
    for (std::size_t b = 1; b < begins_.size(); ++b) begins_[b] += begins_[b - 1];
    std::vector<std::size_t> next(begins_.begin(), begins_.end() - 1);
    for (const Row& row : unsorted) rows_[next[bucket_of(row.hash)]++] = row;
    const auto before = [&](const Row& a, const Row& b) { return a.hash != b.hash ? a.hash < b.hash : name_of(a.at) < name_of(b.at); };
    for (std::size_t b = 0; b + 1 < begins_.size(); ++b) {
      if (begins_[b + 1] - begins_[b] > 1) std::sort(begin(b), begin(b + 1), before);
    }
  }

  // The later of two equal names, if there are any.
  template <class NameOf>
  std::optional<std::size_t> duplicate(NameOf name_of) const {
    for (std::size_t i = 1; i < rows_.size(); ++i) {
      if (rows_[i].hash == rows_[i - 1].hash && name_of(rows_[i].at) == name_of(rows_[i - 1].at))
        return std::max(rows_[i].at, rows_[i - 1].at);
    }
    return std::nullopt;
  }

  template <class NameOf>
  std::optional<std::size_t> find(std::string_view name, NameOf name_of) const {
    if (rows_.empty()) return std::nullopt;
    const std::uint64_t hash = hash_of(name);
    const std::size_t bucket = bucket_of(hash);
    const Row* const end = rows_.data() + begins_[bucket + 1];
    // Also by name: many names can have one hash, if they were crafted so.
    const auto before = [&](const Row& a, std::string_view wanted) { return a.hash != hash ? a.hash < hash : name_of(a.at) < wanted; };
    const Row* const row = std::lower_bound(rows_.data() + begins_[bucket], end, name, before);
    if (row == end || row->hash != hash || name_of(row->at) != name) return std::nullopt;
    return row->at;
  }

 private:
  struct Row {
    std::uint64_t hash;
    std::size_t at;
  };

  static std::uint64_t hash_of(std::string_view name) noexcept { return std::hash<std::string_view>()(name); }
  std::size_t bucket_of(std::uint64_t hash) const noexcept { return hash >> shift_; }
  Row* begin(std::size_t bucket) noexcept { return rows_.data() + begins_[bucket]; }

  int shift_ = 63;                   // there are 2^(64 - shift_) buckets
  std::vector<std::size_t> begins_;  // the first row of each bucket, and the end of rows_
  std::vector<Row> rows_;            // sorted by bucket, hash, name
};

}  // namespace berth::internal::file
