// SPDX-License-Identifier: Apache-2.0
#include "device/cuda/kernels/rows.cuh"

// Row kernels from and to bool, u8, i32 and i64.
namespace berth::internal::device::cuda {

namespace {

constexpr std::array kAll = {DType::f32, DType::f64, DType::f16, DType::bf16, DType::f8e4m3, DType::f8e5m2,
                             DType::i8,  DType::u8,  DType::i32, DType::i64,  DType::boolean};

// Excludes pairs that keep their bits, and those of rows.cu.
constexpr bool is_here(DType from, DType to) noexcept {
  const bool bytes = (from == DType::i8 || from == DType::u8) && (to == DType::i8 || to == DType::u8);
  return from != to && !bytes && !(is_quick(from) && is_quick(to));
}

struct Entry {
  DType from;
  DType to;
  LaunchRows launch;
  LoadKernel load;
};

template <DType From, DType To>
constexpr Entry entry() noexcept {
  if constexpr (is_here(From, To))
    return {From, To, launch_pair<From, To>, load_kernel<convert_rows<From, To>>};
  else
    return {From, To, nullptr, nullptr};
}

template <std::size_t... Number>
constexpr std::array<Entry, sizeof...(Number)> entries(std::index_sequence<Number...>) noexcept {
  return {entry<kAll[Number / kAll.size()], kAll[Number % kAll.size()]>()...};
}

constexpr auto kEntries = entries(std::make_index_sequence<kAll.size() * kAll.size()>());

}  // namespace

LaunchRows integer_rows(DType from, DType to) noexcept {
  for (const Entry& one : kEntries) {
    if (one.from == from && one.to == to) return one.launch;
  }
  return nullptr;
}

Status load_integer_rows() noexcept {
  for (const Entry& one : kEntries) {
    if (one.load == nullptr) continue;
    if (const Status done = one.load(); !done) return done;
  }
  return {};
}

}  // namespace berth::internal::device::cuda
