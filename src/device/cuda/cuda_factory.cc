// SPDX-License-Identifier: Apache-2.0
#include <array>
#include <string>

#include "base/text.h"
#include "berth/base/error.h"
#include "device/builtin.h"
#include "device/cuda/cuda_backend.h"
#include "os/system.h"

// The kind "cuda": enumerates the devices and queries their properties.
namespace berth::internal::device {

namespace {

using namespace cuda;

class CudaFactory : public BackendFactory {
 public:
  int count() override { return is_inherited() ? 0 : driver_state().devices; }

  std::string unavailable_reason() override {
    if (is_inherited())
      return "the NVIDIA driver was started before fork, and does not work in the child; start the child by exec, or use the device only "
             "there";
    return driver_state().why_none;
  }

  std::unique_ptr<Backend> make(Device device) override;

 private:
  static bool is_inherited() { return driver_state().devices > 0 && driver_state().origin.is_inherited(); }
};

void require(const Status& done, Device device) {
  if (!done) throw_failure(done.failure(), device, "opening the device");
}

int attribute(const Driver& driver, CUdevice device, CUdevice_attribute which) noexcept {
  int value = 0;
  return driver.cuDeviceGetAttribute(&value, which, device) == CUDA_SUCCESS ? value : 0;
}

bool wants_virtual_memory() {
  const auto value = os::environment("BERTH_CUDA_VIRTUAL_MEMORY");
  if (!value || *value == "1") return true;
  if (*value == "0") return false;
  throw ArgumentError(ErrorCode::invalid_argument,
                      {text::join("the environment variable BERTH_CUDA_VIRTUAL_MEMORY=", text::printable(*value)),
                       "it is not a valid value", "use 1 for address ranges by virtual memory management, 0 for plain blocks"},
                      {{"name", "BERTH_CUDA_VIRTUAL_MEMORY"}, {"value", text::printable(*value)}});
}

CUmemAccessDesc access_for(CUdevice device) noexcept {
  CUmemAccessDesc desc = {};
  desc.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
  desc.location.id = device;
  desc.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
  return desc;
}

void find_peers(const Driver& driver, CUdevice device, int devices, DeviceFacts& facts) {
  facts.access.push_back(access_for(device));
  for (int i = 0; i < devices; ++i) {
    CUdevice peer = 0;
    int can = 0;
    if (driver.cuDeviceGet(&peer, i) != CUDA_SUCCESS || peer == device) continue;
    if (driver.cuDeviceCanAccessPeer(&can, peer, device) == CUDA_SUCCESS && can != 0) facts.access.push_back(access_for(peer));
    if (driver.cuDeviceCanAccessPeer(&can, device, peer) == CUDA_SUCCESS && can != 0) facts.reachable.push_back(peer);
  }
}

// REQUIRES: the context is current.
DeviceFacts facts_of(CudaContext& context, int devices) {
  const Driver& driver = context.driver();
  const CUdevice device = context.number();
  DeviceFacts facts;
  std::array<char, 256> name{};
  require(BERTH_CUDA_CALL(context, cuDeviceGetName, name.data(), static_cast<int>(name.size()) - 1, device), context.device());
  facts.name = text::join(std::string_view(name.data()), ", compute capability ",
                          attribute(driver, device, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR), '.',
                          attribute(driver, device, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR));
  facts.virtual_memory = wants_virtual_memory() && attribute(driver, device, CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED) != 0;
  facts.exports = facts.virtual_memory && attribute(driver, device, CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR_SUPPORTED) != 0;
  facts.uuid = uuid_of(driver, device);
  facts.unit_bytes = std::size_t{2} << 20;
  if (facts.virtual_memory) {
    CUmemAllocationProp prop = {};
    prop.type = CU_MEM_ALLOCATION_TYPE_PINNED;
    prop.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
    prop.location.id = device;
    require(BERTH_CUDA_CALL(context, cuMemGetAllocationGranularity, &facts.unit_bytes, &prop, CU_MEM_ALLOC_GRANULARITY_MINIMUM),
            context.device());
  } else {
    facts.name += ", without virtual memory management";
  }
  find_peers(driver, device, devices, facts);
  return facts;
}

std::unique_ptr<Backend> CudaFactory::make(Device device) {
  const DriverState& state = driver_state();
  const Driver& driver = state.driver;
  CUdevice number = 0;
  CUcontext handle = nullptr;
  if (const CUresult result = driver.cuDeviceGet(&number, device.index()); result != CUDA_SUCCESS)
    throw_failure(failure_of("cuDeviceGet", result), device, "opening the device");
  // Retained until the process ends, like the backend.
  if (const CUresult result = driver.cuDevicePrimaryCtxRetain(&handle, number); result != CUDA_SUCCESS)
    throw_failure(failure_of("cuDevicePrimaryCtxRetain", result), device, "opening the device");
  auto context = std::make_unique<CudaContext>(driver, device, number, handle);
  const Scope scope(*context);
  if (!scope) throw_failure(scope.failure(), device, "opening the device");
  DeviceFacts facts = facts_of(*context, state.devices);
  return std::make_unique<CudaBackend>(std::move(context), std::move(facts));
}

}  // namespace

std::unique_ptr<BackendFactory> make_cuda_factory() { return std::make_unique<CudaFactory>(); }

}  // namespace berth::internal::device
