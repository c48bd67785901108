// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>

// Where the mappings of a committed range end. Only the kernel knows: it joins neighbours and cuts mappings by rules
// of its own, which differ between versions. It has no call that tells on every kernel and in every sandbox, so it is
// asked for one length after another; hints make these few. Any thread.
namespace berth::internal::os {

// How many bytes from the address on are part of one mapping: at least a page, at most `most`.
// REQUIRES: the range is committed, in whole pages, and the caller alone commits, decommits or moves any of it.
std::size_t mapping_bytes(void* address, std::size_t most) noexcept;

// Notes that a mapping may end here, as at both ends of what was committed or moved. Only a hint.
void note_mapping_end(const void* address) noexcept;

}  // namespace berth::internal::os
