// SPDX-License-Identifier: Apache-2.0
#include "file/judges.h"

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "berth/base/error.h"
#include "file/numpy/npy_header.h"
#include "file/numpy/zip.h"
#include "file/safetensors/json_text.h"
#include "file/safetensors/safetensors_header.h"
#include "file/safetensors/safetensors_index.h"

namespace berth::testing {

using namespace internal::file;

Finding judge_safetensors(const std::string& bytes, std::uint64_t more, bool lax) {
  const std::uint64_t told = bytes.size() + more;
  const std::uint64_t length = safetensors_header_bytes(std::string_view(bytes).substr(0, 8), told, "fuzz");
  if (length > bytes.size() - std::min<std::size_t>(8, bytes.size())) return "a header past the file";
  const std::string json = bytes.substr(8, length);
  const SafetensorsHeader header = parse_safetensors(JsonText(std::string_view(json)), told, {.lax = lax}, "fuzz");
  const nlohmann::json read = nlohmann::json::parse(json, nullptr, false);
  if (read.is_discarded()) return "JSON that another parser refuses";
  if (read.size() != header.entries.size() + read.contains("__metadata__")) return "another number of tensors";
  std::uint64_t at = 8 + length;
  for (const TensorEntry& entry : header.entries) {
    if (entry.file_offset != at || entry.size_bytes > bytes.size() - at) return "a tensor past the file, or not behind the one before";
    at += entry.size_bytes;
    const nlohmann::json& said = read[entry.name];
    if (said["data_offsets"][0] != entry.file_offset - 8 - length || said["shape"].size() != entry.shape.rank())
      return "another place or rank";
    if (entry.dtype && entry.shape.try_size_bytes(*entry.dtype) != entry.size_bytes) return "another size than the shape's";
  }
  return at == bytes.size() ? Finding() : "bytes of no tensor";
}

Finding judge_index(const std::string& bytes, bool lax) {
  const SafetensorsIndex index = parse_safetensors_index(JsonText(std::string_view(bytes)), {.lax = lax}, "fuzz");
  const nlohmann::json read = nlohmann::json::parse(bytes, nullptr, false);
  if (read.is_discarded()) return "JSON that another parser refuses";
  if (read["weight_map"].size() != index.rows.size()) return "another number of tensors";
  for (const SafetensorsIndex::Row& row : index.rows) {
    const std::string& shard = index.shards[row.shard];
    if (read["weight_map"][row.name] != shard || index.find(row.name) != &row) return "another file";
    const std::filesystem::path path(shard);
    if (path.is_absolute() || path.lexically_normal() != path || path.begin()->string() == ".." || shard.empty())
      return "a path that leads out";
  }
  return std::nullopt;
}

Finding judge_npy(const std::string& bytes, std::uint64_t more) {
  const TensorEntry entry = parse_npy(std::string_view(bytes).substr(0, kMostNpyBytes), {.path = "fuzz", .bytes = bytes.size() + more});
  if (entry.file_offset > bytes.size() || entry.size_bytes != bytes.size() - entry.file_offset)
    return "elements past the file, or not all of it";
  if (entry.dtype && entry.shape.try_size_bytes(*entry.dtype) != entry.size_bytes) return "another size than the shape's";
  return std::nullopt;
}

namespace {

// The array in it, as open_npz reads it.
Finding judge_member(const std::string& bytes, const ZipMember& member) {
  const std::string_view inside = std::string_view(bytes).substr(member.offset, member.bytes);
  const TensorEntry entry =
      parse_npy(inside.substr(0, kMostNpyBytes), {.path = "fuzz", .offset = member.offset, .bytes = member.bytes, .name = member.name});
  const bool is_inside = entry.file_offset >= member.offset && entry.file_offset - member.offset <= member.bytes;
  if (!is_inside || entry.size_bytes != member.bytes - (entry.file_offset - member.offset)) return "elements outside the member";
  return std::nullopt;
}

}  // namespace

Finding judge_npz(const std::string& bytes, std::uint64_t more) {
  bool outside = false;
  const ReadAt read = [&](std::uint64_t offset, std::span<std::byte> target) {
    const bool inside = offset <= bytes.size() && target.size() <= bytes.size() - offset;
    outside = outside || !inside;
    if (inside) std::copy_n(reinterpret_cast<const std::byte*>(bytes.data()) + offset, target.size(), target.begin());
  };
  try {
    std::uint64_t end = 0;
    for (const ZipMember& member : parse_zip(read, bytes.size() + more, "fuzz")) {
      if (member.offset < end || member.offset > bytes.size() || member.bytes > bytes.size() - member.offset)
        return "a member past the file";
      end = member.offset + member.bytes;
      if (const Finding found = judge_member(bytes, member)) return found;
    }
  } catch (const Error&) {
    if (outside) return "a read past the file";
    throw;
  }
  return outside ? Finding("a read past the file") : std::nullopt;
}

}  // namespace berth::testing
