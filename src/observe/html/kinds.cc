// SPDX-License-Identifier: Apache-2.0
#include "observe/html/kinds.h"

#include <algorithm>
#include <array>
#include <functional>
#include <numeric>

#include "base/text.h"
#include "html/palette.h"

namespace berth::internal::observe {

namespace {

constexpr std::array<std::uint64_t, 6> kSizeSteps = {4ULL << 10, 64ULL << 10, 1ULL << 20, 16ULL << 20, 128ULL << 20, 1ULL << 30};

void add_rest(Kinds& kinds, const std::vector<std::size_t>& order, std::size_t own) {
  const std::size_t rest = order.size() - own;
  const auto tone = static_cast<std::uint8_t>(html::kTones - 1);
  kinds.groups.push_back({text::join(rest, " more"), tone});
  for (std::size_t at = own; at < order.size(); ++at) {
    kinds.all[order[at]].tone = tone;
    kinds.all[order[at]].group = own;
  }
}

}  // namespace

Kinds group_kinds(std::string noun, std::vector<Kind> all) {
  Kinds kinds{.noun = std::move(noun), .all = std::move(all)};
  std::vector<std::size_t> order(kinds.all.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::stable_sort(order, std::greater(), [&](std::size_t i) { return kinds.all[i].most; });
  while (!order.empty() && kinds.all[order.back()].most == 0) order.pop_back();
  const std::size_t own = order.size() <= html::kTones ? order.size() : html::kTones - 1;
  std::stable_sort(order.begin(), order.begin() + static_cast<std::ptrdiff_t>(own),
                   [&](std::size_t a, std::size_t b) { return kinds.all[a].area > kinds.all[b].area; });
  for (std::size_t at = 0; at < own; ++at) {
    Kind& kind = kinds.all[order[at]];
    kind.group = at;
    kind.tone = static_cast<std::uint8_t>(at);
    kinds.groups.push_back({kind.name, kind.tone});
  }
  if (own < order.size()) add_rest(kinds, order, own);
  return kinds;
}

std::uint16_t size_kind(std::uint64_t bytes) noexcept {
  return static_cast<std::uint16_t>(std::ranges::upper_bound(kSizeSteps, bytes) - kSizeSteps.begin());
}

std::vector<std::string> size_kinds() {
  std::vector<std::string> names = {text::join("below ", text::bytes(kSizeSteps.front()))};
  for (std::size_t i = 1; i < kSizeSteps.size(); ++i)
    names.push_back(text::join(text::bytes(kSizeSteps[i - 1]), " to ", text::bytes(kSizeSteps[i])));
  names.push_back(text::join(text::bytes(kSizeSteps.back()), " and more"));
  return names;
}

std::vector<html::MapTag> map_tags(const Kinds& kinds) {
  std::vector<html::MapTag> tags;
  for (const Kind& kind : kinds.all) tags.push_back({kind.name, kind.tone});
  return tags;
}

}  // namespace berth::internal::observe
