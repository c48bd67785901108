// SPDX-License-Identifier: Apache-2.0
#include "copy/route/staged.h"

#include <algorithm>

#include "berth/copy/threads.h"
#include "berth/device/backend.h"
#include "copy/route/pipeline.h"
#include "device/host_access.h"

namespace berth::internal::copy {

namespace {

// The order of steps that a pipeline can run: host steps, then device steps, then host steps from `host_again`
// on.
struct Stages {
  std::size_t host_again = 0;
  bool in_order = true;

  explicit Stages(const Route& route) noexcept {
    const auto by_host = [](const RouteStep& step) { return step.kind == StepKind::host; };
    const auto first = std::ranges::find_if_not(route.steps, by_host);
    const auto behind = std::find_if(first, route.steps.end(), by_host);
    host_again = static_cast<std::size_t>(behind - route.steps.begin());
    in_order = std::all_of(behind, route.steps.end(), by_host);
  }
};

class StagedRoom final : public PipelineRoom {
 public:
  StagedRoom(RouteStage stage, const Stages& stages, std::size_t steps, const Loop& loop, const Cut& by)
      : stage_(std::move(stage)), stages_(stages), steps_(steps), loop_(loop), by_(by) {}

  void start(std::size_t piece, StreamRef stream) override {
    piece_ = piece_at(loop_, by_, piece);
    for (std::size_t step = 0; step < stages_.host_again; ++step) stage_.run_step(step, piece_, stream, 1);
  }
  void finish() override {
    for (std::size_t step = stages_.host_again; step < steps_; ++step) stage_.run_step(step, piece_, {}, 1);
  }

 private:
  const RouteStage stage_;
  const Stages& stages_;
  const std::size_t steps_;
  const Loop& loop_;
  const Cut& by_;
  Loop piece_;
};

class StagedWork final : public PipelineWork {
 public:
  StagedWork(const Route& route, const SpanRef& source, const SpanRef& target, const ValidatedPair& pair, const Loop& loop, const Cut& by)
      : route_(route), source_(source), target_(target), pair_(pair), loop_(loop), by_(by), stages_(route) {}

  std::unique_ptr<PipelineRoom> make_room() override {
    return std::make_unique<StagedRoom>(RouteStage(route_, source_, target_, pair_), stages_, route_.steps.size(), loop_, by_);
  }

 private:
  const Route& route_;
  const SpanRef& source_;
  const SpanRef& target_;
  const ValidatedPair& pair_;
  const Loop& loop_;
  const Cut& by_;
  const Stages stages_;
};

}  // namespace

bool is_pipelined(const Route& route, const ValidatedPair& pair) noexcept {
  if (route.pieces < 2 || route.overlap || device::is_host(*pair.source) == device::is_host(*pair.target)) return false;
  const Backend& device = device::is_host(*pair.source) ? *pair.target : *pair.source;
  return device.properties().abilities.streams && Stages(route).in_order;
}

void run_staged(const Route& route, const SpanRef& source, const SpanRef& target, const ValidatedPair& pair, const Loop& loop,
                const Cut& by) {
  StagedWork work(route, source, target, pair, loop, by);
  run_pipeline(device::is_host(*pair.source) ? target.device : source.device, route.pieces, copy_threads(), work);
}

}  // namespace berth::internal::copy
