// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "berth/plan/onnx.h"
#include "plan/onnx/model.h"

// Tensor data in external files. No file is opened here: the path is validated as text, and the range against
// the file size that the callback of read_onnx returns.
namespace berth::internal::plan::onnx {

class ExternalData {
 public:
  ExternalData(const OnnxOptions& options, std::string_view model) : options_(options), model_(model) {}

  // Validates a tensor's path and range. `bytes` is the size that its shape implies; nothing when unknown.
  // Throws FormatError: path_escape{path}, format_error, size_mismatch, file_truncated{path}.
  void check(const ModelTensor& tensor, std::optional<std::size_t> bytes);

 private:
  struct Position;
  Position read_position(const ModelTensor& tensor) const;
  void check_range(const ModelTensor& tensor, const Position& position, std::optional<std::size_t> bytes);
  std::optional<std::uint64_t> file_size(const std::string& path);
  std::string asked(const ModelTensor& tensor) const;
  [[noreturn]] void refuse_path(const ModelTensor& tensor, std::string_view path, std::string why, std::string help) const;
  [[noreturn]] void refuse_number(const ModelTensor& tensor, const ExternalEntry& entry) const;

  const OnnxOptions& options_;
  std::string_view model_;
  std::map<std::string, std::optional<std::uint64_t>, std::less<>> sizes_;  // cache of the callback's results
};

// Why a path could escape the model's folder; empty when it cannot.
std::string_view why_not_inside(std::string_view location);

}  // namespace berth::internal::plan::onnx
