// SPDX-License-Identifier: Apache-2.0
#include "berth/device/device.h"

#include <gtest/gtest.h>

#include "device/cpu/cpu_backend.h"
#include "support/errors.h"
#include "support/everything.h"

namespace berth::testing {

using namespace internal::device;
namespace {

TEST(Device, ParsesAndPrints) {
  for (const char* text : {"cpu:0", "pinned:0", "sim:0", "sim:7", "cuda:0", "cuda:65535"}) EXPECT_EQ(Device(text).to_string(), text);
  EXPECT_EQ(Device("cuda:1").kind_name(), "cuda");
  EXPECT_EQ(Device("cuda:1").index(), 1);
}

TEST(Device, IsCpuZeroByDefault) {
  EXPECT_EQ(Device(), Device("cpu"));
  EXPECT_EQ(Device("cpu"), Device("cpu:0"));
  EXPECT_EQ(Device("sim"), Device("sim", 0));
  EXPECT_NE(Device("sim:0"), Device("sim:1"));
}

TEST(Device, ListsTheKnownKindsForAnUnknownOne) {
  EXPECT_ERROR(Device("gpu:0"), DeviceError, ErrorCode::no_such_device);
  try {
    Device("gpu\x1b[31m");
  } catch (const DeviceError& error) {
    EXPECT_NE(std::string(error.what()).find("cpu, cuda, pinned, shared, sim"), std::string::npos) << error.what();
    EXPECT_EQ(std::string(error.what()).find('\x1b'), std::string::npos) << "an escape must not reach a terminal";
  }
}

TEST(Device, RefusesIndicesThatAreNoNumbers) {
  for (const char* text : {"cpu:", "cpu:-1", "cpu: 1", "cpu:1x", "cuda:65536", "cuda:99999999999999999999", "", ":", ":0", "sim:0:0"}) {
    EXPECT_ERROR(Device{text}, DeviceError, ErrorCode::no_such_device);
  }
  EXPECT_ERROR(Device("sim", -1), DeviceError, ErrorCode::no_such_device);
}

TEST(Device, OutOfRangeIsRefusedWhenUsed) {
  EXPECT_ERROR(backend("cpu:1"), DeviceError, ErrorCode::no_such_device);
  try {
    backend("cpu:5");
  } catch (const DeviceError& error) {
    EXPECT_EQ(error.fact("index"), "5");
    EXPECT_EQ(error.fact("count"), "1");
  }
  EXPECT_ERROR(empty({1}, DType::f32, "cpu:3"), DeviceError, ErrorCode::no_such_device);
}

TEST(Device, WithoutCudaItSaysWhetherTheBuildOrTheMachineLacksIt) {
  if (find_backend("cuda:0") != nullptr) GTEST_SKIP() << "this build and machine have CUDA";
  EXPECT_ERROR(backend("cuda:0"), DeviceError, ErrorCode::device_unavailable);
  try {
    empty({1}, DType::f32, "cuda:0");
  } catch (const DeviceError& error) {
    const bool build = error.why().find("this build of berth has no CUDA backend") != std::string::npos;
    const bool machine = error.why().find("NVIDIA driver") != std::string::npos;
    EXPECT_TRUE(build || machine) << error.why();
  }
}

TEST(Device, OtherDevicesWorkWithoutCuda) {
  EXPECT_NO_THROW(zeros({4}, DType::f32, "cpu"));
  EXPECT_NO_THROW(zeros({4}, DType::f32, "pinned"));
  EXPECT_NO_THROW(zeros({4}, DType::f32, "sim"));
}

// A kind whose memory is page-locked, or claims to be, under a name that does not say so.
class LockedBackend : public CpuBackend {
 public:
  explicit LockedBackend(Device device) : CpuBackend(device, "locked", {}), properties_(CpuBackend::properties()) {
    properties_.abilities.pinned = true;
  }
  const BackendProperties& properties() const noexcept override { return properties_; }

 private:
  BackendProperties properties_;
};

class LockedFactory : public BackendFactory {
 public:
  int count() override { return 1; }
  std::string unavailable_reason() override { return ""; }
  std::unique_ptr<Backend> make(Device device) override { return std::make_unique<LockedBackend>(device); }
};

TEST(Device, PinnedMemoryThatIsNotPageLockedSaysSo) {
  // berth locks pages only for a device that transfers faster from them; the name alone has no effect.
  EXPECT_EQ(zeros({4}, DType::f32, "pinned").is_pinned(), find_backend("cuda:0") != nullptr);
  EXPECT_FALSE(zeros({4}, DType::f32, "cpu").is_pinned());
  EXPECT_FALSE(Storage().is_pinned());
  register_backend("locked", std::make_unique<LockedFactory>());
  EXPECT_TRUE(zeros({4}, DType::f32, "locked").is_pinned());
  EXPECT_TRUE(inspect(zeros({4}, DType::f32, "locked")).is_pinned);
}

}  // namespace
}  // namespace berth::testing
