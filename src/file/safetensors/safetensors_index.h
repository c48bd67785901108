// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "berth/file/safetensors.h"
#include "file/name_index.h"

// The index of a sharded model (a model in several files):
//
//     {"metadata": {"total_size": 1234}, "weight_map": {"layer.0.weight": "model-00001-of-00002.safetensors", …}}
//
// File names are untrusted: they are relative to the directory of the index, and must not lead out of it.
// Parsing is a pure function; any thread.
namespace berth::internal::file {

class JsonText;

struct SafetensorsIndex {
  struct Row {
    std::string name;   // of the tensor
    std::size_t shard;  // index into `shards`
  };
  std::vector<std::string> shards;  // sorted, without duplicates
  std::vector<Row> rows;            // in the order of the file
  NameIndex names;                  // of the rows; no two are equal
  std::optional<std::uint64_t> total_bytes = {};

  const Row* find(std::string_view name) const noexcept;
};

// Throws FormatError: path_escape for a name that leads out of the directory; format_error for the rest.
SafetensorsIndex parse_safetensors_index(const JsonText& json, const SafetensorsOptions& options, std::string_view path);

}  // namespace berth::internal::file
