// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <utility>

// An owned file descriptor, closed by the destructor. All descriptors that os/ makes are close-on-exec. One
// thread at a time.
namespace berth::internal::os {

void close_descriptor(int number) noexcept;

class Descriptor {
 public:
  Descriptor() noexcept = default;
  explicit Descriptor(int number) noexcept : number_(number) {}
  Descriptor(Descriptor&& other) noexcept : number_(other.take()) {}
  Descriptor& operator=(Descriptor&& other) noexcept {
    const Descriptor old(std::exchange(number_, other.take()));
    return *this;
  }
  ~Descriptor() {
    if (number_ >= 0) close_descriptor(number_);
  }

  int number() const noexcept { return number_; }
  explicit operator bool() const noexcept { return number_ >= 0; }
  int take() noexcept { return std::exchange(number_, -1); }  // the caller owns it from now on
  void close() noexcept { *this = Descriptor(); }

 private:
  int number_ = -1;
};

}  // namespace berth::internal::os
