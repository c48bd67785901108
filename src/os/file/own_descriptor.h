// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "os/file/descriptor.h"

// A file descriptor that belongs to this process alone: in a forked child it is closed, and -1. For descriptors
// that show that a process is alive (the locks of shared memory, the ends of channels): a child that held one
// would keep it alive after the process's death. Not movable; one thread at a time.
namespace berth::internal::os {

class OwnDescriptor {
 public:
  OwnDescriptor() noexcept;
  explicit OwnDescriptor(Descriptor given) noexcept : OwnDescriptor() { set(std::move(given)); }
  ~OwnDescriptor();
  OwnDescriptor(const OwnDescriptor&) = delete;
  OwnDescriptor& operator=(const OwnDescriptor&) = delete;

  int number() const noexcept { return descriptor_.number(); }
  explicit operator bool() const noexcept { return static_cast<bool>(descriptor_); }
  void set(Descriptor given) noexcept;  // closes the current one
  void close() noexcept { set({}); }

 private:
  friend class OwnDescriptors;
  Descriptor descriptor_;
  OwnDescriptor* previous_ = nullptr;
  OwnDescriptor* next_ = nullptr;
};

}  // namespace berth::internal::os
