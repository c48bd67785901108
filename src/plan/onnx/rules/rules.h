// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>
#include <vector>

#include "plan/onnx/call.h"

// Shape inference rules, each for a family of operators: a rule sets what it can infer, and nothing else. A
// planner need not diagnose inputs that do not fit together: the rule then sets nothing. A rule tells the
// versions of an operator apart by the attributes and inputs that are present, so that one serves all of them;
// where that is not enough it looks at the opset.
namespace berth::internal::plan::onnx {

using Rule = void (*)(Call& call);

// The rule of a standard operator; null when there is none.
Rule shape_rule(std::string_view op) noexcept;
std::vector<std::string_view> shape_rule_names();

namespace rules {

// ---- Elementwise operators: elementwise.cc
void same_as_first(Call& call);
void same_as_first_boolean(Call& call);
void dropout(Call& call);
void binary(Call& call);
void binary_boolean(Call& call);
void variadic(Call& call);
void where(Call& call);
void cast(Call& call);
void cast_like(Call& call);
void quantize(Call& call);
void dequantize(Call& call);
void dynamic_quantize(Call& call);

// ---- Products and recurrent networks: matmul.cc, recurrent.cc
void matmul(Call& call);
void matmul_integer(Call& call);
void qlinear_matmul(Call& call);
void gemm(Call& call);
void einsum(Call& call);
void det(Call& call);
void rnn(Call& call);
void gru(Call& call);
void lstm(Call& call);
void attention(Call& call);

// ---- Sliding windows: window.cc
void conv(Call& call);
void conv_integer(Call& call);
void qlinear_conv(Call& call);
void conv_transpose(Call& call);
void pool(Call& call);
void global_pool(Call& call);
void roi_pool(Call& call);
void roi_align(Call& call);

// ---- Normalisation and reduction: reduce.cc
void batch_normalization(Call& call);
void layer_normalization(Call& call);
void reduce(Call& call);
void arg_reduce(Call& call);
void top_k(Call& call);

// ---- The same elements in another shape: reshape.cc
void reshape(Call& call);
void flatten(Call& call);
void squeeze(Call& call);
void unsqueeze(Call& call);
void transpose(Call& call);
void depth_to_space(Call& call);
void space_to_depth(Call& call);
void expand(Call& call);
void tile(Call& call);

// ---- Selecting and joining elements: select.cc
void concat(Call& call);
void split(Call& call);
void slice(Call& call);
void gather(Call& call);
void gather_elements(Call& call);
void gather_nd(Call& call);
void one_hot(Call& call);
void non_zero(Call& call);

// ---- Sizes given by numbers: sized.cc
void shape(Call& call);
void size(Call& call);
void constant(Call& call);
void constant_of_shape(Call& call);
void range(Call& call);
void random(Call& call);
void like_first(Call& call);
void pad(Call& call);
void resize(Call& call);
void upsample(Call& call);
void grid_sample(Call& call);

}  // namespace rules
}  // namespace berth::internal::plan::onnx
