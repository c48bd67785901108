// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "plan/pack/packer.h"

// The packers by name, in the order in which a portfolio tries them: fast ones that often reach the lower bound
// come first.
namespace berth::internal::plan {

// Strategies of one family take long for the same reason: too much is live at once. Where one of them gave up a
// part of very many buffers, the others are not tried.
enum class Family : std::uint8_t {
  sweep,  // near linear, however much is live at once
  gaps,
  lowest,
  other,
};

struct OffsetStrategy {
  std::string_view name;
  std::string_view does;
  PackAnswer (*pack)(const PackTask& task);
  Family family = Family::other;
};

std::span<const OffsetStrategy> offset_strategies() noexcept;

}  // namespace berth::internal::plan
