// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <span>
#include <string>

#include "conformance/report.h"
#include "support/everything.h"

// What every backend must do. A new kind joins by adding a subject to backends_test.cc. A check of an ability
// that a backend says it lacks passes without doing anything.
namespace berth::testing {

struct BackendSubject {
  std::string name;
  std::function<Backend&()> get;
};

struct BackendCheck {
  std::string_view name;
  void (*run)(Backend& backend, Report& report);
};

std::span<const BackendCheck> backend_checks();
Report check_backend(Backend& backend);

}  // namespace berth::testing
