// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "plan/pack/exact/rules.h"
#include "plan/pack/packer.h"

// The exact search with restarts, under other rankings and growing limits: it lowers the best packing one unit
// at a time, until it is low enough, or proved optimal, or the time is over.
namespace berth::internal::plan {

// For parts of up to 512 buffers. Without a deadline it gives up after a number of steps that takes about a
// second for a few hundred buffers.
PackAnswer pack_exact(const PackTask& task, const pack::exact::Rules& rules);

}  // namespace berth::internal::plan
