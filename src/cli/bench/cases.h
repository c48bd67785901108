// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "berth/base/dtype.h"
#include "berth/base/shape.h"
#include "berth/device/device.h"

// What `berth bench copy` measures, as data. Names are for scripts and stay as they are.
namespace berth::internal::cli {

enum class BenchKind : std::uint8_t {
  copy,   // one copy_from
  batch,  // one copy_batch, beside one copy of as many bytes
  small,  // many copy_from, one after another; the time is that of one
};

// How the source lies; the target is always dense. The shape is that of the source's memory.
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
  Shape shape = {};          // of the source's memory; of a batch: pieces, elements of each
  bool beside_torch = true;  // whether PyTorch is asked to do the same
  Device source_device = {};
  Device target_device = {};
  bool cold = false;  // the target is new memory each time, which nobody has touched
};

// The table that everyone sees. `quick` makes everything small: figures mean nothing then.
std::vector<BenchCase> bench_cases(bool quick);

// What concerns a device: copies within it by the same names, every pair of the dtypes that models are made of, and from and to the host.
std::vector<BenchCase> device_bench_cases(Device device, bool quick);

// Every pair of dtypes in four layouts, and pictures of few and of many channels; beside memcpy alone.
std::vector<BenchCase> full_bench_cases(bool quick);

}  // namespace berth::internal::cli
