// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "plan/onnx/external_data.h"
#include "plan/onnx/model.h"

// Tensors of the file: whether their data match their shapes, and the elements of small ones.
namespace berth::internal::plan::onnx {

// The elements of a small tensor, in one of the two lists. An unknown element is kUnknownInt, or NaN.
struct Contents {
  std::vector<std::int64_t> ints = {};  // of integers and booleans
  std::vector<float> floats = {};       // of 32-bit floats
};

inline constexpr std::int64_t kUnknownInt = INT64_MIN;

// Throws FormatError: size_mismatch, size_overflow, and what ExternalData::check throws.
void check_tensor(const ModelTensor& tensor, ExternalData& external, std::string_view model);
void check_sparse(const SparseModelTensor& sparse, ExternalData& external, std::string_view model);

// Nothing for a tensor that is large, external, or of another type.
std::optional<Contents> read_contents(const ModelTensor& tensor);

}  // namespace berth::internal::plan::onnx
