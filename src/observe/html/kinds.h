// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "html/address_map.h"
#include "html/timeline.h"

// How a report groups blocks: by tag if there are tags, else by size. There are eight tones, so the kinds that
// hold the most have one each, and the rest have the last in common.
namespace berth::internal::observe {

// One tag or size class.
struct Kind {
  std::string name;
  std::uint64_t most = 0;  // peak bytes: the kinds with the most have a tone of their own
  double area = 0;         // bytes times duration: larger areas are drawn lower, where they are stable
  std::uint8_t tone = 0;
  std::size_t group = 0;  // index in `Kinds::groups`
};

struct Kinds {
  std::string noun;                              // "tag", "size"
  std::vector<Kind> all = {};                    // by kind number
  std::vector<html::TimelineGroup> groups = {};  // the largest first, drawn lowest
};

// Assigns tones and groups. Kinds that never held anything get no group.
Kinds group_kinds(std::string noun, std::vector<Kind> all);

// The index of a size's class in `size_kinds`.
std::uint16_t size_kind(std::uint64_t bytes) noexcept;
std::vector<std::string> size_kinds();

std::vector<html::MapTag> map_tags(const Kinds& kinds);

}  // namespace berth::internal::observe
