// SPDX-License-Identifier: Apache-2.0
#include "device/builtin.h"
#include "device/cpu/cpu_backend.h"

// Page-locked memory for transfers to a device. Without a device that needs it, "pinned" is plain host memory and says so: programs
// written for it run unchanged, and `is_pinned()` tells the truth.
namespace berth {

namespace {

class PinnedFactory : public BackendFactory {
 public:
  int count() override { return 1; }
  std::string unavailable_reason() override { return ""; }
  std::unique_ptr<Backend> make(Device device) override {
    return std::make_unique<CpuBackend>(device, "plain host memory: nothing here needs it page-locked", cpu_options_from_environment());
  }
};

}  // namespace

std::unique_ptr<BackendFactory> make_pinned_factory() { return std::make_unique<PinnedFactory>(); }

}  // namespace berth
