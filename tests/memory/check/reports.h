// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <mutex>
#include <string>
#include <vector>

#include "berth/record/misuse.h"

// For tests of the check adaptor: the whole contents of its reports, and mistakes to make.
namespace berth::testing {

// Collects reports with all their fields, from any thread.
class Reports {
 public:
  Reports() : previous_(set_misuse_handler(add)) { list().clear(); }
  ~Reports() { set_misuse_handler(previous_); }
  Reports(const Reports&) = delete;
  Reports& operator=(const Reports&) = delete;

  std::vector<Misuse> all() const {
    const std::scoped_lock lock(mutex());
    return list();
  }
  std::string last_allocator() const { return name(); }
  std::size_t count(MisuseKind kind) const {
    const auto now = all();
    return static_cast<std::size_t>(std::ranges::count(now, kind, &Misuse::kind));
  }

 private:
  static void add(const Misuse& misuse) noexcept {
    const std::scoped_lock lock(mutex());
    list().push_back(misuse);
    name() = misuse.allocator;  // which does not outlive the call
  }
  static std::string& name() {
    static std::string last;
    return last;
  }
  static std::mutex& mutex() {
    static std::mutex one;
    return one;
  }
  static std::vector<Misuse>& list() {
    static std::vector<Misuse> all = [] {
      std::vector<Misuse> made;
      made.reserve(64);  // some reports come while the heap fails
      return made;
    }();
    return all;
  }
  MisuseHandler previous_;
};

// The write after a free or past the end: no sanitizer may stop it before the adaptor sees it.
[[gnu::noinline, gnu::no_sanitize_address, gnu::no_sanitize_thread]] inline void poke(void* data, std::size_t offset) {
  auto* const byte = static_cast<volatile unsigned char*>(data) + offset;
  *byte = static_cast<unsigned char>(*byte ^ 1U);
}

}  // namespace berth::testing
