// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "berth/file/safetensors.h"
#include "file/name_index.h"

// The index of a model in several files (shards):
//
//     {"metadata": {"total_size": 1234}, "weight_map": {"layer.0.weight": "model-00001-of-00002.safetensors", …}}
//
// The names of files come from outside: they are relative to the folder of the index, and none leads out of it.
namespace berth::internal::file {

class JsonText;

struct SafetensorsIndex {
  struct Row {
    std::string name;   // of the tensor
    std::size_t shard;  // where it is
  };
  std::vector<std::string> shards;  // in order, each once
  std::vector<Row> rows;            // as they stand there
  NameIndex names;                  // of the rows; no two are equal
  std::optional<std::uint64_t> total_bytes = {};

  const Row* find(std::string_view name) const noexcept;
};

// Throws FormatError: path_escape for a name that leads out of the folder; format_error for the rest.
SafetensorsIndex parse_safetensors_index(const JsonText& json, const SafetensorsOptions& options, std::string_view path);

}  // namespace berth::internal::file
