// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "html/address_map.h"
#include "html/timeline.h"

// What blocks are told apart by on a page: their tags where there are any, else their sizes. Eight tones tell few of them apart, so those
// that hold the most have one each, and the rest share the last.
namespace berth::internal::observe {

// One of what blocks are told apart by.
struct Kind {
  std::string name;
  std::uint64_t most = 0;  // that it ever held: those with the most have a tone of their own
  double area = 0;         // bytes by time: the larger stand lower, and what comes and goes does not shake them
  std::uint8_t tone = 0;
  std::size_t group = 0;  // in `Kinds::groups`
};

struct Kinds {
  std::string noun;                              // "tag", "size"
  std::vector<Kind> all = {};                    // by the number that blocks have
  std::vector<html::TimelineGroup> groups = {};  // the largest first: drawn lowest
};

// Gives tones and groups. Those that never held anything get none of their own.
Kinds group_kinds(std::string noun, std::vector<Kind> all);

// Which of the classes of `size_kinds` a size is in.
std::uint16_t size_kind(std::uint64_t bytes) noexcept;
std::vector<std::string> size_kinds();

std::vector<html::MapTag> map_tags(const Kinds& kinds);

}  // namespace berth::internal::observe
