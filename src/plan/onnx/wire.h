// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <protozero/pbf_reader.hpp>
#include <string>
#include <string_view>
#include <vector>

// Parses protobuf messages without copying. Protozero decodes; what it leaves to its callers is validated here:
// wire types (it only asserts them), lengths and tags of more than 32 bits (it truncates them), groups (it does
// not support them), and nesting.
namespace berth::internal::plan::onnx {

// Limit on nested messages and groups.
inline constexpr int kMaxDepth = 100;

// The input and the current position, for errors.
struct Source {
  std::string_view bytes;
  std::string_view name;
  const char* at = nullptr;  // points into `bytes`
};

// Throws FormatError(format_error) with the current position.
[[noreturn]] void refuse(const Source& source, std::string_view why);

// Runs `read`; turns an exception of protozero into a FormatError.
void read_guarded(Source& source, const std::function<void()>& read);

// The fields of one message, one after another:
//
//     for (Fields fields(source, bytes, depth); fields.next();) { switch (fields.number()) { case 1: x = fields.text(); break; … } }
//
// A field that is not read is skipped by the next call of next().
class Fields {
 public:
  Fields(Source& source, std::string_view message, int depth);

  bool next();
  std::uint32_t number() const noexcept { return reader_.tag(); }

  // The value of the field. Each refuses another wire type.
  std::string_view text();
  Fields message();
  std::int64_t integer();
  float real();

  // The values of a repeated field, packed or not: all are counted, and the first `most` are kept.
  void integers(std::vector<std::int64_t>& kept, std::uint64_t& count, std::size_t most);
  void reals(std::vector<float>& kept, std::uint64_t& count, std::size_t most);
  void count_doubles(std::uint64_t& count);

  Source& source() const noexcept { return *source_; }

 private:
  void skip_group();
  void check_tag();
  void check_length();
  bool packed() const noexcept { return reader_.has_wire_type(protozero::pbf_wire_type::length_delimited); }
  void expect(protozero::pbf_wire_type type) const;

  Source* source_;
  protozero::pbf_reader reader_;
  int depth_;
  bool unread_ = false;  // the field's value has not been consumed
};

}  // namespace berth::internal::plan::onnx
