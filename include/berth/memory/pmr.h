// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <memory>
#include <memory_resource>

#include "berth/export.h"
#include "berth/memory/allocator.h"

// An allocator of host memory as a std::pmr::memory_resource, so that containers can allocate from it, under
// its limits and in its reports:
//
//     MemoryResource resource(limit(direct("cpu"), 64_MiB));
//     std::pmr::vector<float> v(&resource);
namespace berth {

class BERTH_EXPORT MemoryResource : public std::pmr::memory_resource {
 public:
  // Throws AccessError(wrong_device) when the host cannot access the allocator's memory.
  explicit MemoryResource(std::shared_ptr<Allocator> allocator);
  ~MemoryResource() override;

  const std::shared_ptr<Allocator>& allocator() const noexcept { return allocator_; }

 private:
  // Throws OutOfMemory, as Allocator::allocate does. A request of zero bytes gets a unique address, as
  // containers expect.
  void* do_allocate(std::size_t bytes, std::size_t alignment) override;
  void do_deallocate(void* data, std::size_t bytes, std::size_t alignment) override;
  bool do_is_equal(const std::pmr::memory_resource& other) const noexcept override;

  std::shared_ptr<Allocator> allocator_;
};

}  // namespace berth
