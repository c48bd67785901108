// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "berth/record/misuse.h"

// Collects misuse reports instead of printing them, while it lives. One instance at a time, on one thread.
namespace berth::testing {

class MisuseLog {
 public:
  MisuseLog() : previous_(set_misuse_handler([](const Misuse& misuse) noexcept { kinds().push_back(misuse.kind); })) { kinds().clear(); }
  ~MisuseLog() { set_misuse_handler(previous_); }
  MisuseLog(const MisuseLog&) = delete;
  MisuseLog& operator=(const MisuseLog&) = delete;

  const std::vector<MisuseKind>& reported() const { return kinds(); }

 private:
  static std::vector<MisuseKind>& kinds() {
    static std::vector<MisuseKind> list;
    return list;
  }
  MisuseHandler previous_;
};

}  // namespace berth::testing
