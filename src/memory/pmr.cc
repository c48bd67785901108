// SPDX-License-Identifier: Apache-2.0
#include "berth/memory/pmr.h"

#include <algorithm>
#include <utility>

#include "base/text.h"
#include "berth/device/backend.h"

namespace berth {

using namespace internal;

MemoryResource::MemoryResource(std::shared_ptr<Allocator> allocator) : allocator_(std::move(allocator)) {
  if (allocator_ == nullptr)
    throw ArgumentError(ErrorCode::invalid_argument, {"a memory resource", "there is no allocator", "pass one, such as direct(\"cpu\")"});
  if (allocator_->backend().properties().abilities.host_access) return;
  throw AccessError(ErrorCode::wrong_device,
                    {text::join("a memory resource on ", allocator_->device().to_string()), "containers live in memory the host may touch",
                     "use an allocator for cpu"},
                    {{"have", allocator_->device().to_string()}, {"need", "cpu"}});
}

MemoryResource::~MemoryResource() = default;

void* MemoryResource::do_allocate(std::size_t bytes, std::size_t alignment) {
  return allocator_->allocate({.bytes = std::max<std::size_t>(bytes, 1), .alignment = alignment}, Site()).data;
}

void MemoryResource::do_deallocate(void* data, std::size_t bytes, std::size_t) {
  allocator_->deallocate(allocator_->block_at(data, std::max<std::size_t>(bytes, 1)));
}

bool MemoryResource::do_is_equal(const std::pmr::memory_resource& other) const noexcept {
  const auto* const resource = dynamic_cast<const MemoryResource*>(&other);
  return resource != nullptr && resource->allocator_ == allocator_;
}

}  // namespace berth
