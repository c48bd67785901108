// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <utility>

#include "berth/base/dtype.h"
#include "berth/base/result.h"

// Tables with one entry for each pair of the dtypes that have fast conversions.
namespace berth::internal::device::cuda {

inline constexpr std::array kQuickDTypes = {DType::f32, DType::f64, DType::f16, DType::bf16, DType::f8e4m3, DType::f8e5m2, DType::i8};

// REQUIRES: is_quick(dtype).
constexpr std::size_t quick_index(DType dtype) noexcept {
  std::size_t index = 0;
  while (kQuickDTypes[index] != dtype) ++index;
  return index;
}

template <class Entry>
using PairTable = std::array<std::array<Entry, kQuickDTypes.size()>, kQuickDTypes.size()>;

namespace pairs {

template <class Entry, template <DType, DType> class Of, DType From, std::size_t... To>
constexpr std::array<Entry, sizeof...(To)> row(std::index_sequence<To...>) noexcept {
  return {Of<From, kQuickDTypes[To]>::value...};
}
template <class Entry, template <DType, DType> class Of, std::size_t... From>
constexpr PairTable<Entry> table(std::index_sequence<From...> all) noexcept {
  return {row<Entry, Of, kQuickDTypes[From]>(all)...};
}

}  // namespace pairs

// Of<From, To>::value for each pair.
template <class Entry, template <DType, DType> class Of>
constexpr PairTable<Entry> make_pair_table() noexcept {
  return pairs::table<Entry, Of>(std::make_index_sequence<kQuickDTypes.size()>());
}

using LoadKernel = Status (*)() noexcept;

// Loads kernels until one fails.
template <std::size_t Count>
Status load_all(const LoadKernel (&loads)[Count]) noexcept {
  for (const LoadKernel load : loads) {
    if (const Status done = load(); !done) return done;
  }
  return {};
}
inline Status load_all(const PairTable<LoadKernel>& loads) noexcept {
  for (const auto& row : loads) {
    for (const LoadKernel load : row) {
      if (const Status done = load(); !done) return done;
    }
  }
  return {};
}

}  // namespace berth::internal::device::cuda
