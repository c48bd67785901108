// SPDX-License-Identifier: Apache-2.0
#include "observe/html/trace_run.h"

#include <algorithm>
#include <limits>

#include "base/allowance.h"
#include "observe/replay_loop.h"

namespace berth::internal::observe {

namespace {

constexpr std::uint64_t kCommittedSamples = 4096;  // reading stats costs more than an event

class Runner {
 public:
  Runner(const Trace& trace, const TraceHtmlOptions& options)
      : trace_(trace), options_{.device = options.device, .strategy = options.strategy}, script_(plan_replay(trace.events, options.scale)) {
    base::reserve(living_, script_.blocks);
    living_.resize(script_.blocks, kNone);
    check_replay(options_);
    run_.events = script_.steps.size();
  }

  TraceRun take() {
    options_.strategy == kMallocStrategy ? run_malloc() : run_allocator();
    return std::move(run_);
  }

 private:
  static constexpr std::size_t kNone = std::numeric_limits<std::size_t>::max();

  void run_malloc() {
    run_.strategy = kMallocStrategy;
    Performance<MallocPlayer>(script_, script_).run_telling([&](std::size_t at, void* data) { note(at, data); });
  }

  void run_allocator() {
    const std::shared_ptr<Allocator> allocator = replay_allocator(options_);
    run_.strategy = allocator->name();
    const std::vector<Stream> streams = replay_streams(script_, options_);
    const std::uint64_t every = std::max<std::uint64_t>(1, run_.events / kCommittedSamples);
    Performance<BlockPlayer>(script_, *allocator, script_, streams).run_telling([&](std::size_t at, void* data) {
      note(at, data);
      if (at % every == 0) run_.committed.push_back({at, allocator->stats().committed_bytes});
    });
    run_.peak_committed_bytes = allocator->stats().peak_committed_bytes;
  }

  void note(std::size_t at, const void* data) {
    const ReplayStep& step = script_.steps[at];
    if (!step.allocates)
      note_free(at, step);
    else if (step.bytes != 0)
      note_block(at, step, reinterpret_cast<std::uintptr_t>(data));
  }

  void note_block(std::size_t at, const ReplayStep& step, std::uint64_t address) {
    const std::uint16_t tag = trace_.tags.empty() ? std::uint16_t{0} : trace_.tags[at];
    living_[step.block] = run_.blocks.size();
    base::append(run_.blocks, {at, run_.events, address, step.bytes, trace_.events[at].serial, tag});
    live_bytes_ += step.bytes;
    if (live_bytes_ <= run_.peak_bytes) return;
    run_.peak_bytes = live_bytes_;
    run_.peak_event = at;
  }

  void note_free(std::size_t at, const ReplayStep& step) {
    const std::size_t block = std::exchange(living_[step.block], kNone);
    if (block == kNone) return;  // it had no bytes
    run_.blocks[block].end = at;
    live_bytes_ -= run_.blocks[block].bytes;
  }

  const Trace& trace_;
  const ReplayOptions options_;
  const ReplayScript script_;
  std::vector<std::size_t> living_;  // by block, its index in run_.blocks
  std::uint64_t live_bytes_ = 0;
  TraceRun run_;
};

}  // namespace

TraceRun run_trace(const Trace& trace, const TraceHtmlOptions& options) { return Runner(trace, options).take(); }

std::vector<const TracedBlock*> live_at(const TraceRun& run, std::uint64_t event) {
  std::vector<const TracedBlock*> live;
  for (const TracedBlock& block : run.blocks)
    if (block.begin <= event && event < block.end) live.push_back(&block);
  return live;
}

}  // namespace berth::internal::observe
