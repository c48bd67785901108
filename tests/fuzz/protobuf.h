// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "fuzz/target.h"

// Mutates a message of Protocol Buffers as a tree: a field is changed, left out, doubled or moved, at any depth, and the
// lengths around it stay right.
namespace berth::testing::fuzz {

std::string mutate_message(Random& random, std::string bytes, const Change& change);

}  // namespace berth::testing::fuzz
