// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <bit>
#include <numeric>
#include <utility>

#include "base/text.h"
#include "berth/base/checked.h"
#include "berth/base/error.h"
#include "berth/base/json.h"
#include "berth/file/safetensors.h"
#include "file/name_index.h"
#include "file/output_file.h"
#include "file/safetensors/safetensors_dtypes.h"
#include "file/safetensors/safetensors_header.h"

namespace berth {

using namespace internal;

using namespace internal::file;

namespace {

constexpr std::size_t kMostAlignment = std::size_t{2} << 20;
constexpr std::size_t kLeastAlignment = 8;  // of every element; as in files of the reference implementation

struct TensorRange {
  TensorSpec spec;
  std::string_view dtype;  // the format's name
  std::uint64_t bytes = 0;
  std::uint64_t begin = 0;  // from the end of the header
  bool written = false;
};

std::string asked(std::string_view name) { return text::join("writing the tensor ", text::quoted(name)); }

[[noreturn]] void refuse(ErrorCode code, std::string what, std::string why, std::string help, std::string_view name) {
  throw ArgumentError(code, {std::move(what), std::move(why), std::move(help)}, {{"name", text::printable(name)}});
}

const SafetensorsDType& format_dtype(const TensorSpec& spec) {
  const auto* const found =
      spec.format_dtype.empty() ? find_safetensors_dtype(spec.dtype) : find_safetensors_dtype(std::string_view(spec.format_dtype));
  if (found == nullptr) {
    const std::string name = spec.format_dtype.empty() ? std::string(to_string(spec.dtype)) : text::printable(spec.format_dtype);
    refuse(ErrorCode::unsupported_dtype, asked(spec.name), text::join("safetensors has no dtype for ", name), "convert it with to() first",
           spec.name);
  }
  return *found;
}

TensorRange range_for(TensorSpec spec) {
  require_text_name(spec.name, "writing the tensor");
  if (spec.name == "__metadata__")
    refuse(ErrorCode::invalid_name, asked(spec.name), "the format reserves that name", "use another", spec.name);
  const SafetensorsDType& dtype = format_dtype(spec);
  const std::optional<std::uint64_t> bytes = packed_bytes(spec.shape, dtype.bits);
  if (!bytes || *bytes > kMaxBytes) {
    refuse(ErrorCode::size_overflow, asked(spec.name),
           text::join(spec.shape.to_string(), " of ", dtype.name, " is not a whole number of bytes, or does not fit in 64 bits"),
           "check the shape", spec.name);
  }
  return {.spec = std::move(spec), .dtype = dtype.name, .bytes = *bytes};
}

// The largest power of two, at most `most`, that divides the size of a tensor. In descending order of it, every
// tensor begins at a multiple of its own granularity, and so of its element's size.
std::uint64_t granularity(std::uint64_t bytes, std::uint64_t most) noexcept {
  return bytes == 0 ? most : std::min(bytes & (~bytes + 1), most);
}

void lay_out(std::vector<TensorRange>& ranges, std::size_t wanted) {
  const std::uint64_t alignment = std::max(wanted, kLeastAlignment);
  std::sort(ranges.begin(), ranges.end(), [&](const TensorRange& a, const TensorRange& b) {
    const std::uint64_t one = granularity(a.bytes, alignment);
    const std::uint64_t other = granularity(b.bytes, alignment);
    return one != other ? one > other : a.spec.name < b.spec.name;
  });
  std::uint64_t at = 0;
  for (TensorRange& range : ranges) {
    range.begin = at;
    at = checked_add(at, range.bytes, "the bytes of the file");
  }
}

void require_alignment(std::size_t alignment) {
  if (is_power_of_two(alignment) && alignment <= kMostAlignment) return;
  throw ArgumentError(ErrorCode::invalid_alignment,
                      {text::join("aligning a file's data to ", alignment), "it must be a power of two, at most 2 MiB", "use 4096"},
                      {{"alignment", alignment}});
}

void write_metadata(JsonWriter& json, const SafetensorsFile::Metadata& metadata) {
  const auto key_of = [&](std::size_t i) -> std::string_view { return metadata[i].first; };
  const auto twice = NameIndex(metadata.size(), key_of).duplicate(key_of);
  if (twice) {
    refuse(ErrorCode::duplicate_value, text::join("writing the metadata ", text::quoted(key_of(*twice))), "it is there twice",
           "give it once", key_of(*twice));
  }
  json.key("__metadata__").begin_object();
  for (const auto& [key, value] : metadata) {
    require_text_name(key, "writing the metadata");
    require_text_name(value, "writing the metadata");
    json.member(key, value);
  }
  json.end_object();
}

// The header: eight bytes of length, JSON, and spaces up to the alignment.
std::string header_of(const std::vector<TensorRange>& ranges, const SafetensorsWriteOptions& options) {
  JsonWriter json;
  json.begin_object();
  if (!options.metadata.empty()) write_metadata(json, options.metadata);
  for (const TensorRange& range : ranges) {
    json.key(range.spec.name).begin_object().member("dtype", range.dtype).key("shape").begin_array();
    for (const std::int64_t dim : range.spec.shape) json.value(dim);
    json.end_array().key("data_offsets").begin_array().value(range.begin).value(range.begin + range.bytes).end_array().end_object();
  }
  std::string text = std::string(kSafetensorsLengthBytes, '\0') + json.end_object().take();
  text.resize(checked_align_up(text.size(), std::max(options.alignment, kLeastAlignment), "the bytes of the header"), ' ');
  const std::uint64_t bytes = text.size() - kSafetensorsLengthBytes;
  if (bytes > kMostHeaderBytes) {
    throw ArgumentError(ErrorCode::limit_exceeded,
                        {text::join("writing ", ranges.size(), " tensors into one file"),
                         text::join("the header would be ", bytes, " bytes long, and the format allows ", kMostHeaderBytes),
                         "write several files, or shorter names"},
                        {{"bytes", bytes}, {"limit", kMostHeaderBytes}});
  }
  for (std::size_t i = 0; i < kSafetensorsLengthBytes; ++i) text[i] = static_cast<char>(bytes >> (8 * i) & 0xFF);
  return text;
}

std::vector<TensorRange> ranges_for(std::vector<TensorSpec> tensors, std::size_t alignment) {
  require_alignment(alignment);
  std::vector<TensorRange> ranges;
  ranges.reserve(tensors.size());
  for (TensorSpec& spec : tensors) ranges.push_back(range_for(std::move(spec)));
  lay_out(ranges, alignment);
  return ranges;
}

}  // namespace

struct SafetensorsWriter::State {
  std::vector<TensorRange> ranges;
  NameIndex names;
  std::string header;
  OutputFile file;
  bool committed = false;

