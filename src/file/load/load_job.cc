// SPDX-License-Identifier: Apache-2.0
#include "file/load/load_job.h"

#include <map>
#include <thread>

#include "file/load/device_stage.h"
#include "os/lock/mutex.h"

namespace berth::internal::file::load {

namespace {

class LoadWork final : public copy::PipelineWork {
 public:
  explicit LoadWork(LoadJob& job) noexcept : job_(job) {}

  std::unique_ptr<copy::PipelineRoom> make_room() override {
    if (job_.to_host()) return std::make_unique<HostRoom>(job_);
    return std::make_unique<DeviceRoom>(job_, stage_of_this_thread());
  }

 private:
  std::shared_ptr<HostStage> stage_of_this_thread() {
    const os::Lock lock(mutex_);
    std::shared_ptr<HostStage>& stage = stages_[std::this_thread::get_id()];
    if (stage == nullptr) stage = std::make_shared<HostStage>(job_);
    return stage;
  }

  LoadJob& job_;
  os::Mutex mutex_;
  std::map<std::thread::id, std::shared_ptr<HostStage>> stages_ BERTH_GUARDED_BY(mutex_);
};

}  // namespace

int run_load(LoadJob& job, int threads) {
  LoadWork work(job);
  const std::size_t pieces = job.plan.pieces.size();
  if (job.to_host() || !job.device->properties().abilities.streams) {
    run_pipeline(pieces, threads, work);
    return static_cast<int>(std::min(pieces, static_cast<std::size_t>(threads)));
  }
  run_pipeline(job.device->device(), pieces, threads, work);
  return copy::pipeline_threads(pieces, threads);
}

}  // namespace berth::internal::file::load
