// SPDX-License-Identifier: Apache-2.0
#include "plan/read/runtime_types.h"

#include <iterator>
#include <utility>

#include "base/text.h"

namespace berth::internal::plan::read {

namespace {

std::optional<DType> dtype_named(std::string_view name) {
  for (const DTypeInfo& one : all_dtypes())
    if (one.name == name) return one.dtype;
  return std::nullopt;
}

}  // namespace

std::optional<RuntimeType> type_named(std::string_view name) {
  if (name == "bool") return RuntimeType{1, DType::boolean};
  if (name.empty() || name == "handle") return RuntimeType{sizeof(void*), std::nullopt};
  const std::size_t digits = name.find_first_of("0123456789");
  if (digits == std::string_view::npos) return std::nullopt;
  std::size_t at = digits;
  const auto number = [&]() -> std::size_t {
    std::size_t value = 0;
    for (; at < name.size() && name[at] >= '0' && name[at] <= '9' && value < 1024; ++at)
      value = 10 * value + static_cast<std::size_t>(name[at] - '0');
    return value;
  };
  const std::size_t bits = number();
  std::size_t lanes = 1;
  if (at < name.size() && name[at] == 'x') {
    ++at;
    lanes = number();
  }
  const bool is_whole = at == name.size() || name[at] == '_';  // as in float8_e4m3fn
  if (!is_whole || bits == 0 || bits > 1024 || lanes == 0 || lanes > 1024) return std::nullopt;
  RuntimeType type{(bits * lanes + 7) / 8, std::nullopt};
  constexpr std::pair<std::string_view, std::string_view> kKinds[] = {{"float", "f"}, {"int", "i"}, {"uint", "u"}, {"bfloat", "bf"}};
  for (const auto& [theirs, ours] : kKinds)
    if (name.substr(0, digits) == theirs && lanes == 1 && at == name.size()) type.dtype = dtype_named(text::join(ours, bits));
  return type;
}

std::optional<RuntimeType> type_numbered(std::int64_t number) {
  constexpr DType kNumbered[] = {DType::f32,     DType::f64, DType::f16, DType::u8,  DType::i32, DType::i8,  DType::i64,
                                 DType::boolean, DType::i16, DType::u16, DType::u32, DType::u64, DType::bf16};
  if (number < 0 || number >= std::ssize(kNumbered)) return std::nullopt;
  const DType dtype = kNumbered[number];
  return RuntimeType{size_bytes(dtype), dtype};
}

}  // namespace berth::internal::plan::read
