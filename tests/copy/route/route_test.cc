// SPDX-License-Identifier: Apache-2.0
#include "berth/copy/route.h"

#include <gtest/gtest.h>

#include <string>

#include "support/errors.h"
#include "support/everything.h"

namespace berth::testing {
namespace {

// The abilities that a route depends on, for devices that this machine need not have.
constexpr Abilities kHost{.host_access = true};
constexpr Abilities kLocked{.host_access = true, .pinned = true};
constexpr Abilities kGpu{.kernels = true, .wants_pinned = true};
constexpr Abilities kPlain{};  // neither kernels nor preferences

RouteEnd on(Device device, const Abilities& abilities, DType dtype, const Shape& shape, const Strides& strides) {
  return {device, dtype, shape, strides, abilities};
}

constexpr auto kF32 = DType::f32;
const Shape kShape{8, 4};
const Strides kRowMajor{4, 1};
const Strides kTransposed{1, 8};
const Strides kPitched{6, 1};

struct Case {
  const char* name;
  RouteEnd source;
  RouteEnd target;
  RouteSettings settings;
  std::string route;
};

std::vector<Case> cases() {
  const RouteEnd host = on("cpu", kHost, kF32, kShape, kRowMajor);
  const RouteEnd host_pitched = on("cpu", kHost, kF32, kShape, kPitched);
  const RouteEnd host_transposed = on("cpu", kHost, kF32, kShape, kTransposed);
  const RouteEnd host_bf16 = on("cpu", kHost, DType::bf16, kShape, kRowMajor);
  const RouteEnd locked = on("pinned", kLocked, kF32, kShape, kRowMajor);
  const RouteEnd locked_bf16 = on("pinned", kLocked, DType::bf16, kShape, kRowMajor);
  const RouteEnd locked_f64 = on("pinned", kLocked, DType::f64, kShape, kRowMajor);
  const RouteEnd locked_i32 = on("pinned", kLocked, DType::i32, kShape, kRowMajor);
  const RouteEnd gpu = on("cuda:0", kGpu, kF32, kShape, kRowMajor);
  const RouteEnd gpu_bf16 = on("cuda:0", kGpu, DType::bf16, kShape, kRowMajor);
  const RouteEnd gpu_f64 = on("cuda:0", kGpu, DType::f64, kShape, kRowMajor);
  const RouteEnd gpu_pitched = on("cuda:0", kGpu, kF32, kShape, kPitched);
  const RouteEnd gpu_transposed = on("cuda:0", kGpu, kF32, kShape, kTransposed);
  const RouteEnd other = on("cuda:1", kGpu, kF32, kShape, kRowMajor);
  const RouteEnd other_bf16 = on("cuda:1", kGpu, DType::bf16, kShape, kRowMajor);
  const RouteEnd other_f64 = on("cuda:1", kGpu, DType::f64, kShape, kRowMajor);
  const RouteEnd other_pitched = on("cuda:1", kGpu, kF32, kShape, kPitched);
  const RouteEnd plain = on("sim:0", kPlain, kF32, kShape, kRowMajor);
  const RouteEnd plain_bf16 = on("sim:0", kPlain, DType::bf16, kShape, kRowMajor);
  const RouteEnd plain_pitched = on("sim:0", kPlain, kF32, kShape, kPitched);
  const RouteEnd plain_transposed = on("sim:0", kPlain, kF32, kShape, kTransposed);
  const RouteEnd far = on("sim:1", kPlain, kF32, kShape, kRowMajor);
  const RouteEnd far_bf16 = on("sim:1", kPlain, DType::bf16, kShape, kRowMajor);
  const RouteSettings none;
  const RouteSettings peer{.source_reaches = true, .target_reaches = true};
  const RouteSettings pushed{.source_reaches = true};
  const RouteSettings overlap{.overlap = true};
  const RouteSettings small{.piece_bytes = 64};
  return {
      // On the host.
      {"one run", host, host, none, "host cpu:0: source f32 -> target f32, whole"},
      {"one run, converted", host, host_bf16, none, "host cpu:0: source f32 -> target bf16, whole"},
      {"rows", host_pitched, host, none, "host cpu:0: source f32 -> target f32, rows"},
      {"a transpose", host_transposed, host_bf16, none, "host cpu:0: source f32 -> target bf16, tiles"},
      {"two kinds of host memory", locked, host_pitched, none, "host cpu:0: source f32 -> target f32, rows"},
      {"equally permuted", host_transposed, host_transposed, none, "host cpu:0: source f32 -> target f32, whole"},
      // To and from a device with kernels that wants page-locked memory.
      {"pageable to device", host, gpu, none,
       "host cpu:0: source f32 -> staging f32, whole\ntransfer cuda:0: staging f32 -> target f32, whole\n"
       "1 piece of 32 elements, staging on pinned:0"},
      {"page-locked to device", locked, gpu, none, "transfer cuda:0: source f32 -> target f32, whole"},
      {"device to pageable", gpu, host, none,
       "transfer cuda:0: source f32 -> staging f32, whole\nhost cpu:0: staging f32 -> target f32, whole\n"
       "1 piece of 32 elements, staging on pinned:0"},
      {"device to page-locked", gpu, locked, none, "transfer cuda:0: source f32 -> target f32, whole"},
      {"in pieces", host, gpu, small,
       "host cpu:0: source f32 -> staging f32, whole\ntransfer cuda:0: staging f32 -> target f32, whole\n"
       "2 pieces of 16 elements, staging on pinned:0"},
      {"narrowed before the bus, by the host", host, gpu_bf16, none,
       "host cpu:0: source f32 -> staging bf16, whole\ntransfer cuda:0: staging bf16 -> target bf16, whole\n"
       "1 piece of 32 elements, staging on pinned:0"},
      {"widened behind the bus, by the device", locked, gpu_f64, none,
       "transfer cuda:0: source f32 -> target_scratch f32, whole\nkernel cuda:0: target_scratch f32 -> target f64, whole\n"
       "1 piece of 32 elements"},
      {"widened behind the bus, pageable", host_pitched, gpu_f64, none,
       "host cpu:0: source f32 -> staging f32, rows\ntransfer cuda:0: staging f32 -> target_scratch f32, whole\n"
       "kernel cuda:0: target_scratch f32 -> target f64, whole\n1 piece of 32 elements, staging on pinned:0"},
      {"narrowed before the bus, by the device", gpu, locked_bf16, none,
       "kernel cuda:0: source f32 -> source_scratch bf16, whole\ntransfer cuda:0: source_scratch bf16 -> target bf16, whole\n"
       "1 piece of 32 elements"},
      {"widened behind the bus, by the host", gpu, locked_f64, none,
       "transfer cuda:0: source f32 -> staging f32, whole\nhost cpu:0: staging f32 -> target f64, whole\n"
       "1 piece of 32 elements, staging on pinned:0"},
      {"of equal size, by the device", gpu, locked_i32, none,
       "kernel cuda:0: source f32 -> source_scratch i32, whole\ntransfer cuda:0: source_scratch i32 -> target i32, whole\n"
       "1 piece of 32 elements"},
      {"gathered by the device", gpu_transposed, locked, none,
       "kernel cuda:0: source f32 -> source_scratch f32, tiles\ntransfer cuda:0: source_scratch f32 -> target f32, whole\n"
       "1 piece of 32 elements"},
      {"gathered by the host, scattered by the device", host_pitched, gpu_pitched, none,
       "host cpu:0: source f32 -> staging f32, rows\ntransfer cuda:0: staging f32 -> target_scratch f32, whole\n"
       "kernel cuda:0: target_scratch f32 -> target f32, rows\n1 piece of 32 elements, staging on pinned:0"},
      {"a transpose to the device, dense on the host", on("pinned", kLocked, kF32, kShape, kTransposed), gpu, none,
       "transfer cuda:0: source f32 -> target_scratch f32, whole\nkernel cuda:0: target_scratch f32 -> target f32, tiles\n"
       "1 piece of 32 elements"},
      {"a transpose from the device, with gaps on the host", gpu, on("pinned", kLocked, kF32, kShape, {1, 10}), none,
       "kernel cuda:0: source f32 -> source_scratch f32, tiles\ntransfer cuda:0: source_scratch f32 -> staging f32, whole\n"
       "host cpu:0: staging f32 -> target f32, rows\n1 piece of 32 elements, staging on pinned:0"},
      // Within a device.
      {"within a device", gpu, gpu, none, "transfer cuda:0: source f32 -> target f32, whole"},
      {"within a device, a transpose", gpu, gpu_transposed, none, "kernel cuda:0: source f32 -> target f32, tiles"},
      {"within a device, converted", gpu, gpu_f64, none, "kernel cuda:0: source f32 -> target f64, whole"},
      {"without kernels, in rows", plain, plain_pitched, none, "transfer sim:0: source f32 -> target f32, rows"},
      {"without kernels, by elements", plain, plain_transposed, none, "transfer sim:0: source f32 -> target f32, strided"},
      {"without kernels, converted", plain_pitched, plain_bf16, none,
       "transfer sim:0: source f32 -> staging f32, rows\nhost cpu:0: staging f32 -> staging bf16, whole\n"
       "transfer sim:0: staging bf16 -> target bf16, whole\n1 piece of 32 elements, staging on cpu:0"},
      // Between the host and a device without kernels.
      {"without kernels", host, plain, none, "transfer sim:0: source f32 -> target f32, whole"},
      {"without kernels, its side in rows", plain_pitched, host, none, "transfer sim:0: source f32 -> target f32, rows"},
      {"without kernels, both in rows", plain_pitched, host_pitched, none,
       "transfer sim:0: source f32 -> staging f32, rows\nhost cpu:0: staging f32 -> target f32, rows\n"
       "1 piece of 32 elements, staging on cpu:0"},
      {"without kernels, the host transposes", plain, host_transposed, none,
       "transfer sim:0: source f32 -> staging f32, whole\nhost cpu:0: staging f32 -> target f32, tiles\n"
       "1 piece of 32 elements, staging on cpu:0"},
      {"without kernels, the host converts", host_bf16, plain_pitched, none,
       "host cpu:0: source bf16 -> staging f32, whole\ntransfer sim:0: staging f32 -> target f32, rows\n"
       "1 piece of 32 elements, staging on cpu:0"},
      // Between devices.
      {"peers", gpu, other, peer, "peer cuda:1: source f32 -> target f32, whole"},
      {"peers, of which one can", gpu, other, pushed, "peer cuda:0: source f32 -> target f32, whole"},
      {"not peers", gpu, other, none,
       "transfer cuda:0: source f32 -> staging f32, whole\ntransfer cuda:1: staging f32 -> target f32, whole\n"
       "1 piece of 32 elements, staging on pinned:0"},
      {"peers, narrowed at the source", gpu, other_bf16, peer,
       "kernel cuda:0: source f32 -> source_scratch bf16, whole\npeer cuda:1: source_scratch bf16 -> target bf16, whole\n"
       "1 piece of 32 elements"},
      {"peers, widened at the target", gpu, other_f64, peer,
       "peer cuda:1: source f32 -> target_scratch f32, whole\nkernel cuda:1: target_scratch f32 -> target f64, whole\n"
       "1 piece of 32 elements"},
      {"peers, gathered and scattered", gpu_transposed, other_pitched, peer,
       "kernel cuda:0: source f32 -> source_scratch f32, tiles\npeer cuda:1: source_scratch f32 -> target_scratch f32, whole\n"
       "kernel cuda:1: target_scratch f32 -> target f32, rows\n1 piece of 32 elements"},
      {"not peers, gathered and scattered", gpu_transposed, other_pitched, none,
       "kernel cuda:0: source f32 -> source_scratch f32, tiles\ntransfer cuda:0: source_scratch f32 -> staging f32, whole\n"
       "transfer cuda:1: staging f32 -> target_scratch f32, whole\nkernel cuda:1: target_scratch f32 -> target f32, rows\n"
       "1 piece of 32 elements, staging on pinned:0"},
      {"not peers, neither has kernels", plain, far_bf16, none,
       "transfer sim:0: source f32 -> staging f32, whole\nhost cpu:0: staging f32 -> staging bf16, whole\n"
       "transfer sim:1: staging bf16 -> target bf16, whole\n1 piece of 32 elements, staging on cpu:0"},
      {"peers cannot convert without kernels", plain, far_bf16, peer,
       "transfer sim:0: source f32 -> staging f32, whole\nhost cpu:0: staging f32 -> staging bf16, whole\n"
       "transfer sim:1: staging bf16 -> target bf16, whole\n1 piece of 32 elements, staging on cpu:0"},
      {"peers without kernels, in rows", plain_pitched, far, peer, "peer sim:1: source f32 -> target f32, rows"},
      {"the side that has kernels converts", plain, other_bf16, none,
       "transfer sim:0: source f32 -> staging f32, whole\ntransfer cuda:1: staging f32 -> target_scratch f32, whole\n"
       "kernel cuda:1: target_scratch f32 -> target bf16, whole\n1 piece of 32 elements, staging on pinned:0"},
      // Sides that overlap.
      {"overlapping runs of the host", host, host, overlap, "host cpu:0: source f32 -> target f32, whole, source and target overlap"},
      {"overlapping on the host", host_transposed, host_bf16, overlap,
       "host cpu:0: source f32 -> staging bf16, tiles\nhost cpu:0: staging bf16 -> target bf16, whole\n"
       "1 piece of 32 elements, staging on cpu:0, source and target overlap"},
      {"overlapping on a device", gpu, gpu, overlap,
       "transfer cuda:0: source f32 -> source_scratch f32, whole\ntransfer cuda:0: source_scratch f32 -> target f32, whole\n"
       "1 piece of 32 elements, source and target overlap"},
      {"overlapping and transposed on a device",
       gpu_transposed,
       gpu_f64,
       {.piece_bytes = 16, .overlap = true},
       "kernel cuda:0: source f32 -> source_scratch f32, tiles\nkernel cuda:0: source_scratch f32 -> target f64, whole\n"
       "1 piece of 32 elements, source and target overlap"},
      {"overlapping without kernels", plain_pitched, plain, overlap,
       "transfer sim:0: source f32 -> staging f32, rows\ntransfer sim:0: staging f32 -> target f32, whole\n"
       "1 piece of 32 elements, staging on cpu:0, source and target overlap"},
      {"two memories never overlap", host, plain, overlap, "transfer sim:0: source f32 -> target f32, whole"},
  };
}

TEST(Route, FollowsItsRules) {
  for (const Case& one : cases()) EXPECT_EQ(plan_route(one.source, one.target, one.settings).to_string(), one.route) << one.name;
}

TEST(Route, IsCutIntoPiecesThatFitTheLargerDtype) {
  const auto planned = [](const Shape& shape, DType from, DType to, std::size_t piece_bytes) {
    return plan_route(on("cpu", kHost, from, shape, Strides::contiguous(shape)), on("cuda:0", kGpu, to, shape, Strides::contiguous(shape)),
                      {.piece_bytes = piece_bytes});
  };
  const Route even = planned({1024, 1024}, DType::f32, DType::bf16, 1_MiB);
  EXPECT_EQ(even.num_elements, 1_MiB);
  EXPECT_EQ(even.piece_elements, 256_KiB);
  EXPECT_EQ(even.pieces, 4U);
  EXPECT_EQ(planned({1000}, DType::u8, DType::f64, 800).pieces, 10U);
  EXPECT_EQ(planned({1001}, DType::u8, DType::f64, 800).pieces, 11U);
  EXPECT_EQ(planned({3}, DType::f32, DType::f32, 1).pieces, 3U) << "a piece has an element at least";
  EXPECT_EQ(planned({}, DType::f32, DType::f32, 1).pieces, 1U);
  // Rows that are not merged are not split while several fit: 2 of the 5 rows of 7 in 20 elements.
  const Route rows =
      plan_route(on("cpu", kHost, kF32, {3, 5, 7}, {70, 10, 1}), on("cuda:0", kGpu, kF32, {3, 5, 7}, {35, 7, 1}), {.piece_bytes = 80});
  EXPECT_EQ(rows.piece_elements, 14U);
  EXPECT_EQ(rows.pieces, 9U) << "two, two and one row of each five";
}

TEST(Route, WithoutElementsHasNoSteps) {
  const Route route = plan_route(on("cpu", kHost, kF32, {0, 4}, {4, 1}), on("cuda:0", kGpu, kF32, {0, 4}, {4, 1}));
  EXPECT_EQ(route, Route());
  EXPECT_EQ(route.to_string(), "nothing to do");
}

TEST(Route, RefusesWhatContradictsItself) {
  const RouteEnd good = on("cpu", kHost, kF32, kShape, kRowMajor);
  EXPECT_ERROR(plan_route(good, on("cpu", kHost, kF32, {4, 8}, {8, 1})), ArgumentError, ErrorCode::size_mismatch);
  EXPECT_ERROR(plan_route(good, on("cpu", kHost, kF32, kShape, {1})), ArgumentError, ErrorCode::size_mismatch);
  EXPECT_ERROR(plan_route(on("cpu", kHost, kF32, kShape, {INT64_MIN, 1}), good), ArgumentError, ErrorCode::out_of_bounds);
  EXPECT_ERROR(plan_route(on("cpu", kHost, kF32, {INT64_MAX, 4}, {0, 0}), on("cpu", kHost, kF32, {INT64_MAX, 4}, {0, 0})), ArgumentError,
               ErrorCode::size_overflow);
  EXPECT_ERROR(plan_route(good, good, {.piece_bytes = 0}), ArgumentError, ErrorCode::invalid_argument);
}

TEST(Route, IsWrittenAsJson) {
  JsonWriter json;
  plan_route(on("cpu", kHost, kF32, kShape, kTransposed), on("cuda:0", kGpu, DType::bf16, kShape, kRowMajor), {.piece_bytes = 64})
      .write_json(json);
  EXPECT_EQ(
      json.take(),
      R"({"steps":[{"kind":"host","runs_on":"cpu:0","from":"source","from_dtype":"f32","to":"staging","to_dtype":"bf16","walk":"whole"},)"
      R"({"kind":"transfer","runs_on":"cuda:0","from":"staging","from_dtype":"bf16","to":"target_scratch","to_dtype":"bf16","walk":"whole"},)"
      R"({"kind":"kernel","runs_on":"cuda:0","from":"target_scratch","from_dtype":"bf16","to":"target","to_dtype":"bf16","walk":"tiles"}],)"
      R"("num_elements":32,"piece_elements":16,"pieces":2,"staging":"pinned:0","overlap":false})");
  plan_route(on("cpu", kHost, kF32, kShape, kRowMajor), on("cpu", kHost, kF32, kShape, kRowMajor), {.overlap = true}).write_json(json);
  EXPECT_EQ(
      json.take(),
      R"({"steps":[{"kind":"host","runs_on":"cpu:0","from":"source","from_dtype":"f32","to":"target","to_dtype":"f32","walk":"whole"}],)"
      R"("num_elements":32,"piece_elements":32,"pieces":1,"staging":null,"overlap":true})");
}

TEST(Route, OfTwoSpansIsTheOneThatTheirCopyTakes) {
  const Storage x = zeros({8, 4}, kF32, "cpu");
  const Storage y = zeros({8, 4}, DType::bf16, "sim:0");
  EXPECT_EQ(plan_route(x.span(), y.span()).to_string(),
            "host cpu:0: source f32 -> staging bf16, whole\ntransfer sim:0: staging bf16 -> target bf16, whole\n"
            "1 piece of 32 elements, staging on cpu:0");
  EXPECT_TRUE(plan_route(x.slice(0, 1, 8).span(), x.slice(0, 0, 7).span()).overlap);
  EXPECT_EQ(plan_route(x.span(), x.span()).to_string(), "nothing to do");
  EXPECT_ERROR(plan_route(x.span(), y.slice(0, 1).span()), ArgumentError, ErrorCode::size_mismatch);
  EXPECT_ERROR(plan_route(x.span(), x.read_only().span()), AccessError, ErrorCode::read_only);
}

}  // namespace
}  // namespace berth::testing
