// SPDX-License-Identifier: Apache-2.0
#include "plan/onnx/call.h"

#include <algorithm>

#include "berth/base/shape.h"

namespace berth::internal::plan::onnx {

const TensorType& Call::in(std::size_t input) const noexcept {
  static const TensorType nothing;
  return has(input) ? *inputs_[input].type : nothing;
}

const std::vector<std::int64_t>* Call::ints(std::size_t input) const noexcept {
  const Contents* const known = contents(input);
  return known != nullptr && known->floats.empty() ? &known->ints : nullptr;
}

const std::vector<std::int64_t>* Call::known_ints(std::size_t input) const noexcept {
  const auto* const all = ints(input);
  return all != nullptr && std::ranges::find(*all, kUnknownInt) == all->end() ? all : nullptr;
}

std::int64_t Call::integer(std::string_view name, std::int64_t otherwise) const noexcept {
  const Attribute* const attribute = node_.find(name);
  return attribute == nullptr ? otherwise : attribute->i;
}

std::string_view Call::text(std::string_view name, std::string_view otherwise) const noexcept {
  const Attribute* const attribute = node_.find(name);
  return attribute == nullptr ? otherwise : attribute->s;
}

const std::vector<std::int64_t>* Call::int_list(std::string_view name) const noexcept {
  const Attribute* const attribute = node_.find(name);
  return attribute == nullptr ? nullptr : &attribute->ints;
}

Call::Given Call::attribute_or_input(std::string_view name, std::size_t input) const noexcept {
  if (const auto* const list = int_list(name)) return {.given = true, .ints = list};
  if (has(input)) return {.given = true, .ints = known_ints(input)};
  return {};
}

// A rank above kMaxRank counts as unknown.
void Call::set(std::size_t output, TensorType type) {
  if (output >= types_.size()) return;
  if (type.dims.size() > kMaxRank) type = TensorType::of(type.elem);
  types_[output] = std::move(type);
}

void Call::set_contents(std::size_t output, Contents contents) {
  if (output < contents_.size()) contents_[output] = std::move(contents);
}

}  // namespace berth::internal::plan::onnx
