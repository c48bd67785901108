// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "plan/onnx/external_data.h"
#include "plan/onnx/model.h"

// What is known of a tensor in the file: that it has as many data as its shape says, and, of a small one, its elements.
namespace berth::internal::plan::onnx {

// The elements of a small tensor, in one of the two lists. An element that is not known is kUnknownInt, or not a number.
struct Contents {
  std::vector<std::int64_t> ints = {};  // of integers and booleans
  std::vector<float> floats = {};       // of 32-bit floats
};

inline constexpr std::int64_t kUnknownInt = INT64_MIN;

// Throws FormatError: size_mismatch, size_overflow, and what ExternalData::check throws.
void check_tensor(const ModelTensor& tensor, ExternalData& external, std::string_view model);
void check_sparse(const SparseModelTensor& sparse, ExternalData& external, std::string_view model);

// Nothing for a tensor that is large, lies elsewhere, or is of another type.
std::optional<Contents> read_contents(const ModelTensor& tensor);

}  // namespace berth::internal::plan::onnx
