// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstdio>
#include <limits>
#include <string>
#include <vector>

#include "base/random.h"
#include "berth/base/units.h"
#include "berth/berth.h"
#include "berth/extend.h"
#include "berth/observe.h"
#include "cli/bench/alloc_cases.h"
#include "cli/input.h"
#include "os/system.h"
#include "torch_peer.h"

// Allocating and freeing on a CUDA device, by berth's pool and by PyTorch's caching allocator, in one process
// and with the same loop. Prints JSON.
//     torch_side_by_side [--quick] [TRACE...]
// Traces are also replayed from empty caches (time, and peak reserved / peak live), and their sizes are used
// for pairs of freeing and allocating, with 64 blocks live. Pinning is compared with cudaHostAlloc, with new memory each time.
namespace berth {

using namespace internal;

namespace {

class PoolPeer {
 public:
  PoolPeer(Allocator& allocator, StreamRef stream) noexcept : allocator_(allocator), stream_(stream) {}
  Block take(std::size_t bytes) { return allocator_.allocate({.bytes = bytes, .stream = stream_}); }
  void give(const Block& block) noexcept { allocator_.deallocate(block); }

 private:
  Allocator& allocator_;
  StreamRef stream_;
};

// The clock rate of a shared machine varies by half from second to second: the two take turns, and the fastest
// turn of each counts.
constexpr int kTurns = 4;

void keep_least(std::vector<cli::AllocFigure>& kept, const std::vector<cli::AllocFigure>& figures) {
  if (kept.empty()) kept = figures;
  for (std::size_t i = 0; i < kept.size(); ++i) kept[i].ns = std::min(kept[i].ns, figures[i].ns);
}

template <class Peer>
double replay_ms(Peer& peer, const ReplayScript& script) {
  std::vector<decltype(peer.take(1))> blocks(script.blocks);
  std::vector<bool> live(script.blocks);
  const std::uint64_t begin = os::steady_time_ns();
  for (const ReplayStep& step : script.steps) {
    if (step.allocates)
      blocks[step.block] = peer.take(step.bytes);
    else
      peer.give(blocks[step.block]);
  }
  const auto ms = static_cast<double>(os::steady_time_ns() - begin) / 1e6;
  for (const ReplayStep& step : script.steps) live[step.block] = step.allocates;
  for (std::size_t block = 0; block < live.size(); ++block) {
    if (live[block]) peer.give(blocks[block]);
  }
  return ms;
}

// With sizes drawn from a trace, and so many blocks live: frees one at random and allocates another, on and on.
template <class Peer>
class Mix {
 public:
  static constexpr std::size_t kLive = 64;

  Mix(Peer& peer, const std::vector<std::size_t>& sizes) : peer_(peer), sizes_(sizes) {
    for (std::size_t i = 0; i < kLive; ++i) live_.push_back(peer.take(draw()));
  }
  ~Mix() {
    for (auto& block : live_) peer_.give(block);
  }
  Mix(const Mix&) = delete;
  Mix& operator=(const Mix&) = delete;

  void run(int pairs) {
    for (int i = 0; i < pairs; ++i) {
      auto& block = live_[random_.below(kLive)];
      peer_.give(block);
      block = peer_.take(draw());
    }
  }

 private:
  std::size_t draw() { return sizes_[random_.below(sizes_.size())]; }

