// SPDX-License-Identifier: Apache-2.0
#include "berth/base/checked.h"

#include "base/text.h"
#include "berth/base/error.h"

namespace berth {

using namespace internal;

namespace {

[[noreturn]] void throw_size_overflow(std::size_t a, std::size_t b, const char* operation, const char* what) {
  throw ArgumentError(
      ErrorCode::size_overflow,
      {text::join("computing ", std::string_view(what)), text::join(a, ' ', std::string_view(operation), ' ', b, " is too large"),
       "check the dimensions and counts: no machine has that much memory"},
      {{"a", a}, {"b", b}});
}

}  // namespace

void throw_does_not_fit(const std::string& value, std::size_t bits, const char* what) {
  throw ArgumentError(ErrorCode::size_overflow,
                      {text::join("computing ", std::string_view(what)), text::join(value, " does not fit in ", bits, " bits"),
                       "check where the number comes from"},
                      {{"value", value}, {"bits", bits}});
}

std::size_t checked_add(std::size_t a, std::size_t b, const char* what) {
  const auto sum = try_add(a, b);
  if (!sum) throw_size_overflow(a, b, "+", what);
  return *sum;
}

std::size_t checked_multiply(std::size_t a, std::size_t b, const char* what) {
  const auto product = try_multiply(a, b);
  if (!product) throw_size_overflow(a, b, "*", what);
  return *product;
}

std::size_t checked_align_up(std::size_t value, std::size_t alignment, const char* what) {
  const auto aligned = try_align_up(value, alignment);
  if (!aligned) throw_size_overflow(value, alignment, "rounded up to", what);
  return *aligned;
}

}  // namespace berth
