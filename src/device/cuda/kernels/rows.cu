// SPDX-License-Identifier: Apache-2.0
#include "device/cuda/kernels/rows.cuh"

// Row kernels among the quick dtypes (quads.h), which models are made of.
namespace berth::internal::device::cuda {

namespace {

template <DType From, DType To>
struct Launcher {
  static constexpr LaunchRows value = launch_pair<From, To>;
};
template <DType Same>
struct Launcher<Same, Same> {
  static constexpr LaunchRows value = nullptr;
};

constexpr PairTable<LaunchRows> kLaunchers = make_pair_table<LaunchRows, Launcher>();

template <DType From, DType To>
struct Loader {
  static constexpr LoadKernel value = load_kernel<convert_rows<From, To>>;
};
template <DType Same>
struct Loader<Same, Same> {
  static constexpr LoadKernel value = load_kernel<convert_rows<DType::u8, DType::u8>>;
};

}  // namespace

bool has_rows(DType from, DType to) noexcept { return from == to ? from == DType::u8 : has_quads(from) && has_quads(to); }

Status load_rows() noexcept {
  const Status done = load_all(make_pair_table<LoadKernel, Loader>());
  return done ? load_integer_rows() : done;
}

Status launch_rows(DType from, DType to, const RowsTask& task, StreamHandle stream) noexcept {
  if (from == to) return launch_pair<DType::u8, DType::u8>(task, stream);
  if (is_quick(from) && is_quick(to)) return kLaunchers[quick_index(from)][quick_index(to)](task, stream);
  const LaunchRows found = integer_rows(from, to);
  return found != nullptr ? found(task, stream) : Failure{ErrorCode::unsupported, 0, "there is no kernel for rows of these dtypes"};
}

}  // namespace berth::internal::device::cuda
