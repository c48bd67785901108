// SPDX-License-Identifier: Apache-2.0
#include "plan/onnx/fold_arithmetic.h"

#include <algorithm>
#include <cmath>

#include "berth/base/checked.h"
#include "plan/onnx/element_type.h"

namespace berth::internal::plan::onnx {

namespace {

std::int64_t known(std::optional<std::int64_t> result) { return result.value_or(kUnknownInt); }

std::optional<std::int64_t> try_subtract(std::int64_t a, std::int64_t b) {
  std::int64_t difference = 0;
  if (__builtin_sub_overflow(a, b, &difference)) return std::nullopt;
  return difference;
}

// The remainder has the sign of the divisor. Nodes that ask for C semantics (fmod) are not folded.
std::int64_t modulo(std::int64_t a, std::int64_t b) {
  const std::int64_t rest = a % b;
  return rest != 0 && (rest < 0) != (b < 0) ? rest + b : rest;
}

// Nothing for any other operator. Neither operand is kUnknownInt, so a quotient cannot overflow.
std::optional<std::int64_t> compute(std::string_view op, std::int64_t a, std::int64_t b) {
  if (op == "Add") return try_add(a, b);
  if (op == "Sub") return try_subtract(a, b);
  if (op == "Mul") return try_multiply(a, b);
  if (op == "Div") return b == 0 ? std::nullopt : std::optional(a / b);
  if (op == "Mod") return b == 0 ? std::nullopt : std::optional(modulo(a, b));
  if (op == "Min") return std::min(a, b);
  if (op == "Max") return std::max(a, b);
  if (op == "Equal") return a == b;
  if (op == "Greater") return a > b;
  if (op == "GreaterOrEqual") return a >= b;
  if (op == "Less") return a < b;
  if (op == "LessOrEqual") return a <= b;
  if (op == "And") return a != 0 && b != 0;
  if (op == "Or") return a != 0 || b != 0;
  return std::nullopt;
}

float compute(std::string_view op, float a, float b) {
  if (op == "Add") return a + b;
  if (op == "Sub") return a - b;
  if (op == "Mul") return a * b;
  if (op == "Div") return a / b;
  return kUnknownFloat;
}

template <class T, class Compute>
std::vector<T> spread(const std::vector<T>& a, const std::vector<T>& b, Compute both) {
  std::vector<T> out;
  if (a.size() != b.size() && a.size() != 1 && b.size() != 1) return out;
  const std::size_t count = a.empty() || b.empty() ? 0 : std::max(a.size(), b.size());
  for (std::size_t i = 0; i < count; ++i) out.push_back(both(a[a.size() == 1 ? 0 : i], b[b.size() == 1 ? 0 : i]));
  return out;
}

std::int64_t unary(std::string_view op, std::int64_t a) {
  if (op == "Neg") return -a;
  if (op == "Abs") return a < 0 ? -a : a;
  if (op == "Not") return a == 0 ? 1 : 0;
  return kUnknownInt;
}

float unary(std::string_view op, float a) {
  if (op == "Neg") return -a;
  if (op == "Abs") return std::fabs(a);
  if (op == "Floor") return std::floor(a);
  if (op == "Ceil") return std::ceil(a);
  return kUnknownFloat;
}

// The comparison is false for NaN.
std::int64_t to_int(float a) { return std::fabs(a) < 9.0e18F ? static_cast<std::int64_t>(a) : kUnknownInt; }

float to_float(std::int64_t a) { return a == kUnknownInt ? kUnknownFloat : static_cast<float>(a); }

bool can_hold_sizes(std::int64_t elem) { return elem == kInt32 || elem == kInt64 || elem == kBool || elem == kFloat; }

// A value that does not fit the narrower type becomes unknown.
std::int64_t narrowed(std::int64_t a, std::int64_t elem) {
  if (a == kUnknownInt) return a;
  if (elem == kBool) return a != 0 ? 1 : 0;
  return elem == kInt32 && !try_narrow<std::int32_t>(a) ? kUnknownInt : a;
}

std::optional<std::int64_t> reduced(std::string_view op, const std::vector<std::int64_t>& ints) {
  if (ints.empty()) return std::nullopt;
  const std::string_view step = op == "ReduceProd" ? "Mul" : op == "ReduceSum" ? "Add" : op == "ReduceMax" ? "Max" : "Min";
  std::optional<std::int64_t> all = ints.front();
  for (std::size_t i = 1; i < ints.size() && all; ++i) all = compute(step, *all, ints[i]);
  return all;
}

}  // namespace

void fold_unary(Call& call) {
  const Contents* const from = call.contents(0);
  if (from == nullptr) return;
  Contents out;
  for (const std::int64_t a : from->ints) out.ints.push_back(a == kUnknownInt ? a : unary(call.node().op, a));
  for (const float a : from->floats) out.floats.push_back(unary(call.node().op, a));
  call.set_contents(0, std::move(out));
}

void fold_binary(Call& call) {
  const Contents* const a = call.contents(0);
  const Contents* const b = call.contents(1);
  const std::string_view op = call.node().op;
  if (a == nullptr || b == nullptr || call.inputs() != 2 || call.integer("fmod", 0) != 0) return;
  const auto both = [&](std::int64_t x, std::int64_t y) {
    return x == kUnknownInt || y == kUnknownInt ? kUnknownInt : known(compute(op, x, y));
  };
  Contents out;
  out.ints = spread(a->ints, b->ints, both);
  if (call.out(0).elem == kFloat) out.floats = spread(a->floats, b->floats, [&](float x, float y) { return compute(op, x, y); });
  call.set_contents(0, std::move(out));
}

void fold_cast(Call& call) {
  const Contents* const from = call.contents(0);
  const std::int64_t elem = call.out(0).elem;
  if (from == nullptr || !can_hold_sizes(elem)) return;
  Contents out;
  for (const std::int64_t a : from->ints) {
    if (elem == kFloat)
      out.floats.push_back(to_float(a));
    else
      out.ints.push_back(narrowed(a, elem));
  }
  for (const float a : from->floats) {
    if (elem == kFloat)
      out.floats.push_back(a);
    else if (elem == kBool)
      out.ints.push_back(std::isnan(a) ? kUnknownInt : a != 0);  // 0.5 is true
    else
      out.ints.push_back(narrowed(to_int(a), elem));
  }
  call.set_contents(0, std::move(out));
}

void fold_reduce(Call& call) {
  const auto* const from = call.known_ints(0);
  if (from == nullptr || call.in(0).dims.size() > 1 || count_of(call.out(0).dims) != 1) return;
  call.set_contents(0, {.ints = {known(reduced(call.node().op, *from))}, .floats = {}});
}

}  // namespace berth::internal::plan::onnx
