// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <vector>

#include "copy/route/pipeline.h"
#include "file/load/host_stage.h"
#include "file/load/load_job.h"

// The rooms of the pipeline (copy/route/pipeline.h) that loads run in: the buffers of one piece between a file
// and its target. Each room is used by one thread.
//
//     to the host:    file ──read, convert──▶ target
//     to a device:    file ──read, convert──▶ staging ──copy──▶ target
//                                                └─────copy──▶ scratch ──convert──▶ target        all but the reads in a stream
namespace berth::internal::file::load {

class HostRoom final : public copy::PipelineRoom {
 public:
  explicit HostRoom(LoadJob& job) noexcept : job_(job), host_(job) {}
  void start(std::size_t piece, StreamRef stream) override;
  void finish() override;

 private:
  LoadJob& job_;
  HostStage host_;
  std::vector<std::byte*> targets_;
  std::size_t bytes_ = 0;
};

class DeviceRoom final : public copy::PipelineRoom {
 public:
  DeviceRoom(LoadJob& job, std::shared_ptr<HostStage> host);
  void start(std::size_t piece, StreamRef stream) override;
  void finish() override;

 private:
  // The offset of a part in staging, and in scratch if it goes through scratch.
  struct Position {
    const Part* part;
    std::size_t at;
  };

  const FileTensor& tensor_of(const Part& part) const noexcept { return job_.tensors[part.tensor]; }
  std::byte* target_of(const Part& part) const noexcept;
  bool converts_there(const Part& part) const noexcept { return tensor_of(part).from_host != tensor_of(part).at_target; }
  void lay_out(const Piece& piece);
  void send(StreamRef stream);
  void convert(const Part& part, std::size_t at, StreamRef stream);

  LoadJob& job_;
  const std::shared_ptr<HostStage> host_;  // of the thread, which fills its two rooms alternately
  const Device staging_device_;
  const std::unique_ptr<copy::Scratch> staging_;
  std::unique_ptr<copy::Scratch> scratch_;  // on the device; made when first needed
  std::vector<Position> positions_;
  std::vector<std::byte*> addresses_;  // of positions_, in staging
  std::vector<Transfer> moves_;
  std::size_t bytes_ = 0;
};

}  // namespace berth::internal::file::load
