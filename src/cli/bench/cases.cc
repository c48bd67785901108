// SPDX-License-Identifier: Apache-2.0
#include "cli/bench/cases.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <bit>
#include <utility>

#include "berth/base/units.h"

namespace berth::internal::cli {

namespace {

constexpr std::array kDTypes = {DType::f32, DType::f64, DType::f16, DType::bf16, DType::f8e4m3, DType::f8e5m2,
                                DType::i8,  DType::u8,  DType::i32, DType::i64,  DType::boolean};

std::string pair_name(DType from, DType to) { return fmt::format("{}-{}", to_string(from), to_string(to)); }

// The number of elements that take `bytes` on the side with the larger dtype.
std::size_t elements_in(std::size_t bytes, DType from, DType to) { return bytes / std::max(size_bytes(from), size_bytes(to)); }

void add_conversions(std::vector<BenchCase>& out, std::size_t bytes) {
  using enum DType;
  constexpr std::array<std::array<DType, 2>, 8> kPairs = {
      {{f32, bf16}, {bf16, f32}, {f32, f16}, {f16, f32}, {f32, f8e4m3}, {f8e4m3, f32}, {i8, f32}, {f32, i8}}};
  for (const auto& [from, to] : kPairs)
    out.push_back({.name = "convert/" + pair_name(from, to), .from = from, .to = to, .shape = {elements_in(bytes, from, to)}});
}

void add_transposes(std::vector<BenchCase>& out, const char* family, std::int64_t rows, std::int64_t columns) {
  for (const DType dtype : {DType::f32, DType::u8})
    out.push_back({.name = fmt::format("{}/{}", family, to_string(dtype)),
                   .layout = BenchLayout::transposed,
                   .from = dtype,
                   .to = dtype,
                   .shape = {rows, columns}});
}

// As square as possible with a power of two rows.
Shape matrix(std::size_t elements) {
  const std::size_t rows = std::size_t{1} << ((std::bit_width(elements) - 1) / 2);
  return {rows, elements / rows};
}

Shape memory_shape(BenchLayout layout, std::size_t elements) {
  if (layout == BenchLayout::inner_stride) return {2 * elements};
  return layout == BenchLayout::transposed ? matrix(elements) : Shape{elements};
}

void add_pictures(std::vector<BenchCase>& out, std::size_t bytes, std::size_t channels, std::size_t side) {
  using enum DType;
  constexpr std::array<std::array<DType, 2>, 5> kPairs = {{{f32, f32}, {u8, u8}, {bf16, bf16}, {f32, bf16}, {bf16, f32}}};
  for (const BenchLayout layout : {BenchLayout::nhwc, BenchLayout::nchw}) {
    for (const auto& [from, to] : kPairs) {
      const std::size_t count = std::max<std::size_t>(1, elements_in(bytes, from, to) / (channels * side * side));
      const std::string types = from == to ? std::string(to_string(from)) : pair_name(from, to);
      out.push_back({.name = fmt::format("{}/C{}/{}", to_string(layout), channels, types),
                     .layout = layout,
                     .from = from,
                     .to = to,
                     .shape = layout == BenchLayout::nhwc ? Shape{count, channels, side, side} : Shape{count, side, side, channels},
                     .beside_torch = false});
    }
  }
}

}  // namespace

std::string_view to_string(BenchKind kind) noexcept {
  switch (kind) {
    case BenchKind::copy: return "copy";
    case BenchKind::batch: return "batch";
    case BenchKind::small: return "small";
  }
  return "";
}

std::string_view to_string(BenchLayout layout) noexcept {
  switch (layout) {
    case BenchLayout::contiguous: return "contiguous";
    case BenchLayout::inner_stride: return "inner_stride";
    case BenchLayout::transposed: return "transposed";
    case BenchLayout::reversed: return "reversed";
    case BenchLayout::nhwc: return "nhwc";
    case BenchLayout::nchw: return "nchw";
  }
  return "";
}

std::vector<BenchCase> bench_cases(bool quick) {
  const std::int64_t side = quick ? 256 : 8192;
  std::vector<BenchCase> out;
  out.push_back({.name = "copy/f32", .shape = {(quick ? 1_MiB : 1_GiB) / 4}});
  add_conversions(out, quick ? 256_KiB : 256_MiB);
  add_transposes(out, "transpose", side, side);
  add_transposes(out, "transpose_odd", side - 1, side + 1);
  out.push_back({.name = "nhwc/f32", .layout = BenchLayout::nhwc, .shape = quick ? Shape{2, 64, 16, 16} : Shape{32, 64, 128, 128}});
  out.push_back({.name = "transpose_convert/f32-bf16", .layout = BenchLayout::transposed, .to = DType::bf16, .shape = {side, side}});
  out.push_back({.name = "batch/16KiB", .kind = BenchKind::batch, .shape = {quick ? 64 : 4096, 16_KiB / 4}});
  out.push_back({.name = "small/64B", .kind = BenchKind::small, .shape = {16}});
  return out;
}

std::vector<BenchCase> device_bench_cases(Device device, bool quick) {
  using enum DType;
  constexpr std::array kPairs = {f32, f16, bf16, f8e4m3, f8e5m2, i8, f64};
  const std::size_t bytes = quick ? 256_KiB : 1_GiB;
  const std::size_t across = quick ? 1_MiB : 2_GiB;
  std::vector<BenchCase> out = {{.name = "copy/f32", .shape = {bytes / 4}}};
  for (const DType from : kPairs) {
    for (const DType to : kPairs) {
      if (from == to) continue;
      out.push_back({.name = "convert/" + pair_name(from, to), .from = from, .to = to, .shape = {elements_in(bytes, from, to)}});
    }
  }
  for (const BenchCase& one : bench_cases(quick)) {
    if (one.name.starts_with("transpose") || one.name.starts_with("nhwc")) out.push_back(one);
  }
  for (BenchCase& one : out) one.source_device = one.target_device = device;
  const auto add = [&](const char* name, Device from, Device to, bool cold = false) {
    out.push_back({.name = name, .shape = {across / 4}, .source_device = from, .target_device = to, .cold = cold});
  };
  add("h2d/pinned", "pinned", device);
  add("h2d/pageable", "cpu", device);
  add("d2h/pinned", device, "pinned");
  add("d2h/pool_warm", device, "cpu");
  add("d2h/pool_cold", device, "cpu", true);
  for (const auto& [name, place] : {std::pair("batch/16KiB", Device("pinned")), std::pair("batch_pageable/16KiB", Device("cpu"))})
    out.push_back({.name = name,
                   .kind = BenchKind::batch,
                   .shape = {quick ? 64 : 4096, 16_KiB / 4},
                   .source_device = place,
                   .target_device = device});
  return out;
}

std::vector<BenchCase> full_bench_cases(bool quick) {
  using enum BenchLayout;
  const std::size_t bytes = quick ? 16_KiB : 64_MiB;
  std::vector<BenchCase> out;
  for (const BenchLayout layout : {contiguous, inner_stride, transposed, reversed})
    for (const DType from : kDTypes)
      for (const DType to : kDTypes)
        out.push_back({.name = fmt::format("full/{}/{}", to_string(layout), pair_name(from, to)),
                       .layout = layout,
                       .from = from,
                       .to = to,
                       .shape = memory_shape(layout, elements_in(bytes, from, to)),
                       .beside_torch = false});
  add_pictures(out, bytes, 3, quick ? 16 : 256);
  add_pictures(out, bytes, 64, quick ? 8 : 64);
  add_pictures(out, bytes, 2048, quick ? 2 : 7);
  return out;
}

}  // namespace berth::internal::cli
