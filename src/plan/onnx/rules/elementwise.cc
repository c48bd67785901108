// SPDX-License-Identifier: Apache-2.0
#include "plan/onnx/element_type.h"
#include "plan/onnx/rules/rules.h"

namespace berth::internal::plan::onnx::rules {

namespace {

TensorType with_elem(TensorType type, std::int64_t elem) {
  type.elem = elem;
  return type;
}

// Before opset 7 the second operand is broadcast only when an attribute says so.
void set_broadcast(Call& call, std::int64_t elem) {
  const TensorType& a = call.in(0);
  const TensorType& b = call.in(1);
  call.set(0, TensorType::of(elem));
  if (call.has_attribute("broadcast") || call.has_attribute("axis")) return call.set(0, with_elem(a, elem));
  if (!a.ranked || !b.ranked) return;
  if (auto dims = broadcast(a.dims, b.dims))
    call.set(0, elem, std::move(*dims));
  else
    call.contradict(clash_of(a, b, "broadcast"));
}

}  // namespace

void same_as_first(Call& call) { call.set(0, call.in(0)); }

void same_as_first_boolean(Call& call) { call.set(0, with_elem(call.in(0), kBool)); }

// The mask has the type of the data before opset 10.
void dropout(Call& call) {
  call.set(0, call.in(0));
  call.set(1, with_elem(call.in(0), call.opset() >= 10 ? kBool : call.in(0).elem));
}

void binary(Call& call) { set_broadcast(call, call.in(0).elem); }

void binary_boolean(Call& call) { set_broadcast(call, kBool); }

void variadic(Call& call) {
  call.set(0, TensorType::of(call.in(0).elem));
  if (!call.in(0).ranked) return;
  DimList dims = call.in(0).dims;
  for (std::size_t i = 1; i < call.inputs(); ++i) {
    if (!call.in(i).ranked) return;
    auto wider = broadcast(dims, call.in(i).dims);
    if (!wider) return call.contradict(clash_of(TensorType::of(0, dims), call.in(i), "broadcast"));
    dims = std::move(*wider);
  }
  call.set(0, call.in(0).elem, std::move(dims));
}

void where(Call& call) {
  call.set(0, TensorType::of(call.in(1).elem));
  if (!call.in(0).ranked || !call.in(1).ranked || !call.in(2).ranked) return;
  const auto chosen = broadcast(call.in(1).dims, call.in(2).dims);
  if (!chosen) return call.contradict(clash_of(call.in(1), call.in(2), "broadcast"));
  if (auto dims = broadcast(*chosen, call.in(0).dims))
    call.set(0, call.in(1).elem, std::move(*dims));
  else
    call.contradict(clash_of(call.in(0), TensorType::of(0, *chosen), "broadcast"));
}

// Opset 1 gives the type as a string; later ones as its number.
void cast(Call& call) { call.set(0, with_elem(call.in(0), call.integer("to", 0))); }

void cast_like(Call& call) { call.set(0, with_elem(call.in(0), call.in(1).elem)); }

void quantize(Call& call) {
  const std::int64_t chosen = call.integer("output_dtype", 0);
  call.set(0, with_elem(call.in(0), call.has(2) ? call.in(2).elem : chosen != 0 ? chosen : kUint8));
}

void dequantize(Call& call) {
  const std::int64_t chosen = call.integer("output_dtype", 0);
  call.set(0, with_elem(call.in(0), chosen != 0 ? chosen : call.in(1).elem));
}

void dynamic_quantize(Call& call) {
  call.set(0, with_elem(call.in(0), kUint8));
  call.set(1, kFloat, {});
  call.set(2, kUint8, {});
}

}  // namespace berth::internal::plan::onnx::rules
