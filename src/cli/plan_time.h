// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <optional>

#include "base/allowance.h"
#include "berth/base/read_limits.h"
#include "cli/commands.h"

// The time limit of `berth plan`, which is for the whole: reading, planning, and writing.
namespace berth::internal::cli {

class PlanTime {
 public:
  explicit PlanTime(const PlanCommand& command);

  // What reading may take: more, and there is no time to plan.
  std::chrono::duration<double> for_reading() const;

  // Returns read(). When it takes too long, throws Error(timeout) that says how long the whole takes.
  template <class Read>
  auto reading(Read read) {
    base::Allowance allowance({.until = end_of_reading()});  // of getting the bytes: readers have their own
    try {
      auto result = read();
      read_ = elapsed();
      return result;
    } catch (const base::OutOfTime&) {
      refuse(whole_by_bytes(allowance.whole()));
    } catch (const Error& error) {
      if (error.code() != ErrorCode::timeout || !limit_) throw;
      refuse(whole_by_reading(error));
    }
  }

  // What planning may take: the rest, without what writing will take.
  std::chrono::duration<double> for_planning() const;

  // Returns plan(), likewise.
  template <class Plan>
  auto planning(Plan plan) {
    try {
      return plan();
    } catch (const Error& error) {
      if (error.code() != ErrorCode::timeout || !limit_) throw;
      refuse(whole_by_planning(error));
    }
  }

 private:
  using Seconds = std::chrono::duration<double>;
  using Clock = std::chrono::steady_clock;

  Seconds elapsed() const { return Clock::now() - start_; }
  Seconds writing(Seconds reading) const;
  std::optional<Clock::time_point> end_of_reading() const;
  static Seconds whole_by_bytes(Seconds needed);
  Seconds whole_by_reading(const Error& error) const;
  Seconds whole_by_planning(const Error& error) const;
  [[noreturn]] void refuse(Seconds whole) const;

  const Clock::time_point start_ = Clock::now();
  const PlanCommand& command_;
  const std::optional<Seconds> limit_;
  Seconds read_{0};  // the time that it took
};

}  // namespace berth::internal::cli
