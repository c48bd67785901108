// SPDX-License-Identifier: Apache-2.0
#include <cctype>
#include <map>
#include <string>

#include "plan/onnx/element_type.h"
#include "plan/onnx/rules/rules.h"

namespace berth::internal::plan::onnx::rules {

namespace {

// NumPy matmul: a vector gets an axis, which is removed again; the axes before the last two are broadcast.
void set_product(Call& call, const TensorType& left, const TensorType& right, std::int64_t elem) {
  call.set(0, TensorType::of(elem));
  if (!left.ranked || !right.ranked || left.dims.empty() || right.dims.empty()) return;
  DimList a = left.dims;
  DimList b = right.dims;
  if (left.dims.size() == 1) a.insert(a.begin(), 1);
  if (right.dims.size() == 1) b.push_back(1);
  const std::int64_t inner_a = a.back();
  const std::int64_t inner_b = b[b.size() - 2];
  if (inner_a != inner_b && inner_a != kUnknownDim && inner_b != kUnknownDim) return call.contradict(clash_of(left, right, "multiplied"));
  auto dims = broadcast(DimList(a.begin(), a.end() - 2), DimList(b.begin(), b.end() - 2));
  if (!dims) return call.contradict(clash_of(left, right, "multiplied"));
  if (left.dims.size() > 1) dims->push_back(a[a.size() - 2]);
  if (right.dims.size() > 1) dims->push_back(b.back());
  call.set(0, elem, std::move(*dims));
}

std::string without_spaces(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (c != ' ') out += c;
  }
  return out;
}

// Adds the sizes of one operand's letters. False when they contradict others.
bool take_letters(std::string_view letters, const TensorType& type, std::map<char, std::int64_t>& sizes) {
  if (!type.ranked || letters.size() != type.dims.size()) return false;
  for (std::size_t i = 0; i < letters.size(); ++i) {
    if (std::isalpha(static_cast<unsigned char>(letters[i])) == 0) return false;
    std::int64_t& size = sizes.emplace(letters[i], type.dims[i]).first->second;
    if (size == kUnknownDim || size == 1) size = type.dims[i];
  }
  return true;
}

// The implied output of an equation without an arrow: the letters that appear once, sorted.
std::string implied_output(std::string_view operands) {
  std::map<char, int> counts;
  for (const char c : operands) {
    if (c != ',') ++counts[c];
  }
  std::string out;
  for (const auto& [letter, count] : counts) {
    if (count == 1) out += letter;
  }
  return out;
}

}  // namespace

void matmul(Call& call) { set_product(call, call.in(0), call.in(1), call.in(0).elem); }
void matmul_integer(Call& call) { set_product(call, call.in(0), call.in(1), kInt32); }
void qlinear_matmul(Call& call) { set_product(call, call.in(0), call.in(3), call.in(7).elem); }

void gemm(Call& call) {
  const TensorType& a = call.in(0);
  const TensorType& b = call.in(1);
  call.set(0, TensorType::of(a.elem));
  if (!a.ranked || !b.ranked || a.dims.size() != 2 || b.dims.size() != 2) return;
  call.set(0, a.elem, {a.dims[call.integer("transA", 0) != 0 ? 1 : 0], b.dims[call.integer("transB", 0) != 0 ? 0 : 1]});
}

// Letters only: an equation with an ellipsis is not inferred.
void einsum(Call& call) {
  call.set(0, TensorType::of(call.in(0).elem));
  const std::string equation = without_spaces(call.text("equation", ""));
  const std::size_t arrow = equation.find("->");
  std::string_view operands = std::string_view(equation).substr(0, arrow);
  const std::string output = arrow == std::string::npos ? implied_output(operands) : equation.substr(arrow + 2);
  std::map<char, std::int64_t> sizes;
  for (std::size_t i = 0; i < call.inputs(); ++i) {
    const std::size_t comma = operands.find(',');
    if (!take_letters(operands.substr(0, comma), call.in(i), sizes)) return;
    operands.remove_prefix(comma == std::string_view::npos ? operands.size() : comma + 1);
  }
  DimList dims;
  for (const char letter : output) {
    if (!sizes.contains(letter)) return;
    dims.push_back(sizes[letter]);
  }
  call.set(0, call.in(0).elem, std::move(dims));
}

void det(Call& call) {
  call.set(0, TensorType::of(call.in(0).elem));
  const TensorType& matrices = call.in(0);
  if (matrices.ranked && matrices.dims.size() >= 2) call.set(0, matrices.elem, DimList(matrices.dims.begin(), matrices.dims.end() - 2));
}

}  // namespace berth::internal::plan::onnx::rules
