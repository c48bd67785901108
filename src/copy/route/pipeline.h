// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <memory>

#include "berth/device/stream.h"

// A pipeline that moves many pieces between the host and one device. Each of a few threads has a stream of the
// device and two rooms (double buffering), so that the device moves one piece while the thread works on the
// other, and the threads run in parallel. Any thread may run a pipeline.
//
//     thread 1   fill a | fill b | wait for a, fill c | wait for b, …        host to device: a piece is filled, then moved
//     stream 1           move a  | move b             | move c
//
// From device to host a piece is moved first, and copied out when its room is needed again.
namespace berth::internal::copy {

// The buffers of one piece. The pipeline waits for everything that `start` enqueued before it calls `finish`
// and before it destroys the room.
class PipelineRoom {
 public:
  virtual ~PipelineRoom();

  // Starts a piece: does the host's first part, and enqueues the device's part into the stream. May throw.
  virtual void start(std::size_t piece, StreamRef stream) = 0;
  // Does the host's last part. May throw.
  virtual void finish() = 0;
};

class PipelineWork {
 public:
  virtual ~PipelineWork();
  virtual std::unique_ptr<PipelineRoom> make_room() = 0;  // called on any of the threads; may throw
};

// Runs all pieces, and returns when they are done. After a failure no further piece is started, and the first
// error is thrown once nothing runs any more. REQUIRES: the device has streams.
void run_pipeline(Device device, std::size_t pieces, int threads, PipelineWork& work);

// The same without streams: each thread has one room, starts a piece with no stream, and finishes it at once.
void run_pipeline(std::size_t pieces, int threads, PipelineWork& work);

// The number of threads, at most `threads`, that so many pieces keep busy on a device's streams.
int pipeline_threads(std::size_t pieces, int threads) noexcept;

}  // namespace berth::internal::copy
