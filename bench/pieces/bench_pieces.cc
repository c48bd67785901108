// SPDX-License-Identifier: Apache-2.0
#include <CLI/CLI.hpp>

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <cstdio>
#include <limits>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "base/random.h"
#include "berth/base/units.h"
#include "berth/berth.h"
#include "berth/observe.h"
#include "cli/input.h"
#include "expandable.h"
#include "os/system.h"
#include "piece_device.h"
#include "programs.h"

// What a GPU pool holds, and what its driver calls cost, on a device that counts them (piece_device.h), beside a model
// of PyTorch's expandable segments (expandable.h):
//
//     bench_pieces TRACE... NAME:SEED... [--longest MIB] [--limit RATIO] [--lag EVENTS] [--pairs]
//
// For each trace, or program made by rules (programs.h): bytes committed over bytes live at the peak; the least limit
// over live with which, and with every larger one tried, the whole trace replays; handles made, moved and given back by
// the replay, and the time of these calls by the costs of driver_costs.cc. --limit replays with that limit alone.
//
// With --lag all work is on streams, and done so many events later, as under a framework: what a program frees may not
// be given back to the device before. Without, blocks of a trace's stream 0 have no stream.
//
// --pairs: instead, the time of an allocation and a free on one stream, with sizes drawn from the source, 64 blocks live,
// of which a random one is freed each time.
namespace berth::bench {

namespace {

struct Options {
  std::vector<std::string> sources;
  std::size_t longest_mib = 128;
  double limit = 0;
  double target = PoolOptions().target_ratio;
  std::optional<std::uint64_t> lag;
  bool model = true;
  bool pairs = false;
  std::size_t longer = 0;
};

struct Outcome {
  bool complete = false;
  double ratio = 0;  // of the most that was committed, to the most that was live
  DriverCalls calls{};
  std::uint64_t waits = 0;
};

double ratio_of(std::size_t bytes, const ReplayScript& script) {
  return static_cast<double>(bytes) / static_cast<double>(script.peak_live_bytes);
}
std::size_t limit_of(double ratio, const ReplayScript& script) {
  return ratio == 0 ? SIZE_MAX : static_cast<std::size_t>(ratio * static_cast<double>(script.peak_live_bytes));
}

Outcome run_pool(const ReplayScript& script, const Options& options, double limit) {
  const Device device = piece_device({.longest_piece = options.longest_mib * 1_MiB, .lag = options.lag.value_or(0)});
  const auto memory = pool(device, {.limit_bytes = limit_of(limit, script), .decay = PoolOptions::kNever, .target_ratio = options.target});
  std::vector<Stream> streams{options.lag ? make_stream(device) : Stream()};
  for (int i = 0; i < script.streams; ++i) streams.push_back(make_stream(device));
  std::vector<Block> blocks(script.blocks);
  Outcome outcome{.complete = true};
  try {
    for (const ReplayStep& step : script.steps) {
      pass_event();
      if (step.allocates)
        blocks[step.block] = memory->allocate({.bytes = step.bytes, .stream = streams[step.stream]});
      else
        memory->deallocate(std::exchange(blocks[step.block], Block{}));
    }
  } catch (const OutOfMemory&) {
    outcome.complete = false;
  }
  outcome.calls = driver_calls();
  outcome.waits = driver_waits();
  outcome.ratio = ratio_of(memory->stats().peak_committed_bytes, script);
  for (const Block& block : blocks) {
    if (block.data != nullptr) memory->deallocate(block);
  }
  return outcome;
}

Outcome run_model(const ReplayScript& script, double limit) {
  ExpandableSegments segments(limit_of(limit, script));
  Outcome outcome{.complete = true};
  for (const ReplayStep& step : script.steps) {
    if (!step.allocates)
      segments.free(step.block);
    else if (!segments.allocate(step.block, step.bytes, step.stream)) {
      outcome.complete = false;
      break;
    }
  }
  outcome.calls = segments.calls();
  outcome.ratio = ratio_of(segments.peak_reserved(), script);
  return outcome;
}

// From far above down; the last one before the first that failed.
template <class Run>
std::optional<double> find_least_limit(const Run& run) {
  constexpr double kLimits[] = {1.5,   1.3,  1.2,    1.15,  1.1,    1.08, 1.06,   1.05,  1.045,  1.04,  1.035, 1.03,
                                1.025, 1.02, 1.0175, 1.015, 1.0125, 1.01, 1.0075, 1.005, 1.0025, 1.001, 1.0};
  std::optional<double> least;
  for (const double limit : kLimits) {
    if (!run(limit).complete) break;
    least = limit;
  }
  return least;
}

void print(const char* what, const Outcome& outcome, const std::optional<double>& least) {
  std::printf("  %-10s %9.4f %9s %8llu %8llu %8llu %9.1f %6llu%s\n", what, outcome.ratio,
              least ? std::to_string(*least).substr(0, 6).c_str() : "-", static_cast<unsigned long long>(outcome.calls.made),
              static_cast<unsigned long long>(outcome.calls.moved), static_cast<unsigned long long>(outcome.calls.given_back),
              outcome.calls.us / 1e3, static_cast<unsigned long long>(outcome.waits), outcome.complete ? "" : "  refused");
  std::fflush(stdout);
}

ReplayScript read_source(const std::string& source) {
  const std::size_t colon = source.rfind(':');
  if (colon == std::string::npos || std::ranges::count(program_names(), source.substr(0, colon)) == 0)
    return plan_replay(read_trace(internal::cli::read_input(source).bytes, source).events);
  std::uint64_t seed = 0;
  const char* const end = source.data() + source.size();
  if (std::from_chars(source.data() + colon + 1, end, seed).ptr != end)
    throw std::invalid_argument(source + ": a program has a number as its seed, as in paged:1");
  return make_program(source.substr(0, colon), seed);
}

// The same program with other sizes: all large blocks so much longer.
void lengthen(ReplayScript& script, std::size_t bytes) {
  std::size_t live = 0;
  script.peak_live_bytes = 0;
  for (ReplayStep& step : script.steps) {
    if (step.bytes > 1_MiB) step.bytes += bytes;
    live = step.allocates ? live + step.bytes : live - step.bytes;
    script.peak_live_bytes = std::max(script.peak_live_bytes, live);
  }
}

// The least of several rounds.
double pair_ns(const ReplayScript& script, const Options& options) {
  constexpr int kRounds = 20;
  constexpr int kPairs = 20'000;
  std::vector<std::size_t> sizes;
  for (const ReplayStep& step : script.steps) {
    if (step.allocates) sizes.push_back(step.bytes);
  }
  const Device device = piece_device({.longest_piece = options.longest_mib * 1_MiB, .lag = options.lag.value_or(0)});
  const auto memory = pool(device);
  const Stream stream = make_stream(device);
  internal::Random random(11);
  const auto allocate = [&] { return memory->allocate({.bytes = sizes[random.below(sizes.size())], .stream = stream}); };
  std::vector<Block> live(64);
  for (Block& block : live) block = allocate();
  double least = std::numeric_limits<double>::infinity();
  for (int round = 0; round < kRounds; ++round) {
    const std::uint64_t begin = internal::os::steady_time_ns();
    for (int i = 0; i < kPairs; ++i) {
      Block& block = live[random.below(live.size())];
      memory->deallocate(block);
      block = allocate();
    }
    least = std::min(least, static_cast<double>(internal::os::steady_time_ns() - begin) / kPairs);
  }
  for (const Block& block : live) memory->deallocate(block);
  return least;
}

void measure(const std::string& source, const Options& options) {
  ReplayScript script = read_source(source);
  if (options.pairs) {
    std::printf("%-28s %8.1f ns\n", source.substr(source.rfind('/') + 1).c_str(), pair_ns(script, options));
    return;
  }
  lengthen(script, options.longer);
  std::printf("%s: %zu events, %.2f GiB live at the peak\n", source.substr(source.rfind('/') + 1).c_str(), script.steps.size(),
              static_cast<double>(script.peak_live_bytes) / static_cast<double>(1_GiB));
  std::printf("  %-10s %9s %9s %8s %8s %8s %9s %6s\n", "", "held/live", "least", "made", "moved", "given", "ms", "waits");
  const bool alone = options.limit != 0;
  const auto ours = [&](double limit) { return run_pool(script, options, limit); };
  const auto theirs = [&](double limit) { return run_model(script, limit); };
  print("berth", ours(options.limit), alone ? std::nullopt : find_least_limit(ours));
  if (options.model) print("expandable", theirs(options.limit), alone ? std::nullopt : find_least_limit(theirs));
}

}  // namespace

}  // namespace berth::bench

