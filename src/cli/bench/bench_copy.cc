// SPDX-License-Identifier: Apache-2.0
#include <fmt/core.h>

#include <algorithm>
#include <optional>
#include <vector>

#include "base/text.h"
#include "berth/base/error.h"
#include "berth/copy/threads.h"
#include "berth/device/backend.h"
#include "berth/device/registry.h"
#include "cli/bench/cases.h"
#include "cli/bench/measure.h"
#include "cli/bench/report.h"
#include "cli/bench/torch_peer.h"
#include "cli/commands.h"

namespace berth::internal::cli {

namespace {

BenchPace table_pace(bool quick) { return quick ? BenchPace{.rounds = 3, .runs = 1, .small_calls = 1000} : BenchPace{}; }

// Fewer runs: there are hundreds of cases.
BenchPace full_pace(bool quick) { return quick ? BenchPace{.rounds = 1, .runs = 1} : BenchPace{.rounds = 5, .runs = 2}; }

// The cases whose names begin with one of the words; all when there are no words.
std::vector<BenchCase> chosen(std::vector<BenchCase> cases, const std::vector<std::string>& words) {
  const auto left_out = [&](const BenchCase& one) {
    return std::none_of(words.begin(), words.end(), [&](const std::string& word) { return one.name.starts_with(word); });
  };
  if (!words.empty()) std::erase_if(cases, left_out);
  return cases;
}

[[noreturn]] void refuse_choice(const BenchCopyCommand& command) {
  throw ArgumentError(ErrorCode::invalid_argument,
                      {"--only " + text::printable(command.only.front()), "no copy has a name with that prefix",
                       !command.device.empty() ? text::join("berth bench copy --quick --device ", command.device, " prints the names")
                       : command.full          ? "berth bench copy --quick --full --json prints all names"
                                               : "berth bench copy --quick prints the names; --full has more"});
}

[[noreturn]] void refuse_device(Device device) {
  throw ArgumentError(ErrorCode::invalid_argument, {"--device " + device.to_string(), "its memory is the host's",
                                                    "leave it out to measure the host, or name a device with memory of its own"});
}

// A failed case has an error instead of figures, and the others continue.
BenchResult measure_or_fail(Bench& bench, const BenchCase& one) {
  try {
    return bench.measure(one);
  } catch (const Error& error) {
    return {.name = one.name, .failed = fmt::format("{}: {}", error.asked(), error.why())};
  }
}

// Measures all cases, or up to the first whose copy is wrong.
std::vector<BenchResult> measure_all(Bench& bench, const std::vector<BenchCase>& cases) {
  Progress progress;
  std::vector<BenchResult> results;
  for (const BenchCase& one : cases) {
    progress.say(fmt::format("measuring {}, {} of {}", one.name, results.size() + 1, cases.size()));
    results.push_back(measure_or_fail(bench, one));
    if (results.back().wrong) break;
  }
  return results;
}

std::vector<BenchResult> measure_table(const BenchCopyCommand& command, const std::vector<BenchCase>& cases, int threads) {
  std::optional<TorchPeer> torch;
  if (!command.no_torch && !cases.empty())
    torch.emplace(threads, std::chrono::milliseconds(static_cast<std::int64_t>(command.torch_timeout * 1000)));
  Bench bench(table_pace(command.quick), threads, torch ? &*torch : nullptr);
  return measure_all(bench, cases);
}

std::vector<BenchResult> measure_full(const BenchCopyCommand& command, const std::vector<BenchCase>& cases, int threads) {
  Bench bench(full_pace(command.quick), threads, nullptr);
  return measure_all(bench, cases);
}

bool is_any_failed(const std::vector<BenchResult>& results) {
  return std::ranges::any_of(results, [](const BenchResult& result) { return result.failed.has_value(); });
}

bool is_wrong(const std::vector<BenchResult>& results) { return !results.empty() && results.back().wrong.has_value(); }

Exit say_wrong(const BenchResult& result) {
  print_error(fmt::format("measuring {}: {}", result.name, *result.wrong),
              "this is a defect of berth: report it with what `berth doctor` prints");
  return Exit::no;
}

}  // namespace

Exit run_bench_copy(const BenchCopyCommand& command) {
  if (command.threads) set_copy_threads(*command.threads);
  const int threads = copy_threads();
  const std::optional<Device> device = command.device.empty() ? std::nullopt : std::optional<Device>(command.device);
  if (device && backend(*device).properties().abilities.host_access) refuse_device(*device);
  const std::vector<BenchCase> cases =
      chosen(device ? device_bench_cases(*device, command.quick) : bench_cases(command.quick), command.only);
  const std::vector<BenchCase> full =
      command.full && !device ? chosen(full_bench_cases(command.quick), command.only) : std::vector<BenchCase>();
  if (cases.empty() && full.empty()) refuse_choice(command);
  std::vector<BenchResult> results = measure_table(command, cases, threads);
  if (is_wrong(results)) return say_wrong(results.back());
  const std::vector<BenchResult> more = measure_full(command, full, threads);
  if (is_wrong(more)) return say_wrong(more.back());
  const bool failed = is_any_failed(results) || is_any_failed(more);
  if (command.json) {
    results.insert(results.end(), more.begin(), more.end());
    print(bench_json(results, threads));
  } else {
    print((results.empty() ? "" : bench_table(results, threads, device)) + (more.empty() ? "" : lowest_table(more)));
  }
  if (failed) print_error("some copies failed", "berth doctor says what works here; the error of each is in its row");
  return failed ? Exit::no : Exit::ok;
}

}  // namespace berth::internal::cli
