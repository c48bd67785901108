// SPDX-License-Identifier: Apache-2.0
#include "device/builtin.h"
#include "device/cpu/cpu_backend.h"
#include "device/cuda/host_register.h"
#include "device/pinned/pinned_memory.h"
#include "os/process/fork.h"

// Page-locked memory for transfers to a device. Without a device that needs it, "pinned" is plain host memory
// and says so: programs written for it run unchanged, and `is_pinned()` returns false.
namespace berth::internal::device {

namespace {

class PinnedBackend final : public CpuBackend {
 public:
  PinnedBackend(Device device, const CpuOptions& options, const PageLocks& locks)
      : CpuBackend(device, "page-locked host memory", options), memory_(*this, locks) {
    properties_.unit_bytes = PinnedMemory::kUnit;
    properties_.piece_bytes = PinnedMemory::kMostPiece;
    properties_.commit_us_per_mib = 110;
    properties_.abilities.move = false;
    properties_.abilities.pinned = true;
    properties_.abilities.fork_safe = false;  // a child has the bytes, but cannot lock or unlock pages
  }

  bool is_alive() const noexcept override { return !origin_.is_inherited(); }

  Result<void*> reserve(std::size_t bytes, std::size_t alignment) noexcept override { return memory_.reserve(bytes, alignment); }
  Status commit(void* address, std::size_t bytes) noexcept override {
    return is_alive() ? memory_.commit(address, bytes)
                      : Status(Failure{ErrorCode::fork_unsafe, 0, "the memory is locked for a device that was opened before fork"});
  }
  Status decommit(void* address, std::size_t bytes) noexcept override { return memory_.decommit(address, bytes); }
  Status move(void* from, void* to, std::size_t bytes) noexcept override { return Backend::move(from, to, bytes); }
  Status release(void* address, std::size_t bytes) noexcept override { return memory_.release(address, bytes); }
  Result<void*> allocate(std::size_t bytes, std::size_t alignment) noexcept override { return Backend::allocate(bytes, alignment); }
  void free(void* address, std::size_t bytes, std::size_t alignment) noexcept override { Backend::free(address, bytes, alignment); }
  // Its pages are all there, and locked: the kernel need not be asked.
  Status zero(void* target, std::size_t bytes, StreamRef stream) noexcept override { return Backend::zero(target, bytes, stream); }

 private:
  const os::Origin origin_;
  PinnedMemory memory_;
};

class PinnedFactory : public BackendFactory {
 public:
  int count() override { return 1; }
  std::string unavailable_reason() override { return ""; }
  std::unique_ptr<Backend> make(Device device) override {
    const CpuOptions options = cpu_options_from_environment();
    if (cuda::can_register_host())
      return std::make_unique<PinnedBackend>(device, options, PageLocks{cuda::register_host, cuda::unregister_host});
    return std::make_unique<CpuBackend>(device, "plain host memory: nothing here needs it page-locked", options);
  }
};

}  // namespace

std::unique_ptr<BackendFactory> make_pinned_factory() { return std::make_unique<PinnedFactory>(); }

}  // namespace berth::internal::device
