// SPDX-License-Identifier: Apache-2.0
#include "os/file/own_descriptor.h"

#include "os/lock/mutex.h"
#include "os/process/fork.h"

namespace berth::internal::os {

// The list of all OwnDescriptors. A fork holds the mutex, and so sees a consistent list, whose descriptors are
// either open and registered, or closed.
class OwnDescriptors : public ForkListener {
 public:
  OwnDescriptors() noexcept { listen(); }

  void add(OwnDescriptor& one) noexcept {
    const Lock lock(mutex_);
    one.next_ = first_;
    if (first_ != nullptr) first_->previous_ = &one;
    first_ = &one;
  }

  void remove(OwnDescriptor& one) noexcept {
    const Lock lock(mutex_);
    (one.previous_ != nullptr ? one.previous_->next_ : first_) = one.next_;
    if (one.next_ != nullptr) one.next_->previous_ = one.previous_;
  }

  void set(OwnDescriptor& one, Descriptor given) noexcept {
    const Lock lock(mutex_);
    one.descriptor_ = std::move(given);
  }

  void before_fork() noexcept override {}
  void after_fork(bool in_child) noexcept override BERTH_NO_THREAD_ANALYSIS {
    if (!in_child) return;
    for (OwnDescriptor* one = first_; one != nullptr; one = one->next_) one->descriptor_.close();
  }

 private:
  Mutex mutex_;
  OwnDescriptor* first_ BERTH_GUARDED_BY(mutex_) = nullptr;
};

namespace {

OwnDescriptors& all() {
  static auto* const made = new OwnDescriptors;  // never destroyed
  return *made;
}

// Made when the library is loaded, so that no later use can fail for lack of heap, or fork during the
// initialization.
[[maybe_unused]] const OwnDescriptors& g_own_descriptors_at_load = all();

}  // namespace

OwnDescriptor::OwnDescriptor() noexcept { all().add(*this); }
OwnDescriptor::~OwnDescriptor() {
  close();
  all().remove(*this);
}
void OwnDescriptor::set(Descriptor given) noexcept { all().set(*this, std::move(given)); }

}  // namespace berth::internal::os
