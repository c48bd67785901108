// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <span>

#include "berth/base/result.h"
#include "berth/device/backend.h"
#include "memory/space/page_plan.h"

// Runs the steps of a plan on a device. It makes no decision and keeps no state. Called without a lock: what
// the steps work on is in transit.
namespace berth::internal::memory {

struct RunResult {
  Status status;         // of the last step that was run
  std::size_t done = 0;  // steps, from the first on
  std::size_t lost = 0;  // steps behind them that had decommitted their source, or loan, before the failure
};

// Runs them in order until one fails.
RunResult run_steps(Backend& backend, std::byte* base, std::span<const FillStep> steps, std::span<const Loan> loans) noexcept;

}  // namespace berth::internal::memory
