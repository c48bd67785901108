// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>

// How many mappings the process has. The kernel allows vm.max_map_count of them, 65,530 by default, for
// everything: at that number no thread can be started and no library loaded. Committing, decommitting and
// moving parts of a range cuts it into more mappings; so berth does that only while the process has few, and
// decommits in a way that cuts nothing from then on (os::decommit). The count is an estimate, and is corrected
// by what the kernel says whenever it comes near the most. Any thread.
namespace berth::internal::os {

// The most that berth lets the process have: a quarter of vm.max_map_count, but at most 16,384, unless it was set.
std::size_t most_mappings() noexcept;
void set_most_mappings(std::size_t most) noexcept;

// Notes a call that may have cut a mapping in three.
void note_cut() noexcept;
// Whether there are so many that nothing should be cut.
bool are_mappings_scarce() noexcept;

// As the kernel says, 0: unknown. `file` replaces /proc/self/maps in tests.
std::size_t count_mappings(const char* file = "/proc/self/maps") noexcept;

}  // namespace berth::internal::os
