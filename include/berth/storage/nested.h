// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <iterator>
#include <span>
#include <type_traits>
#include <utility>
#include <vector>

#include "berth/storage/create.h"

// Storages from nested values, whose shape is that of the values: lists in braces, up to four deep, and containers of
// containers of any depth (anything with std::data and std::size).
//
//     Storage a = from_data({1.0F, 2.0F, 3.0F}, "cpu");                        // [3]
//     Storage b = from_data({{1, 2}, {3, 4}, {5, 6}}, "cuda:0", DType::f32);   // [3, 2]
//     Storage c = from_data(std::vector<std::vector<float>>{…}, "cpu");
//
// Rows of one level have equal lengths, else ArgumentError(size_mismatch). The values are gathered on the host first;
// in everything else this is from_data with a shape. Any thread.
namespace berth {

template <class Values>
concept NestedRows = requires(const Values& values) {
  std::data(values);
  std::size(values);
};

template <class Values>
struct InnermostOf {
  using type = Values;
};
template <NestedRows Values>
struct InnermostOf<Values> {
  using type = typename InnermostOf<std::remove_cvref_t<decltype(*std::data(std::declval<const Values&>()))>>::type;
};
template <class Values>
using InnermostElement = typename InnermostOf<Values>::type;

[[noreturn]] BERTH_EXPORT void throw_ragged(std::size_t axis, std::int64_t first, std::int64_t other);

template <class Values>
constexpr std::size_t nested_depth() noexcept {
  if constexpr (NestedRows<Values>)
    return 1 + nested_depth<std::remove_cvref_t<decltype(*std::data(std::declval<const Values&>()))>>();
  else
    return 0;
}

// The innermost values in order, and how many there are along each axis.
template <class T, std::size_t kDepth>
struct NestedValues {
  // A vector of bools has no address.
  std::vector<std::conditional_t<std::is_same_v<T, bool>, unsigned char, T>> values;
  std::array<std::int64_t, kDepth> dims{};  // 0 where no row shows how long those inside would be
  std::size_t known = 0;                    // of dims

  template <class Values>
  void add(const Values& given, std::size_t axis) {
    if constexpr (NestedRows<Values>) {
      const auto count = static_cast<std::int64_t>(std::size(given));
      if (known == axis) dims[known++] = count;
      if (dims[axis] != count) throw_ragged(axis, dims[axis], count);
      for (const auto& row : given) add(row, axis + 1);
    } else {
      values.push_back(given);
    }
  }
};

template <NestedRows Values>
Storage from_data(const Values& values, const AllocatorRef& where, DType dtype = dtype_of<InnermostElement<Values>>(),
                  const AllocationOptions& options = {}, Site site = Site::here()) {
  using T = InnermostElement<Values>;
  NestedValues<T, nested_depth<Values>()> all;
  all.add(values, 0);
  return from_values(all.values.data(), all.values.size(), dtype_of<T>(), Shape(std::span<const std::int64_t>(all.dims)), where, dtype,
                     options, site);
}

template <class T>
Storage from_data(std::initializer_list<T> values, const AllocatorRef& where, DType dtype = dtype_of<T>(),
                  const AllocationOptions& options = {}, Site site = Site::here()) {
  return from_data<std::initializer_list<T>>(values, where, dtype, options, site);
}
template <class T>
Storage from_data(std::initializer_list<std::initializer_list<T>> values, const AllocatorRef& where, DType dtype = dtype_of<T>(),
                  const AllocationOptions& options = {}, Site site = Site::here()) {
  return from_data<std::initializer_list<std::initializer_list<T>>>(values, where, dtype, options, site);
}
template <class T>
Storage from_data(std::initializer_list<std::initializer_list<std::initializer_list<T>>> values, const AllocatorRef& where,
                  DType dtype = dtype_of<T>(), const AllocationOptions& options = {}, Site site = Site::here()) {
  return from_data<std::initializer_list<std::initializer_list<std::initializer_list<T>>>>(values, where, dtype, options, site);
}
template <class T>
Storage from_data(std::initializer_list<std::initializer_list<std::initializer_list<std::initializer_list<T>>>> values,
                  const AllocatorRef& where, DType dtype = dtype_of<T>(), const AllocationOptions& options = {}, Site site = Site::here()) {
  return from_data<std::initializer_list<std::initializer_list<std::initializer_list<std::initializer_list<T>>>>>(values, where, dtype,
                                                                                                                  options, site);
}

}  // namespace berth
