// SPDX-License-Identifier: Apache-2.0
#include "copy/kernels/kernels.h"
#include "copy/kernels/plain_moves.h"

namespace berth::internal::copy {

const Kernels& plain_kernels() noexcept {
  static constexpr Kernels kPlain = {
      .name = "plain",
      .casts = {},
      .gather = {plain::gather<1>, plain::gather<2>, plain::gather<4>, plain::gather<8>, plain::gather<16>},
      .scatter = {plain::scatter<1>, plain::scatter<2>, plain::scatter<4>, plain::scatter<8>, plain::scatter<16>},
      .transpose = {plain::transpose<1>, plain::transpose<2>, plain::transpose<4>, plain::transpose<8>, plain::transpose<16>},
      .copy_runs = plain::copy_runs,
      .stream_runs = plain::stream_runs,
      .flush_stream = plain::flush_stream};
  return kPlain;
}

}  // namespace berth::internal::copy
