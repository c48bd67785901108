// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <string>

#include "berth/observe/html.h"
#include "berth/observe/profiler.h"

// The end of the tour: where the memory of everything before it went.
namespace berth::internal::cli {

class TourProfile {
 public:
  void mark(std::string_view step) { profiler_.mark(step); }

  // Lines for people, and a page.
  std::string lines() const;
  std::string page() const { return profile_html(profiler_.profile(), "The tour of berth"); }
  // Whether what was counted is what there is: nothing is in use that was allocated since.
  bool is_settled() const;

 private:
  Profiler profiler_{{.sites = false, .every = std::chrono::milliseconds(2)}};
};

}  // namespace berth::internal::cli
