// SPDX-License-Identifier: Apache-2.0
#include <array>

#include "berth/plan/plan.h"
#include "berth/plan/verify.h"

// The names of enumerators, the same in C++, JSON and the documents.
namespace berth {

namespace {

template <class Enum, std::size_t count>
std::string_view name_of(const std::array<std::string_view, count>& names, Enum value) {
  const auto index = static_cast<std::size_t>(value);
  return index < count ? names[index] : "unknown";
}

}  // namespace

std::string_view to_string(PlanOutcome outcome) noexcept {
  return name_of(std::array<std::string_view, 4>{"optimal", "feasible", "infeasible", "unknown"}, outcome);
}

std::string_view to_string(Reuse reuse) noexcept {
  return name_of(std::array<std::string_view, 7>{"none", "own", "in_place", "identity", "view", "joined", "kept"}, reuse);
}

std::string_view to_string(UnplannedReason reason) noexcept {
  return name_of(std::array<std::string_view, 6>{"placed", "external", "dynamic", "unknown_size", "never_written", "outside_range"},
                 reason);
}

std::string_view to_string(BoundProof::By by) noexcept {
  return name_of(std::array<std::string_view, 5>{"unsaid", "live", "fixed", "search", "unordered"}, by);
}

std::string_view to_string(PlanProblem::Kind kind) noexcept {
  return name_of(std::array<std::string_view, 7>{"shape", "bounds", "alignment", "overlap", "sharing", "order", "totals"}, kind);
}

}  // namespace berth