int main(int argc, char** argv) {
  berth::bench::Options options;
  CLI::App app("What a GPU pool holds, and what its driver calls cost");
  app.add_option("source", options.sources, "a trace, or checkpoints, experts, paged, unpaged or four_streams with a seed, as in paged:1")
      ->required();
  app.add_option("--longest", options.longest_mib, "the longest piece, in MiB: a multiple of 2")
      ->check(CLI::Range(2, 1024))
      ->check([](const std::string& word) { return std::stoul(word) % 2 == 0 ? "" : "it is not a multiple of 2"; });
  app.add_option("--limit", options.limit, "one limit, over what is live at the peak")->check(CLI::Range(1.0, 10.0));
  app.add_option("--target", options.target, "PoolOptions::target_ratio");
  app.add_option("--lag", options.lag, "events until the work of a stream is done; all blocks have one then");
  app.add_option("--longer", options.longer, "bytes that are added to each large block: other sizes, in the same order");
  app.add_flag("--pairs", options.pairs, "the time of an allocation and a free, with sizes of the source");
  app.add_flag("!--alone", options.model, "without the model of expandable segments");
  CLI11_PARSE(app, argc, argv);
  try {
    for (const std::string& source : options.sources) berth::bench::measure(source, options);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "bench_pieces: %s\n", error.what());
    return 1;
  }
  return 0;
}
