// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>

struct CUstream_st;

// Kernels for the tests on a real device. Each is enqueued into a stream, and returns false when the runtime
// does not launch it.
namespace berth::testing {

// Loads all of them. The runtime would otherwise load each at its first launch, and may wait for all running
// kernels then: behind a kernel that spins, for ever.
bool load_kernels();

// Spins until the word, in memory that the host writes, is not 0; gives up after about ten seconds.
bool launch_spin(const volatile std::uint32_t* until, CUstream_st* stream);

// Writes words made from `value` and their index: all of them, or the first and the last `ends`.
bool launch_write(void* target, std::size_t bytes, std::uint32_t value, CUstream_st* stream);
bool launch_write_ends(void* target, std::size_t bytes, std::uint32_t value, CUstream_st* stream);
// Adds the number of words that differ from what was written to a counter on the device.
bool launch_check(const void* source, std::size_t bytes, std::uint32_t value, std::uint32_t* wrong, CUstream_st* stream);
bool launch_check_ends(const void* source, std::size_t bytes, std::uint32_t value, std::uint32_t* wrong, CUstream_st* stream);

// Writes to address 8, which destroys the context.
bool launch_illegal(CUstream_st* stream);

}  // namespace berth::testing
