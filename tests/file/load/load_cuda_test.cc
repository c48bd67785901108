// SPDX-License-Identifier: Apache-2.0
// Loading onto a real device; skipped without one. The large tensors without conversion also run on the fake
// driver.
#include <gtest/gtest.h>

#include "device/cuda/device.h"
#include "file/load/load_support.h"

namespace berth::testing {

using namespace internal::base;

namespace {

TEST(CudaLoad, BringsLargeTensorsThroughBoundedStaging) {
  BERTH_NEEDS_DEVICE();
  TensorFiles made;
  for (int i = 0; i < 6; ++i) made.add(DType::f32, {(1 << 19) + 1000 * i}, static_cast<std::size_t>(i));
  made.write();
  for (const LoadMode mode : {LoadMode::read, LoadMode::direct}) {
    const LoadOptions options{.threads = 4, .mode = mode};
    const LoadedTensors loaded = made.load("cuda:0", options, 2_MiB);
    made.expect_all(loaded, options, "cuda:0");
    EXPECT_LE(loaded.report().staging_bytes, 4 * 2 * (2_MiB + 2_MiB));
  }
  // Converted on the host, since fewer bytes are then transferred.
  const LoadOptions narrow{.threads = 4, .dtype = DType::bf16};
  made.expect_all(made.load("cuda:0", narrow, 4_MiB), narrow, "as bf16");
}

TEST(CudaLoad, GivesTheBytesOfAPlainCopyByEveryWay) {
  BERTH_NEEDS_CUDA();
  Random random(seed());
  const auto rounds = scaled(300, 20);
  for (std::uint64_t round = 0; round < rounds; ++round) {
    TensorFiles made;
    for (std::uint64_t i = 0; i < 1 + random.below(300); ++i) {
      const std::size_t elements = random.below(std::uint64_t{1} << (1 + random.below(18)));
      made.add(static_cast<DType>(random.below(kDTypeCount)), {elements}, random.one_in(3) ? random.below(100) : 0);
    }
    made.write();
    constexpr DType kDTypes[] = {DType::f8e4m3, DType::f8e5m2, DType::f16, DType::bf16, DType::f32, DType::f64};
    LoadOptions options{.threads = static_cast<int>(1 + random.below(8)), .mode = random.one_in(4) ? LoadMode::direct : LoadMode::read};
    if (!random.one_in(3)) options.dtype = kDTypes[random.below(std::size(kDTypes))];
    made.expect_all(made.load("cuda:0", options, random.one_in(2) ? 0 : 64_KiB), options,
                    "seed " + std::to_string(seed()) + ", round " + std::to_string(round));
  }
  did(std::to_string(rounds) + " files, seed " + std::to_string(seed()));
}

}  // namespace
}  // namespace berth::testing
