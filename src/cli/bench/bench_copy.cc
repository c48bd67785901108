// SPDX-License-Identifier: Apache-2.0
#include <fmt/core.h>

#include <optional>
#include <vector>

#include "berth/copy/threads.h"
#include "cli/bench/cases.h"
#include "cli/bench/measure.h"
#include "cli/bench/report.h"
#include "cli/bench/torch_peer.h"
#include "cli/commands.h"

namespace berth::cli {

namespace {

BenchPace table_pace(bool quick) { return quick ? BenchPace{.rounds = 3, .runs = 1, .small_calls = 1000} : BenchPace{}; }

// There are hundreds of them.
BenchPace full_pace(bool quick) { return quick ? BenchPace{.rounds = 1, .runs = 1} : BenchPace{.rounds = 5, .runs = 2}; }

// Measures all of them, or up to the first that copies wrong.
std::vector<BenchResult> measure_all(Bench& bench, const std::vector<BenchCase>& cases) {
  Progress progress;
  std::vector<BenchResult> results;
  for (const BenchCase& one : cases) {
    progress.say(fmt::format("measuring {}, {} of {}", one.name, results.size() + 1, cases.size()));
    results.push_back(bench.measure(one));
    if (results.back().wrong) break;
  }
  return results;
}

Exit say_wrong(const BenchResult& result) {
  print_error(fmt::format("measuring {}: {}", result.name, *result.wrong),
              "this is a defect of berth: report it with what `berth doctor` prints");
  return Exit::no;
}

}  // namespace

Exit run_bench_copy(const BenchCopyCommand& command) {
  if (command.threads) set_copy_threads(*command.threads);
  const int threads = copy_threads();
  std::vector<BenchResult> results;
  {
    std::optional<TorchPeer> torch;
    if (!command.no_torch) torch.emplace(threads, std::chrono::milliseconds(static_cast<std::int64_t>(command.torch_timeout * 1000)));
    Bench bench(table_pace(command.quick), threads, torch ? &*torch : nullptr);
    results = measure_all(bench, bench_cases(command.quick));
  }
  if (results.back().wrong) return say_wrong(results.back());
  std::vector<BenchResult> more;
  if (command.full) {
    Bench bench(full_pace(command.quick), threads, nullptr);
    more = measure_all(bench, full_bench_cases(command.quick));
    if (more.back().wrong) return say_wrong(more.back());
  }
  if (command.json) {
    results.insert(results.end(), more.begin(), more.end());
    print(bench_json(results, threads));
  } else {
    print(bench_table(results, threads) + (command.full ? lowest_table(more) : ""));
  }
  return Exit::ok;
}

}  // namespace berth::cli
