// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "os/file/descriptor.h"

// A descriptor that belongs to this process alone: a forked child finds it closed, and -1. For what says that a process lives (the locks of
// shared memory, the ends of channels): in a child's hands it would say so after the process's death. Not movable; one owner at a time.
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
  void set(Descriptor given) noexcept;  // closes what was there
  void close() noexcept { set({}); }

 private:
  friend class OwnDescriptors;
  Descriptor descriptor_;
  OwnDescriptor* previous_ = nullptr;
  OwnDescriptor* next_ = nullptr;
};

}  // namespace berth::internal::os
