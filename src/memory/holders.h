// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "berth/memory/out_of_memory.h"

namespace berth {

// Adds a block to the totals of its tag.
void add_holder(std::vector<Holder>& holders, Tag tag, std::size_t bytes);

// The eight largest, most first; equal ones by tag, so that reports are the same on every run.
std::vector<Holder> top_holders(std::vector<Holder> holders);

}  // namespace berth
