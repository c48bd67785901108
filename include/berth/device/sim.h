// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>

#include "berth/base/error.h"
#include "berth/base/units.h"
#include "berth/device/device.h"
#include "berth/export.h"

// The simulated device: everything that makes a GPU hard, on any machine. It has an address space of its own that the host may not
// touch (doing so is a fault, as on a GPU without managed memory), a page size and a capacity, streams that finish in any order
// the rules allow, and faults on demand. Programs and berth's own tests use it to find errors that a well-behaved device hides.
//
//     Device d = make_sim({.capacity_bytes = 64_MiB, .page_bytes = 64_KiB, .seed = 7});
//     Storage x = zeros({1024}, DType::f32, d);
//     sim_control(d).fail_after(SimOperation::commit, 3);     // the third commit from now is refused
//
// "sim:0" is there from the start, with the defaults below or BERTH_SIM_CAPACITY and BERTH_SIM_PAGE.
namespace berth {

struct SimOptions {
  std::size_t capacity_bytes = 1_GiB;
  std::size_t page_bytes = 64_KiB;  // a power of two, at least 4 KiB
  std::size_t alignment = 512;      // of blocks that do not ask for another
  std::uint64_t seed = 1;
  // 0: pages are committed, moved and given back one by one. Else, as on a GPU, in pieces of so many bytes, a multiple of page_bytes
  // (BackendProperties::piece_bytes); to move or decommit a part of one is an error here.
  std::size_t piece_bytes = 0;
  bool kernels = false;       // it gathers, scatters and converts by itself
  bool wants_pinned = false;  // it says that page-locked memory is much faster, so that copies take the ways they take on a GPU

  // Work in streams is put off as long as is legal, and picked in an order drawn from the seed, whenever someone waits or asks.
  // With `background` a thread also makes progress on its own, as hardware does; without it the order depends on the seed and the
  // sequence of calls alone, and is the same on every machine. Then host functions run only when someone waits for them: asking
  // whether an event is done runs copies and fills, never a function that could block the one who asks.
  bool background = true;
};

enum class SimOperation : std::uint8_t { reserve, commit, decommit, move, begin_move, end_move, release, copy, fill, make_stream };

class BERTH_EXPORT SimControl {
 public:
  virtual ~SimControl();

  // The nth call from now (1 is the next) fails once with the code; the ones around it are served.
  virtual void fail_after(SimOperation operation, std::uint64_t nth, ErrorCode code = ErrorCode::out_of_memory) = 0;
  // Every call fails until clear_faults().
  virtual void fail_always(SimOperation operation, ErrorCode code = ErrorCode::device_error) = 0;
  virtual void clear_faults() = 0;

  // The device is gone, as after a reset under the program: everything on it answers device_lost.
  virtual void lose() = 0;

  // How often the operation was asked for, refusals included.
  virtual std::uint64_t count(SimOperation operation) const = 0;
  virtual std::size_t committed_bytes() const = 0;
  virtual std::size_t reserved_bytes() const = 0;
  // Items that streams still have to run.
  virtual std::size_t pending_work() const = 0;
};

// Adds a device of kind "sim" and returns its name. Throws ArgumentError when the options make no sense.
BERTH_EXPORT Device make_sim(const SimOptions& options);

// Throws DeviceError(wrong_device) when the device is not a simulated one.
BERTH_EXPORT SimControl& sim_control(Device device);

}  // namespace berth
