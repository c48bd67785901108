// SPDX-License-Identifier: Apache-2.0
#include <string>

#include "device/builtin.h"
#include "os/system.h"

// The kind "cuda" in a build without its backend: a known name that says why it cannot be used.
namespace berth {

namespace {

class AbsentCuda : public BackendFactory {
 public:
  int count() override { return 0; }

  std::string unavailable_reason() override {
    const bool driver = os::library_loads("libcuda.so.1");
    return std::string("this build of berth has no CUDA backend") +
           (driver ? " (the machine has an NVIDIA driver)" : " (and the machine has no NVIDIA driver: libcuda.so.1 is not found)");
  }

  std::unique_ptr<Backend> make(Device) override { return nullptr; }
};

}  // namespace

std::unique_ptr<BackendFactory> make_cuda_factory() { return std::make_unique<AbsentCuda>(); }

}  // namespace berth
