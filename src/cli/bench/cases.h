// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "berth/base/dtype.h"
#include "berth/base/shape.h"
#include "berth/device/device.h"

// The cases of `berth bench copy`, as data. Scripts depend on the names: they are stable.
namespace berth::internal::cli {

enum class BenchKind : std::uint8_t {
  copy,   // one copy_from
  batch,  // one copy_batch, compared with one copy of as many bytes
  small,  // many sequential copy_from; the time is per copy
};

// The layout of the source; the target is always dense. The shape is that of the source's memory.
enum class BenchLayout : std::uint8_t {
  contiguous,
  inner_stride,  // every second element
  transposed,
  reversed,
  nhwc,  // from N C H W to N H W C
  nchw,  // from N H W C to N C H W
};
std::string_view to_string(BenchKind kind) noexcept;
std::string_view to_string(BenchLayout layout) noexcept;

struct BenchCase {
  std::string name;
  BenchKind kind = BenchKind::copy;
  BenchLayout layout = BenchLayout::contiguous;
  DType from = DType::f32;
  DType to = DType::f32;
  Shape shape = {};          // of the source's memory; of a batch: {pieces, elements per piece}
  bool beside_torch = true;  // whether PyTorch is measured too
  Device source_device = {};
  Device target_device = {};
  bool cold = false;  // the target is new, untouched memory each time
};

// The default table. `quick` makes everything small: the figures are meaningless then.
std::vector<BenchCase> bench_cases(bool quick);

// The cases of a device: copies within it under the same names, every pair of the dtypes that models use, and
// copies from and to the host.
std::vector<BenchCase> device_bench_cases(Device device, bool quick);

// Every pair of dtypes in four layouts, and images of few and of many channels; compared with memcpy only.
std::vector<BenchCase> full_bench_cases(bool quick);

}  // namespace berth::internal::cli
