// SPDX-License-Identifier: Apache-2.0
#include "copy/route/pipeline.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <exception>
#include <vector>

#include "copy/host/workers.h"
#include "os/lock/mutex.h"
#include "os/process/fork.h"

namespace berth::internal::copy {

PipelineRoom::~PipelineRoom() = default;
PipelineWork::~PipelineWork() = default;

namespace {

constexpr int kMostLanes = 8;  // more lanes do not make host memory faster, and hold staging buffers

// A free list of streams for pipelines: making a stream costs more than a small copy.
class IdleStreams {
 public:
  Stream take(Device device) {
    {
      const os::Lock lock(mutex_);
      const auto found =
          std::ranges::find_if(idle_, [&](const Idle& idle) { return idle.stream.device() == device && !idle.origin.is_inherited(); });
      if (found != idle_.end()) {
        Stream stream = std::move(found->stream);
        idle_.erase(found);
        return stream;
      }
    }
    return make_stream(device);
  }

  void give_back(Stream stream) {
    const os::Lock lock(mutex_);
    idle_.push_back({.stream = std::move(stream)});
  }

 private:
  struct Idle {
    Stream stream;
    os::Origin origin = {};  // a forked child does not use its parent's streams
  };
  os::Mutex mutex_;
  std::vector<Idle> idle_ BERTH_GUARDED_BY(mutex_);
};

// Never destroyed: streams may outlive their device's driver.
IdleStreams& idle_streams() {
  static auto* const made = new IdleStreams;
  return *made;
}

// State common to the threads.
struct Pipeline {
  const Device* device;  // null: no streams
  const std::size_t pieces;
  PipelineWork& work;
  std::atomic<std::size_t> next{0};  // relaxed: only hands out numbers
  std::atomic<bool> failed{false};
  std::exception_ptr error = {};  // of the first failure; read when all threads have finished

  bool take(std::size_t& piece) noexcept {
    if (failed.load(std::memory_order_relaxed)) return false;
    piece = next.fetch_add(1, std::memory_order_relaxed);
    return piece < pieces;
  }
  void note(std::exception_ptr thrown) noexcept {
    if (!failed.exchange(true, std::memory_order_relaxed)) error = std::move(thrown);
  }
};

// One thread's part.
class Lane {
 public:
  explicit Lane(Pipeline& pipeline) noexcept : pipeline_(pipeline) {}

  void run() noexcept {
    try {
      run_pieces();
    } catch (...) {  // rethrown on the thread that called run_pipeline
      pipeline_.note(std::current_exception());
      drain();
    }
  }

 private:
  struct InFlight {
    std::unique_ptr<PipelineRoom> room;
    Event done;
    bool busy = false;
  };

  void run_pieces() {
    std::size_t piece = 0;
    std::size_t turn = 0;
    for (; pipeline_.take(piece); ++turn) {
      if (!stream_ && pipeline_.device != nullptr) stream_ = idle_streams().take(*pipeline_.device);
      InFlight& stage = stream_ ? in_flight_[turn % in_flight_.size()] : in_flight_[0];
      finish(stage);
      if (stage.room == nullptr) stage.room = pipeline_.work.make_room();
      stage.room->start(piece, stream_);
      stage.done = stream_.record();
      stage.busy = true;
      if (!stream_) finish(stage);
    }
    // The older one first.
    for (std::size_t i = 0; i < in_flight_.size(); ++i) finish(in_flight_[(turn + i) % in_flight_.size()]);
    if (stream_) idle_streams().give_back(std::move(stream_));
  }

  static void finish(InFlight& stage) {
    if (!stage.busy) return;
    stage.done.wait();
    stage.busy = false;
    stage.room->finish();
  }

  // After a failure: waits until the device no longer uses the rooms, which are destroyed next. The stream is
  // dropped too, and its error with it.
  void drain() noexcept {
    if (!stream_) return;
    try {
      stream_.synchronize();
    } catch (...) {  // the first error is already recorded
    }
  }

  Pipeline& pipeline_;
  Stream stream_;
  std::array<InFlight, 2> in_flight_;
};

void run(const Device* device, std::size_t pieces, int threads, PipelineWork& work) {
  Pipeline pipeline{.device = device, .pieces = pieces, .work = work};
  const auto lanes = std::min(static_cast<std::size_t>(threads), pieces);
  run_in_parallel(lanes, static_cast<int>(lanes), [&](std::size_t) noexcept { Lane(pipeline).run(); });
  if (pipeline.error != nullptr) std::rethrow_exception(pipeline.error);
}

}  // namespace

int pipeline_threads(std::size_t pieces, int threads) noexcept {
  return static_cast<int>(std::min(static_cast<std::size_t>(std::min(threads, kMostLanes)), pieces));
}

void run_pipeline(Device device, std::size_t pieces, int threads, PipelineWork& work) {
  run(&device, pieces, pipeline_threads(pieces, threads), work);
}

void run_pipeline(std::size_t pieces, int threads, PipelineWork& work) { run(nullptr, pieces, threads, work); }

}  // namespace berth::internal::copy
