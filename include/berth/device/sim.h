// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>

#include "berth/base/error.h"
#include "berth/base/units.h"
#include "berth/device/device.h"
#include "berth/export.h"

// The simulated device: what makes a GPU hard to program, on any machine. It has its own address space that the
// host may not access (an access faults, as on a GPU without managed memory), a page size and a capacity,
// streams that finish in any legal order, and fault injection. Programs and berth's own tests use it to find
// errors that a well-behaved device hides. Any thread.
//
//     Device d = make_sim({.capacity_bytes = 64_MiB, .page_bytes = 64_KiB, .seed = 7});
//     Storage x = zeros({1024}, DType::f32, d);
//     sim_control(d).fail_after(SimOperation::commit, 3);     // the third commit from now is refused
//
// "sim:0" always exists, with the defaults below or BERTH_SIM_CAPACITY and BERTH_SIM_PAGE.
namespace berth {

struct SimOptions {
  std::size_t capacity_bytes = 1_GiB;
  std::size_t page_bytes = 64_KiB;  // a power of two, at least 4 KiB
  std::size_t alignment = 512;      // the default alignment of blocks
  std::uint64_t seed = 1;
  // 0: pages are committed, moved and decommitted one by one. Else, as on a GPU, in pieces of this many bytes,
  // a multiple of page_bytes (BackendProperties::piece_bytes); moving or decommitting part of a piece is an
  // error here.
  std::size_t piece_bytes = 0;
  bool kernels = false;       // the device gathers, scatters and converts by itself
  bool wants_pinned = false;  // the device claims to prefer page-locked memory; copies are routed as on a GPU

  // Stream work is deferred as long as is legal, and runs, in a pseudo-random order drawn from the seed, when a
  // caller waits for or queries an event. With `background` a thread also makes progress on its own, as
  // hardware does; without it the order depends on the seed and the sequence of calls alone, and is the same on
  // every machine. Host functions then run only when a caller waits for them: a query runs copies and fills,
  // never a function that could block the caller.
  bool background = true;
};

enum class SimOperation : std::uint8_t { reserve, commit, decommit, move, begin_move, end_move, release, copy, fill, make_stream };

class BERTH_EXPORT SimControl {
 public:
  virtual ~SimControl();

  // The nth call from now (1 is the next) fails once with the code; the others succeed.
  virtual void fail_after(SimOperation operation, std::uint64_t nth, ErrorCode code = ErrorCode::out_of_memory) = 0;
  // Every call fails until clear_faults().
  virtual void fail_always(SimOperation operation, ErrorCode code = ErrorCode::device_error) = 0;
  virtual void clear_faults() = 0;

  // Simulates the loss of the device, as by a reset while the program runs: every operation fails with
  // device_lost.
  virtual void lose() = 0;

  // The number of calls of the operation, including failed ones.
  virtual std::uint64_t count(SimOperation operation) const = 0;
  virtual std::size_t committed_bytes() const = 0;
  virtual std::size_t reserved_bytes() const = 0;
  // Work items that are still queued in streams.
  virtual std::size_t pending_work() const = 0;
};

// Adds a device of kind "sim" and returns its name. Throws ArgumentError for invalid options.
BERTH_EXPORT Device make_sim(const SimOptions& options);

// Throws DeviceError(wrong_device) when the device is not simulated.
BERTH_EXPORT SimControl& sim_control(Device device);

}  // namespace berth
