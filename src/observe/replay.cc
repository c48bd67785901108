// SPDX-License-Identifier: Apache-2.0
#include "berth/observe/replay.h"

#include <algorithm>
#include <exception>
#include <functional>
#include <latch>
#include <memory>
#include <system_error>
#include <thread>

#include "base/text.h"
#include "berth/device/backend.h"
#include "berth/device/registry.h"
#include "berth/memory/default_allocator.h"
#include "observe/no_thread.h"
#include "observe/replay_loop.h"
#include "os/system.h"

namespace berth {

using namespace internal;
using namespace internal::observe;

namespace {

struct Interval {
  std::uint64_t begin_ns = 0;
  std::uint64_t end_ns = 0;
};

// Runs work(0) to work(count - 1), each on a thread of its own that starts when all are ready, and returns the
// interval from the first start to the last end. With count == 1 it runs on this thread: a C library takes no
// locks in a single-threaded process.
Interval run_together(int count, const std::function<void(int)>& work) {
  std::vector<Interval> spans(static_cast<std::size_t>(count));
  std::vector<std::exception_ptr> thrown(spans.size());
  std::latch ready(count);
  bool given_up = false;  // guarded by `ready`
  const auto one = [&](int index) {
    const auto at = static_cast<std::size_t>(index);
    ready.arrive_and_wait();
    if (given_up) return;
    spans[at].begin_ns = os::steady_time_ns();
    try {
      work(index);
    } catch (...) {
      thrown[at] = std::current_exception();
    }
    spans[at].end_ns = os::steady_time_ns();
  };
  if (count == 1) {
    one(0);
  } else {
    std::vector<std::jthread> threads;
    threads.reserve(spans.size());
    try {
      for (int index = 0; index < count; ++index) threads.emplace_back(one, index);
    } catch (const std::system_error& refused) {
      given_up = true;
      ready.count_down(count - static_cast<int>(threads.size()));  // for those that will not come
      throw_no_thread("replaying a trace", refused);
    }
  }
  for (const std::exception_ptr& error : thrown) {
    if (error) std::rethrow_exception(error);
  }
  return {std::ranges::min(spans, {}, &Interval::begin_ns).begin_ns, std::ranges::max(spans, {}, &Interval::end_ns).end_ns};
}

// The median time of reading the clock twice, which is included in every measurement.
std::uint64_t clock_cost_ticks() {
  std::vector<std::uint64_t> costs(1001);
  for (std::uint64_t& cost : costs) {
    const std::uint64_t before = os::ticks_in_order();
    cost = os::ticks_in_order() - before;
  }
  std::ranges::nth_element(costs, costs.begin() + 500);
  return costs[500];
}

class Replay {
 public:
  Replay(const ReplayScript& script, const ReplayOptions& options) : script_(script), options_(options) {
    result_.device = options.device;
    result_.strategy = options.strategy;
    result_.threads = options.threads;
    result_.touch = options.touch;
    result_.events = script.steps.size();
    result_.peak_live_bytes = checked_multiply(script.peak_live_bytes, static_cast<std::size_t>(options.threads), "the live bytes");
  }

  ReplayResult take() {
    const bool plain = options_.strategy == kMallocStrategy;
    plain ? measure_malloc() : measure_allocator();
    if (options_.percentiles && !script_.steps.empty()) plain ? time_malloc() : time_allocator();
    return std::move(result_);
  }

 private:
  template <class Player>
  using Performances = std::vector<std::unique_ptr<Performance<Player>>>;

  Performances<MallocPlayer> malloc_performances() const {
    Performances<MallocPlayer> all;
    for (int i = 0; i < options_.threads; ++i) all.push_back(std::make_unique<Performance<MallocPlayer>>(script_, script_));
    return all;
  }

  Performances<BlockPlayer> block_performances(Allocator& allocator) {
    Performances<BlockPlayer> all;
    for (int i = 0; i < options_.threads; ++i) {
      const std::vector<Stream>& streams = streams_.emplace_back(replay_streams(script_, options_));
      all.push_back(std::make_unique<Performance<BlockPlayer>>(script_, allocator, script_, streams));
    }
    return all;
  }

  void measure_malloc() { measure(malloc_performances()); }

  void measure_allocator() {
    const std::shared_ptr<Allocator> allocator = replay_allocator(options_);
    if (options_.strategy.empty()) result_.strategy = allocator->name();
    const auto performances = block_performances(*allocator);
    const Stats before = allocator->stats();
    measure(performances);
    const Stats stats = allocator->stats();
    result_.peak_committed_bytes = stats.peak_committed_bytes;
    result_.commits = stats.commits - before.commits;
    result_.decommits = stats.decommits - before.decommits;
    const std::span<const std::byte> range = allocator->range();
    if (options_.touch && !range.empty()) {
      result_.end_committed_bytes = stats.committed_bytes;
      result_.end_resident_bytes = os::resident_bytes(range.data(), range.size());
    }
    if (result_.peak_live_bytes != 0)
      result_.ratio = static_cast<double>(stats.peak_committed_bytes) / static_cast<double>(result_.peak_live_bytes);
  }