  Peer& peer_;
  const std::vector<std::size_t>& sizes_;
  Random random_{11};
  std::vector<decltype(peer_.take(1))> live_;
};

void mix_both(const std::string& path, PoolPeer& ours, bench::TorchCachingPeer& torch, const cli::AllocPace& pace) {
  Trace trace = read_trace(cli::read_input(path).bytes, path);
  std::vector<std::size_t> sizes;
  for (const ReplayStep& step : plan_replay(trace.events).steps) {
    if (step.allocates) sizes.push_back(step.bytes);
  }
  if (sizes.empty()) sizes.push_back(512);
  constexpr int kWarmUp = 200'000;
  double mine = std::numeric_limits<double>::infinity();
  double theirs = mine;
  Mix our_mix(ours, sizes);
  Mix their_mix(torch, sizes);
  our_mix.run(kWarmUp);
  their_mix.run(kWarmUp);
  for (int turn = 0; turn < kTurns; ++turn) {
    mine = std::min(mine, cli::least_ns(pace.rounds, pace.pairs, [&] { our_mix.run(pace.pairs); }));
    theirs = std::min(theirs, cli::least_ns(pace.rounds, pace.pairs, [&] { their_mix.run(pace.pairs); }));
  }
  std::printf("  {\"sizes_of\": \"%s\", \"berth\": %.1f, \"torch\": %.1f, \"times\": %.2f}", path.c_str(), mine, theirs, theirs / mine);
}

template <class Work>
double took_ms(const Work& work) {
  const std::uint64_t begin = os::steady_time_ns();
  work();
  return static_cast<double>(os::steady_time_ns() - begin) / 1e6;
}

// Pins memory with an empty pinned pool, and with the CUDA runtime: the fastest of a few rounds.
void pin_both(std::size_t bytes) {
  double ours = 1e9;
  double theirs = 1e9;
  for (int round = 0; round < 3; ++round) {
    {
      const auto memory = pool("pinned");
      Block block;
      ours = std::min(ours, took_ms([&] { block = memory->allocate({.bytes = bytes}); }));
      memory->deallocate(block);
    }
    void* block = nullptr;
    theirs = std::min(theirs, took_ms([&] { block = bench::TorchCachingPeer::pin(bytes); }));
    if (block != nullptr) bench::TorchCachingPeer::unpin(block);
  }
  std::printf(" \"pinning\": {\"bytes\": %zu, \"berth_ms\": %.1f, \"cudaHostAlloc_ms\": %.1f, \"times\": %.2f},\n", bytes, ours, theirs,
              theirs / ours);
}

// Replays kRounds times, each from empty caches; the first is cold in every way.
void replay_both(const std::string& path, bench::TorchCachingPeer& torch) {
  Trace trace = read_trace(cli::read_input(path).bytes, path);
  const ReplayScript script = plan_replay(trace.events);
  const auto peak = static_cast<double>(script.peak_live_bytes);
  constexpr int kRounds = 3;
  double ours[kRounds];
  double theirs[kRounds];
  double our_ratio = 0;
  double their_ratio = 0;
  for (int round = 0; round < kRounds; ++round) {
    {
      const auto memory = pool("cuda:0");
      PoolPeer peer(*memory, {});
      ours[round] = replay_ms(peer, script);
      our_ratio = static_cast<double>(memory->stats().peak_committed_bytes) / peak;
    }
    torch.clear();
    theirs[round] = replay_ms(torch, script);
    their_ratio = static_cast<double>(torch.peak_reserved()) / peak;
    torch.clear();
  }
  std::printf(
      "  {\"trace\": \"%s\", \"events\": %zu, \"berth_ms\": [%.2f, %.2f, %.2f], \"torch_ms\": [%.2f, %.2f, %.2f], \"berth_ratio\": %.4f, "
      "\"torch_ratio\": %.4f}",
      path.c_str(), script.steps.size(), ours[0], ours[1], ours[2], theirs[0], theirs[1], theirs[2], our_ratio, their_ratio);
}

int run(int argc, char** argv) {
  cli::AllocPace pace{.rounds = 2};  // per turn
  std::size_t pinned_bytes = 2_GiB;
  std::vector<std::string> traces;
  for (int i = 1; i < argc; ++i) {
    if (std::string(argv[i]) == "--quick") {
      pace = {.rounds = 1, .pairs = 500, .live = 500, .threads = 2};
      pinned_bytes = 64_MiB;
    } else {
      traces.emplace_back(argv[i]);
    }
  }
  bench::TorchCachingPeer torch;
  const auto memory = pool("cuda:0");
  const Stream stream = make_stream("cuda:0");
  PoolPeer ours(*memory, stream);
  std::vector<cli::AllocFigure> first;
  std::vector<cli::AllocFigure> second;
  for (int turn = 0; turn < kTurns; ++turn) {
    keep_least(first, cli::alloc_figures(ours, pace));
    keep_least(second, cli::alloc_figures(torch, pace));
  }
  std::printf("{\"device\": \"%s\",\n \"ns_per_pair\": {\n", backend("cuda:0").properties().description.c_str());
  for (std::size_t i = 0; i < first.size(); ++i)
    std::printf("  \"%s\": {\"berth\": %.1f, \"torch\": %.1f, \"times\": %.2f}%s\n", first[i].name.c_str(), first[i].ns, second[i].ns,
                second[i].ns / first[i].ns, i + 1 < first.size() ? "," : "");
  std::printf(" },\n \"mixes\": [\n");
  for (std::size_t i = 0; i < traces.size(); ++i) {
    mix_both(traces[i], ours, torch, pace);
    std::printf("%s\n", i + 1 < traces.size() ? "," : "");
  }
  std::printf(" ],\n");
  pin_both(pinned_bytes);
  std::printf(" \"replays\": [\n");
  for (std::size_t i = 0; i < traces.size(); ++i) {
    replay_both(traces[i], torch);
    std::printf("%s\n", i + 1 < traces.size() ? "," : "");
    std::fflush(stdout);
  }
  std::printf(" ]\n}\n");
  return 0;
}

}  // namespace

}  // namespace berth

int main(int argc, char** argv) {
  try {
    return berth::run(argc, argv);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "torch_side_by_side: %s\n", error.what());
    return 1;
  }
}
