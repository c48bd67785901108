// SPDX-License-Identifier: Apache-2.0
#include "fuzz/protobuf.h"

#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

namespace berth::testing::fuzz {

namespace {

constexpr int kDepth = 12;

struct Field {
  std::uint64_t tag = 0;
  std::uint64_t number = 0;  // of a varint
  std::string bytes = {};    // of the other types
  unsigned type() const noexcept { return tag & 7U; }
};

std::optional<std::uint64_t> read_varint(std::string_view& from) {
  std::uint64_t value = 0;
  for (unsigned shift = 0; shift < 64 && !from.empty(); shift += 7) {
    const auto byte = static_cast<unsigned char>(from.front());
    from.remove_prefix(1);
    value |= std::uint64_t{byte & 0x7fU} << shift;
    if (byte < 0x80) return value;
  }
  return std::nullopt;
}

void write_varint(std::string& to, std::uint64_t value) {
  for (; value >= 0x80; value >>= 7) to += static_cast<char>(value | 0x80);
  to += static_cast<char>(value);
}

// The bytes of a field that is no varint; nullopt when there are fewer.
std::optional<std::string> read_bytes(std::string_view& from, unsigned type) {
  std::optional<std::uint64_t> length;
  if (type == 1) length = 8;
  if (type == 2) length = read_varint(from);
  if (type == 5) length = 4;
  if (!length || *length > from.size()) return std::nullopt;
  std::string bytes(from.substr(0, *length));
  from.remove_prefix(*length);
  return bytes;
}

std::optional<std::vector<Field>> read_fields(std::string_view from) {
  std::vector<Field> fields;
  while (!from.empty()) {
    const auto tag = read_varint(from);
    if (!tag || *tag < 8) return std::nullopt;
    Field field{.tag = *tag};
    if (field.type() == 0) {
      const auto number = read_varint(from);
      if (!number) return std::nullopt;
      field.number = *number;
    } else {
      auto bytes = read_bytes(from, field.type());
      if (!bytes) return std::nullopt;
      field.bytes = *std::move(bytes);
    }
    fields.push_back(std::move(field));
  }
  return fields;
}

std::string written(const std::vector<Field>& fields) {
  std::string out;
  for (const Field& field : fields) {
    write_varint(out, field.tag);
    if (field.type() == 0) write_varint(out, field.number);
    if (field.type() == 2) write_varint(out, field.bytes.size());
    out += field.bytes;
  }
  return out;
}

std::uint64_t other_number(Random& random, std::uint64_t number) {
  constexpr std::uint64_t kTelling[] = {0, 1, 2, 3, 7, 127, UINT32_MAX, INT64_MAX, UINT64_MAX, UINT64_MAX - 1, std::uint64_t{1} << 32};
  if (random.one_in(3)) return kTelling[random.below(std::size(kTelling))];
  return random.one_in(2) ? number + 1 : number ^ std::uint64_t{1} << random.below(64);
}

std::string mutate_at(Random& random, std::string bytes, const Change& change, int depth) {
  auto fields = read_fields(bytes);
  if (!fields || fields->empty() || depth == 0 || random.one_in(10)) return change(std::move(bytes));
  const auto at = static_cast<std::size_t>(random.below(fields->size()));
  const auto other = static_cast<std::size_t>(random.below(fields->size()));
  Field& field = (*fields)[at];
  switch (random.below(12)) {
    case 0: fields->erase(fields->begin() + static_cast<std::ptrdiff_t>(at)); break;
    case 1: fields->insert(fields->begin() + static_cast<std::ptrdiff_t>(other), Field(field)); break;
    case 2: std::swap(field, (*fields)[other]); break;
    case 3: field.bytes = (*fields)[other].type() == field.type() ? (*fields)[other].bytes : field.bytes; break;
    case 4: field.tag = (random.below(24) + 1) << 3 | field.type(); break;
    default:
      if (field.type() == 0)
        field.number = other_number(random, field.number);
      else if (field.type() == 2)
        field.bytes = mutate_at(random, std::move(field.bytes), change, depth - 1);
      else
        field.bytes[random.below(field.bytes.size())] = static_cast<char>(random.below(256));
  }
  return written(*fields);
}

}  // namespace

std::string mutate_message(Random& random, std::string bytes, const Change& change) {
  return mutate_at(random, std::move(bytes), change, kDepth);
}

}  // namespace berth::testing::fuzz
