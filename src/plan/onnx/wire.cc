// SPDX-License-Identifier: Apache-2.0
#include "plan/onnx/wire.h"

#include "base/allowance.h"
#include "base/text.h"
#include "berth/base/error.h"

namespace berth::internal::plan::onnx {

namespace {

using protozero::pbf_wire_type;

[[noreturn]] void refuse_depth(const Source& source) {
  throw FormatError(ErrorCode::limit_exceeded,
                    {text::join("reading ", text::printable(source.name)),
                     text::join("at byte ", source.at - source.bytes.data(), " messages are nested more than ", kMaxDepth, " deep"),
                     "no model needs that: the file is damaged, or is malicious"},
                    {{"offset", source.at - source.bytes.data()}, {"limit", kMaxDepth}});
}

// Skips the fields of an unknown group, to its end.
class GroupWalk {
 public:
  GroupWalk(Source& source, std::string_view rest, int depth)
      : source_(source), at_(rest.data()), end_(rest.data() + rest.size()), depth_(static_cast<std::size_t>(depth)) {}

  // REQUIRES: a group starts here. Returns what is behind it.
  std::string_view walk() {
    do {
      source_.at = at_;
      step();
    } while (!open_.empty());
    return {at_, static_cast<std::size_t>(end_ - at_)};
  }

 private:
  void step() {
    const std::uint64_t tag = protozero::decode_varint(&at_, end_);
    switch (tag & 7U) {
      case 0: protozero::decode_varint(&at_, end_); break;
      case 1: skip(8); break;
      case 2: skip(protozero::decode_varint(&at_, end_)); break;
      case 3: open(tag >> 3U); break;
      case 4: close(tag >> 3U); break;
      case 5: skip(4); break;
      default: refuse(source_, "there is no such wire type");
    }
  }

  void open(std::uint64_t number) {
    open_.push_back(number);
    if (depth_ + open_.size() > kMaxDepth) refuse_depth(source_);
  }

  void close(std::uint64_t number) {
    if (open_.back() != number) refuse(source_, "a group ends that is not the innermost one");
    open_.pop_back();
  }

  void skip(std::uint64_t bytes) {
    if (bytes > static_cast<std::uint64_t>(end_ - at_)) refuse(source_, "a field reaches beyond the end of its message");
    at_ += bytes;
  }

  Source& source_;
  const char* at_;
  const char* end_;
  std::size_t depth_;
  std::vector<std::uint64_t> open_;
};

std::string_view rest_of(const protozero::pbf_reader& reader) { return {reader.data().data(), reader.data().size()}; }

template <class T>
void keep(std::vector<T>& kept, std::uint64_t& count, std::size_t most, T value) {
  if (kept.size() < most) base::append(kept, value);
  ++count;
}

}  // namespace

void refuse(const Source& source, std::string_view why) {
  throw FormatError(
      ErrorCode::format_error,
      {text::join("reading ", text::printable(source.name)), text::join("at byte ", source.at - source.bytes.data(), ", ", why),
       "the file is not an ONNX model, or is damaged: write it again with the tool it came from"},
      {{"offset", source.at - source.bytes.data()}});
}

void read_guarded(Source& source, const std::function<void()>& read) {
  try {
    read();
  } catch (const protozero::varint_too_long_exception&) {
    refuse(source, "a varint has more than ten bytes");
  } catch (const protozero::end_of_buffer_exception&) {
    refuse(source, "a field reaches beyond the end of its message");
  } catch (const protozero::invalid_tag_exception&) {
    refuse(source, "a field number is out of range");
  } catch (const protozero::unknown_pbf_wire_type_exception&) {
    refuse(source, "there is no such wire type");
  } catch (const protozero::invalid_length_exception&) {
    refuse(source, "packed numbers do not fill their field");
  }
}

Fields::Fields(Source& source, std::string_view message, int depth)
    : source_(&source), reader_(message.data(), message.size()), depth_(depth) {
  if (depth > kMaxDepth) refuse_depth(source);
}

bool Fields::next() {
  if (unread_) reader_.skip();
  unread_ = false;
  while (reader_) {
    source_->at = reader_.data().data();
    if ((static_cast<unsigned char>(*source_->at) & 7U) == 3U) {
      skip_group();
      continue;
    }
    check_tag();
    reader_.next();
    if (packed()) check_length();
    unread_ = true;
    return true;
  }
  return false;
}

void Fields::skip_group() {
  const std::string_view rest = GroupWalk(*source_, rest_of(reader_), depth_).walk();
  reader_ = protozero::pbf_reader(rest.data(), rest.size());
}

void Fields::check_tag() {
  const char* at = source_->at;
  if (protozero::decode_varint(&at, at + reader_.length()) > UINT32_MAX) refuse(*source_, "a field number is out of range");
}

void Fields::check_length() {
  const std::string_view rest = rest_of(reader_);
  const char* at = rest.data();
  const char* const end = at + rest.size();
  const std::uint64_t length = protozero::decode_varint(&at, end);
  if (length > static_cast<std::uint64_t>(end - at)) refuse(*source_, "a field reaches beyond the end of its message");
}

void Fields::expect(pbf_wire_type type) const {
  if (!reader_.has_wire_type(type)) refuse(*source_, text::join("field ", number(), " has the wrong wire type"));
}

std::string_view Fields::text() {
  expect(pbf_wire_type::length_delimited);
  unread_ = false;
  const protozero::data_view view = reader_.get_view();
  return {view.data(), view.size()};
}

Fields Fields::message() { return Fields(*source_, text(), depth_ + 1); }

std::int64_t Fields::integer() {
  expect(pbf_wire_type::varint);
  unread_ = false;
  return reader_.get_int64();
}

float Fields::real() {
  expect(pbf_wire_type::fixed32);
  unread_ = false;
  return reader_.get_float();
}

void Fields::integers(std::vector<std::int64_t>& kept, std::uint64_t& count, std::size_t most) {
  if (!packed()) return keep(kept, count, most, integer());
  unread_ = false;
  for (const std::int64_t value : reader_.get_packed_int64()) keep(kept, count, most, value);
}

void Fields::reals(std::vector<float>& kept, std::uint64_t& count, std::size_t most) {
  if (!packed()) return keep(kept, count, most, real());
  unread_ = false;
  for (const float value : reader_.get_packed_float()) keep(kept, count, most, value);
}

void Fields::count_doubles(std::uint64_t& count) {
  if (!packed()) {
    expect(pbf_wire_type::fixed64);
    ++count;
    return;
  }
  const std::size_t bytes = text().size();
  if (bytes % 8 != 0) refuse(*source_, "packed numbers do not fill their field");
  count += bytes / 8;
}

}  // namespace berth::internal::plan::onnx