  void time_malloc() { time_events(malloc_performances()); }

  void time_allocator() {
    const std::shared_ptr<Allocator> allocator = replay_allocator(options_);
    time_events(block_performances(*allocator));
  }

  template <class Player>
  void measure(const Performances<Player>& performances) {
    if (options_.touch) os::reset_peak_resident();
    const std::size_t resident = os::resident_memory().now_bytes;
    const Interval time = run_together(options_.threads, [&](int index) {
      Performance<Player>& one = *performances[static_cast<std::size_t>(index)];
      options_.touch ? one.template run<true>() : one.template run<false>();
    });
    const auto wall_ns = static_cast<double>(time.end_ns - time.begin_ns);
    result_.wall_ms = wall_ns / 1e6;
    if (result_.events != 0) result_.ns_per_event = wall_ns / static_cast<double>(result_.events);
    if (options_.touch) result_.peak_resident_bytes = std::max(os::resident_memory().peak_bytes, resident) - resident;
  }

  template <class Player>
  void time_events(const Performances<Player>& performances) {
    const std::size_t events = script_.steps.size();
    std::vector<std::uint64_t> took(checked_multiply(events, performances.size(), "the measured events"));
    const std::uint64_t first_tick = os::ticks();
    const Interval time = run_together(options_.threads, [&](int index) {
      Performance<Player>& one = *performances[static_cast<std::size_t>(index)];
      const auto mine = std::span(took).subspan(static_cast<std::size_t>(index) * events, events);
      options_.touch ? one.template run_timed<true>(mine) : one.template run_timed<false>(mine);
    });
    const auto ticks = static_cast<double>(os::ticks() - first_tick);
    set_percentiles(took, static_cast<double>(time.end_ns - time.begin_ns) / ticks);
  }

  void set_percentiles(std::vector<std::uint64_t>& took, double ns_per_tick) {
    const std::uint64_t clock = clock_cost_ticks();
    const auto at = [&](double share) {
      const auto place = took.begin() + static_cast<std::ptrdiff_t>(share * static_cast<double>(took.size() - 1));
      std::ranges::nth_element(took, place);
      return static_cast<double>(*place - std::min(clock, *place)) * ns_per_tick;
    };
    result_.p50_ns = at(0.5);
    result_.p99_ns = at(0.99);
    result_.p999_ns = at(0.999);
  }

  const ReplayScript& script_;
  const ReplayOptions& options_;
  std::vector<std::vector<Stream>> streams_;  // kept until the blocks that use them are freed
  ReplayResult result_;
};

}  // namespace

void internal::observe::check_replay(const ReplayOptions& options) {
  const std::string device = options.device.to_string();
  if (options.threads < 1) {
    throw ArgumentError(ErrorCode::invalid_argument,
                        {text::join("a replay with ", options.threads, " threads"), "there must be one at least", "use 1 or more"},
                        {{"threads", options.threads}});
  }
  if (options.strategy == kMallocStrategy && options.device != Device()) {
    throw ArgumentError(
        ErrorCode::wrong_device,
        {text::join("replaying with malloc on ", device), "the C library has memory of the host only", "use the device cpu"},
        {{"device", device}});
  }
  if (options.touch && !backend(options.device).properties().abilities.host_access) {
    throw AccessError(ErrorCode::wrong_device,
                      {text::join("replaying with blocks touched on ", device), "the host may not write to memory of that device",
                       "leave out the touching, or use the device cpu"},
                      {{"device", device}});
  }
}

std::shared_ptr<Allocator> internal::observe::replay_allocator(const ReplayOptions& options) {
  if (!options.strategy.empty()) return make_allocator(options.strategy, options.device);
  default_allocator(options.device)->release_cached();
  return default_allocator(options.device);
}

std::vector<Stream> internal::observe::replay_streams(const ReplayScript& script, const ReplayOptions& options) {
  std::vector<Stream> streams(script.streams + 1U);
  if (!backend(options.device).properties().abilities.streams) return streams;
  for (std::size_t number = 1; number < streams.size(); ++number) streams[number] = make_stream(options.device);
  return streams;
}

void MallocPlayer::refuse(std::size_t bytes) {
  OutOfMemoryReport report;
  report.allocator = kMallocStrategy;
  report.requested_bytes = bytes;
  report.alignment = kAlignment;
  report.refused_by = "the C library";
  const MemoryInfo memory = backend(Device()).memory_info();
  report.device_total_bytes = memory.total_bytes;
  report.device_free_bytes = memory.free_bytes;
  throw OutOfMemory(std::move(report));
}

ReplayResult replay(const ReplayScript& script, const ReplayOptions& options) {
  check_replay(options);
  return Replay(script, options).take();
}

}  // namespace berth
