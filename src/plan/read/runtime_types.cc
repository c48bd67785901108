// SPDX-License-Identifier: Apache-2.0
#include "plan/read/runtime_types.h"

#include <algorithm>
#include <iterator>
#include <string>
#include <utility>

#include "base/text.h"

namespace berth::internal::plan::read {

namespace {

constexpr std::size_t kMost = 1024;  // bits, and lanes

struct Kind {
  std::string_view name;
  std::size_t bits;       // where the name says none; 0: it must
  std::string_view ours;  // before the bits; empty where berth has none
};

constexpr Kind kKinds[] = {{"int", 32, "i"},   {"uint", 32, "u"},   {"float", 32, "f"},    {"bfloat", 0, "bf"},
                           {"handle", 64, ""}, {"bool", 1, "bool"}, {"e4m3_float", 8, ""}, {"e5m2_float", 8, ""}};

bool is_digit(char c) { return c >= '0' && c <= '9'; }

// Takes the digits at the start of `text`; 0 where there are none, or too many.
std::size_t take_number(std::string_view& text) {
  std::size_t value = 0;
  for (; !text.empty() && is_digit(text.front()); text.remove_prefix(1))
    value = std::min(10 * value + static_cast<std::size_t>(text.front() - '0'), kMost + 1);
  return value > kMost ? 0 : value;
}

// Takes the lanes at the end, as in float32x4. 1 where there are none; 0 where there are too many.
std::size_t take_lanes(std::string_view& name) {
  const std::size_t x = name.rfind('x');
  if (x == std::string_view::npos || x + 1 == name.size() || !std::ranges::all_of(name.substr(x + 1), is_digit)) return 1;
  std::string_view digits = name.substr(x + 1);
  name = name.substr(0, x);
  return take_number(digits);
}

std::optional<DType> dtype_named(std::string_view name) {
  for (const DTypeInfo& one : all_dtypes())
    if (one.name == name) return one.dtype;
  return std::nullopt;
}

std::optional<RuntimeType> type_of(const Kind& kind, std::string_view rest, std::size_t lanes) {
  const bool says_bits = !rest.empty() && is_digit(rest.front());
  const std::size_t bits = says_bits ? take_number(rest) : kind.bits;
  const bool is_variant = rest.starts_with('_') && kind.name == "float" && rest.size() > 1;  // float8_e4m3fn
  const bool is_bool = kind.ours == "bool";
  if (bits == 0 || lanes == 0 || (!rest.empty() && !is_variant) || (says_bits && is_bool)) return std::nullopt;
  RuntimeType type{(bits * lanes + 7) / 8, std::nullopt};
  if (lanes == 1 && rest.empty() && !kind.ours.empty())
    type.dtype = dtype_named(is_bool ? std::string("bool") : text::join(kind.ours, bits));
  return type;
}

}  // namespace

std::optional<RuntimeType> type_named(std::string_view name) {
  if (name.empty()) return RuntimeType{sizeof(void*), std::nullopt};
  const std::size_t lanes = take_lanes(name);
  for (const Kind& kind : kKinds)
    if (name.starts_with(kind.name))
      if (const std::optional<RuntimeType> type = type_of(kind, name.substr(kind.name.size()), lanes)) return type;
  return std::nullopt;
}

std::optional<RuntimeType> type_numbered(std::int64_t number) {
  constexpr DType kNumbered[] = {DType::f32,     DType::f64, DType::f16, DType::u8,  DType::i32, DType::i8,  DType::i64,
                                 DType::boolean, DType::i16, DType::u16, DType::u32, DType::u64, DType::bf16};
  if (number < 0 || number >= std::ssize(kNumbered)) return std::nullopt;
  const DType dtype = kNumbered[number];
  return RuntimeType{size_bytes(dtype), dtype};
}

}  // namespace berth::internal::plan::read
