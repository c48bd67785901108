// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

#include "berth/plan/plan.h"
#include "cli/commands.h"

// `berth plan --budget`.
namespace berth::internal::cli {

Exit run_budget(const PlanCommand& command, Graph graph, PlanOptions options);

// Parses "64KiB". Throws an ArgumentError that names the option.
std::uint64_t parse_byte_count(const std::string& text, const char* option);

}  // namespace berth::internal::cli
