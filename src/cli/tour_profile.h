// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <string>

#include "berth/observe/html.h"
#include "berth/observe/profiler.h"

// The last step of the tour: a memory profile of all steps before it.
namespace berth::internal::cli {

class TourProfile {
 public:
  void mark(std::string_view step) { profiler_.mark(step); }

  // The profile as text, and as an HTML report.
  std::string lines() const;
  std::string page() const { return profile_html(profiler_.profile(), "The tour of berth"); }
  // Whether everything that was allocated since the start has been freed.
  bool is_settled() const;

 private:
  Profiler profiler_{{.sites = false, .every = std::chrono::milliseconds(2)}};
};

}  // namespace berth::internal::cli
