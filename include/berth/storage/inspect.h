// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <iosfwd>
#include <optional>
#include <string>

#include "berth/export.h"
#include "berth/memory/stats.h"
#include "berth/storage/storage.h"

// A description of a storage, for people and for programs. Thread rules are those of Storage.
//
//     std::cout << inspect(x) << '\n';
//     f32 [64, 3, 224, 224] on cpu:0, 36.8 MiB, contiguous, 0x…, owned by pool (36.8 MiB in use, 1.2 MiB cached), 2 handles
namespace berth {

class JsonWriter;  // base/json.h

struct Inspection {
  DType dtype = DType::f32;
  Shape shape;
  Strides strides;
  std::int64_t offset = 0;
  Device device;
  std::size_t size_bytes = 0;         // of the elements
  std::size_t buffer_size_bytes = 0;  // of the buffer that it is a view of
  const void* pointer = nullptr;
  bool is_contiguous = false;
  bool is_read_only = false;
  bool is_pinned = false;
  bool is_shared = false;  // with other processes; see Buffer
  bool is_mapped = false;  // from a file; see Buffer
  Owner owner = Owner::none;
  std::string allocator;                 // its name; empty for external memory
  std::optional<Stats> allocator_stats;  // what it holds, for all who use it
  Tag tag;
  long use_count = 0;

  BERTH_EXPORT std::string to_string() const;
  BERTH_EXPORT void write_json(JsonWriter& json) const;
};

BERTH_EXPORT Inspection inspect(const Storage& storage);
BERTH_EXPORT std::ostream& operator<<(std::ostream& out, const Inspection& inspection);

}  // namespace berth
