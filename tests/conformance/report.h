// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <utility>
#include <vector>

// What a conformance check found. The checks do not use gtest's assertions, so that they can also run on
// subjects that are meant to fail them (see defects_test.cc).
namespace berth::testing {

class Report {
 public:
  void expect(bool right, std::string claim) {
    if (!right) failures_.push_back(std::move(claim));
  }

  bool ok() const noexcept { return failures_.empty(); }
  std::string text() const {
    std::string out;
    for (const std::string& failure : failures_) out += "  not so: " + failure + "\n";
    return out;
  }

 private:
  std::vector<std::string> failures_;
};

}  // namespace berth::testing
