// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <string_view>

#include "plan/pack/packer.h"

// The packers by name, in the order in which a portfolio tries them: fast ones that often reach the lower bound
// come first.
namespace berth::internal::plan {

struct OffsetStrategy {
  std::string_view name;
  std::string_view does;
  PackAnswer (*pack)(const PackTask& task);
};

std::span<const OffsetStrategy> offset_strategies() noexcept;

}  // namespace berth::internal::plan
