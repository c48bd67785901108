// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "conformance/report.h"
#include "support/everything.h"

// What every allocator must do. A new strategy or adaptor joins by adding a subject to allocators_test.cc.
namespace berth::testing {

struct AllocatorSubject {
  std::string name;
  std::function<std::shared_ptr<Allocator>()> make;  // a new allocator on each call
  std::optional<std::size_t> limit_bytes = {};       // it refuses exactly the requests that exceed this
  bool returns_at_once = true;                       // deallocate_now returns the memory to the device before
                                                     // it returns (an arena cannot)
};

struct AllocatorCheck {
  std::string_view name;
  void (*run)(const AllocatorSubject& subject, Report& report);
};

std::span<const AllocatorCheck> allocator_checks();

// All checks on one subject.
Report check_allocator(const AllocatorSubject& subject);

}  // namespace berth::testing
