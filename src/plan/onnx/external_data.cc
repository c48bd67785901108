// SPDX-License-Identifier: Apache-2.0
#include "plan/onnx/external_data.h"

#include <charconv>

#include "base/text.h"
#include "berth/base/checked.h"
#include "berth/base/error.h"

namespace berth::internal::plan::onnx {

struct ExternalData::Position {
  std::string path;
  std::uint64_t offset = 0;
  std::optional<std::uint64_t> length;
};

namespace {

constexpr std::string_view kPathHelp = "keep the data in files beside the model, and name them by a path such as weights/layer1.bin";

bool has_parent_part(std::string_view path) {
  while (true) {
    const std::size_t slash = path.find('/');
    if (path.substr(0, slash) == "..") return true;
    if (slash == std::string_view::npos) return false;
    path.remove_prefix(slash + 1);
  }
}

std::optional<std::uint64_t> parse(std::string_view text) {
  std::uint64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size() || number > kMaxBytes) return std::nullopt;
  return number;
}

}  // namespace

std::string_view why_not_inside(std::string_view location) {
  if (location.empty()) return "no location is given";
  if (location.find('\0') != std::string_view::npos) return "there is a NUL in it";
  if (location.find('\\') != std::string_view::npos) return "there is a backslash in it";
  if (location.front() == '/' || (location.size() > 1 && location[1] == ':')) return "it does not start in the model's folder";
  if (location.front() == '~') return "it starts in a home folder";
  if (location.back() == '/') return "it is a folder";
  if (has_parent_part(location)) return "it leads out of the model's folder";
  return {};
}

std::string ExternalData::asked(const ModelTensor& tensor) const {
  return text::join("the data of ", text::quoted(tensor.name), " in ", text::printable(model_));
}

void ExternalData::refuse_path(const ModelTensor& tensor, std::string_view path, std::string why, std::string help) const {
  throw FormatError(ErrorCode::path_escape, {text::join(asked(tensor), ", at ", text::quoted(path)), std::move(why), std::move(help)},
                    {{"path", text::printable(path)}});
}

void ExternalData::refuse_number(const ModelTensor& tensor, const ExternalEntry& entry) const {
  throw FormatError(ErrorCode::format_error,
                    {asked(tensor), text::join("their ", entry.key, " is ", text::quoted(entry.value)), "it is a whole number of bytes"},
                    {{"value", text::printable(entry.value)}});
}

ExternalData::Position ExternalData::read_position(const ModelTensor& tensor) const {
  const ExternalEntry* location = nullptr;
  const ExternalEntry* offset = nullptr;
  const ExternalEntry* length = nullptr;
  const auto take = [&](const ExternalEntry*& position, const ExternalEntry& entry) {
    if (position != nullptr)
      throw FormatError(ErrorCode::format_error, {asked(tensor), text::join("their ", entry.key, " is given twice"), "give it once"});
    position = &entry;
  };
  for (const ExternalEntry& entry : tensor.external_entries) {
    if (entry.key == "location") take(location, entry);
    if (entry.key == "offset") take(offset, entry);
    if (entry.key == "length") take(length, entry);
  }
  Position position;
  position.path = location == nullptr ? std::string() : std::string(location->value);
  const auto number = [&](const ExternalEntry* entry) -> std::optional<std::uint64_t> {
    if (entry == nullptr) return std::nullopt;
    const auto parsed = parse(entry->value);
    if (!parsed) refuse_number(tensor, *entry);
    return parsed;
  };
  position.offset = number(offset).value_or(0);
  position.length = number(length);
  return position;
}

std::optional<std::uint64_t> ExternalData::file_size(const std::string& path) {
  const auto known = sizes_.find(path);
  if (known != sizes_.end()) return known->second;
  return sizes_.emplace(path, options_.external_size(path)).first->second;
}

void ExternalData::check_range(const ModelTensor& tensor, const Position& position, std::optional<std::size_t> bytes) {
  if (position.length && bytes && *position.length != *bytes)
    throw FormatError(ErrorCode::size_mismatch,
                      {asked(tensor), text::join("they have ", *position.length, " bytes, and its shape asks for ", *bytes),
                       "write the model again with the tool it came from"},
                      {{"length", *position.length}, {"bytes", *bytes}});
  const std::uint64_t needed = position.length ? *position.length : bytes.value_or(0);
  const auto size = file_size(position.path);
  if (size && fits(position.offset, needed, *size)) return;
  throw FormatError(
      ErrorCode::file_truncated,
      {text::join(asked(tensor), ", ", needed, " bytes at ", position.offset, " of ", text::quoted(position.path)),
       size ? text::join("the file has ", *size, " bytes") : std::string("there is no such file"), "put the whole file beside the model"},
      {{"path", text::printable(position.path)}, {"size", size.value_or(0)}});
}

void ExternalData::check(const ModelTensor& tensor, std::optional<std::size_t> bytes) {
  const Position position = read_position(tensor);
  const std::string_view why = why_not_inside(position.path);
  if (!why.empty()) refuse_path(tensor, position.path, std::string(why), std::string(kPathHelp));
  if (!options_.external_size)
    refuse_path(tensor, position.path, "the model's folder is not known",
                "read the model by its path, or answer OnnxOptions::external_size");
  check_range(tensor, position, bytes);
}

}  // namespace berth::internal::plan::onnx
