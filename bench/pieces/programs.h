// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "berth/observe/replay.h"

// Programs as their allocations, made by rules and a seed: for figures of data that no trace was recorded of.
namespace berth::bench {

// checkpoints: training whose activations are computed again, with sequences of any length
// experts: a mixture of experts, each of which gets another share of the tokens in each layer and step
// paged: serving with a cache of pages, weights, and prompts and batches of any length
// unpaged: serving with a cache for each request, which grows by being copied into a longer one
// four_streams: training with streams that load, exchange gradients and write besides
std::vector<std::string> program_names();
ReplayScript make_program(std::string_view name, std::uint64_t seed);

}  // namespace berth::bench