  State(const std::string& path, std::vector<TensorSpec> tensors, const SafetensorsWriteOptions& options)
      : ranges(ranges_for(std::move(tensors), options.alignment)),
        names(unique_names(ranges)),
        header(header_of(ranges, options)),
        file(path, checked_add(header.size(), ranges.empty() ? 0 : ranges.back().begin + ranges.back().bytes, "the bytes of the file")) {
    file.write(0, std::string_view(header));
  }

  static NameIndex unique_names(const std::vector<TensorRange>& ranges) {
    const auto name_of = [&](std::size_t i) -> std::string_view { return ranges[i].spec.name; };
    NameIndex names(ranges.size(), name_of);
    if (const auto twice = names.duplicate(name_of))
      refuse(ErrorCode::duplicate_value, asked(name_of(*twice)), "another has that name", "use each name once", name_of(*twice));
    return names;
  }

  TensorRange& range(std::string_view name) {
    const auto found = names.find(name, [&](std::size_t i) -> std::string_view { return ranges[i].spec.name; });
    if (!found) refuse(ErrorCode::invalid_name, asked(name), "it was not announced", "name it when the writer is made", name);
    if (ranges[*found].written) refuse(ErrorCode::invalid_name, asked(name), "it was written already", "write each once", name);
    return ranges[*found];
  }
};

SafetensorsWriter::SafetensorsWriter(const std::string& path, std::vector<TensorSpec> tensors, const SafetensorsWriteOptions& options)
    : state_(std::make_unique<State>(path, std::move(tensors), options)) {}
SafetensorsWriter::~SafetensorsWriter() = default;

void SafetensorsWriter::write(std::string_view name, const Storage& tensor) {
  TensorRange& range = state_->range(name);
  const bool foreign = !range.spec.format_dtype.empty();
  const bool right = foreign ? tensor.size_bytes() == range.bytes && tensor.dtype() == DType::u8
                             : tensor.dtype() == range.spec.dtype && tensor.shape() == range.spec.shape;
  if (!right) {
    refuse(ErrorCode::size_mismatch, asked(name),
           text::join("it is ", tensor.shape().to_string(), " of ", to_string(tensor.dtype()), ", and was announced as ",
                      range.spec.shape.to_string(), " of ", range.dtype),
           foreign ? "give its bytes as u8" : "announce what is written", name);
  }
  const HostBytes bytes(tensor);
  bytes.write_to(state_->file, state_->header.size() + range.begin);
  range.written = true;
}

void SafetensorsWriter::commit() {
  const auto missing = std::ranges::find_if(state_->ranges, [](const TensorRange& range) { return !range.written && range.bytes != 0; });
  if (missing != state_->ranges.end())
    refuse(ErrorCode::undefined_value, "finishing a file", text::join("the tensor ", text::quoted(missing->spec.name), " is not written"),
           "write every tensor that was announced", missing->spec.name);
  if (std::exchange(state_->committed, true))
    throw AccessError(ErrorCode::already_consumed, {"finishing a file", "it was finished already", "finish once"});
  state_->file.commit();
}

void save_safetensors(const std::string& path, std::span<const NamedTensor> tensors, const SafetensorsWriteOptions& options) {
  std::vector<TensorSpec> specs;
  specs.reserve(tensors.size());
  for (const NamedTensor& one : tensors) specs.push_back({one.name, one.storage.dtype(), one.storage.shape()});
  SafetensorsWriter writer(path, std::move(specs), options);
  for (const NamedTensor& one : tensors) writer.write(one.name, one.storage);
  writer.commit();
}

void save_safetensors(const std::string& path, std::initializer_list<NamedTensor> tensors, const SafetensorsWriteOptions& options) {
  save_safetensors(path, std::span(tensors.begin(), tensors.size()), options);
}

}  // namespace berth
