// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <memory>

#include "berth/device/stream.h"

// Many pieces between the host and one device, several at a time: each of a few threads has a stream of the device and room for two pieces,
// so that the device moves one while the thread works on the other, and the threads' work adds up.
//
//     thread 1   fill a | fill b | wait for a, fill c | wait for b, …        host to device: a piece is filled, then moved
//     stream 1           move a  | move b             | move c
//
// The other way round a piece is moved first, and emptied when the room is needed again.
namespace berth::internal::copy {

// Room for one piece. What is put into the stream is done, or the stream was waited for, before `finish` and before the room is destroyed.
class PipelineRoom {
 public:
  virtual ~PipelineRoom();

  // Takes a piece: does what the host has to do first, and puts what the device has to do into the stream. Throws.
  virtual void start(std::size_t piece, StreamRef stream) = 0;
  // Does what the host has to do then. Throws.
  virtual void finish() = 0;
};

class PipelineWork {
 public:
  virtual ~PipelineWork();
  virtual std::unique_ptr<PipelineRoom> make_room() = 0;  // from any of the threads; throws
};

// Runs all pieces, and returns when they are done. After a failure no further piece is started, and the first is thrown when nothing runs
// any more. REQUIRES: the device has streams.
void run_pipeline(Device device, std::size_t pieces, int threads, PipelineWork& work);

// The same where no stream is needed: each thread has one room, starts a piece with no stream, and finishes it at once.
void run_pipeline(std::size_t pieces, int threads, PipelineWork& work);

// How many of the threads that many pieces keep busy on a device's streams.
int pipeline_threads(std::size_t pieces, int threads) noexcept;

}  // namespace berth::internal::copy
