// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "berth/base/error.h"

// An argument that is refused: what was asked, why not, and what would help.
namespace berth::internal::base {

// What would help where the system refuses for a limit, whatever it is of.
inline constexpr const char* kRaiseLimit = "raise the limit of the process (ulimit -a shows all) or of its control group, or ask for less";

[[noreturn]] inline void refuse(ErrorCode code, std::string asked, std::string why, std::string help, std::vector<Fact> facts = {}) {
  throw ArgumentError(code, {std::move(asked), std::move(why), std::move(help)}, std::move(facts));
}

[[noreturn]] inline void refuse(std::string asked, std::string why, std::string help) {
  refuse(ErrorCode::invalid_argument, std::move(asked), std::move(why), std::move(help));
}

}  // namespace berth::internal::base
