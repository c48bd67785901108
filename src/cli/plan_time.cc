// SPDX-License-Identifier: Apache-2.0
#include "cli/plan_time.h"

#include <fmt/core.h>

#include <algorithm>
#include <charconv>
#include <cmath>

#include "base/text.h"
#include "berth/base/error.h"

namespace berth::internal::cli {

namespace {

// Measured with files of a million rows of many shapes: reading is an eighth to a third of the time to a verified plan,
// most often a quarter.
constexpr double kReadingShare = 0.2;
constexpr double kReadingAtMost = 0.5;
// Getting the bytes of the file, of the time to a verified plan.
constexpr double kBytesShare = 0.01;
// Writing takes so many times as long as reading.
constexpr double kWritesPlan = 1.7;
constexpr double kWritesPicture = 3;
constexpr double kPrintsLocations = 1;
constexpr double kPrintsPicture = 0.8;

double needed_s(const Error& error) {
  const std::string_view text = error.fact("needed_ms");
  std::int64_t needed_ms = 0;
  std::from_chars(text.data(), text.data() + text.size(), needed_ms);
  return static_cast<double>(needed_ms) / 1e3;
}

// Rounded up, for an option: 0.25, 9.
std::string as_option(double time_s) {
  return time_s < 1 ? fmt::format("{:.2f}", std::ceil(time_s * 100) / 100) : fmt::format("{:.0f}", std::ceil(time_s));
}

}  // namespace

PlanTime::PlanTime(const PlanCommand& command)
    : command_(command), limit_(command.time_limit ? std::optional(Seconds(*command.time_limit)) : std::nullopt) {}

std::optional<PlanTime::Clock::time_point> PlanTime::end_of_reading() const {
  if (!limit_) return std::nullopt;
  // The limit is kept within a fifth and 0.2 s, most of which is for the end.
  const Seconds last = *limit_ * 1.05 + Seconds(0.1);
  return start_ + std::chrono::duration_cast<Clock::duration>(last * kReadingAtMost);
}

PlanTime::Seconds PlanTime::for_reading() const {
  const std::optional<Clock::time_point> end = end_of_reading();
  return end ? std::max<Seconds>(*end - Clock::now(), Seconds(0)) : Seconds::max();
}

PlanTime::Seconds PlanTime::for_planning() const {
  return limit_ ? std::max(*limit_ - elapsed() - writing(read_), Seconds(0)) : Seconds::max();
}

PlanTime::Seconds PlanTime::writing(Seconds reading) const {
  double times = 0;
  if (!command_.out.empty()) times += kWritesPlan;
  if (!command_.svg.empty()) times += kWritesPicture;
  if (!command_.html.empty()) times += kWritesPicture;
  if (command_.json && command_.full) times += kPrintsLocations;
  if (!command_.json) times += kPrintsPicture;
  return times * reading;
}

PlanTime::Seconds PlanTime::whole_by_bytes(Seconds needed) { return needed / kBytesShare; }

PlanTime::Seconds PlanTime::whole_by_reading(const Error& error) const {
  const Seconds reading(needed_s(error));
  return reading / kReadingShare + writing(reading);
}

PlanTime::Seconds PlanTime::whole_by_planning(const Error& error) const { return read_ + Seconds(needed_s(error)) + writing(read_); }

void PlanTime::refuse(Seconds whole) const {
  const double about_s = std::max(whole, *limit_).count();
  throw Error(ErrorCode::timeout,
              {fmt::format("planning {} within {} s", text::printable(command_.path), limit_->count()),
               fmt::format("reading it and making one verified plan takes about {} s here", as_option(about_s)),
               fmt::format("give it --time-limit {}, or none", as_option(1.5 * about_s))},
              {{"path", text::printable(command_.path)}, {"needed_ms", std::llround(about_s * 1e3)}});
}

}  // namespace berth::internal::cli
