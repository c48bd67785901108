// SPDX-License-Identifier: Apache-2.0
#include "plan/verify/refute.h"

#include <algorithm>
#include <numeric>
#include <set>
#include <utility>

namespace berth::internal::plan::verify {

namespace {

constexpr std::size_t kMostLooks = std::size_t{1} << 19;  // offsets tried, in total: some tenths of a second

using Locations = std::vector<std::pair<std::size_t, std::size_t>>;  // of the live buffers: number and offset

// If there is a packing, there is one in which everything is pushed down, and there all offsets are multiples
// of this.
std::size_t unit_of(const std::vector<LivingBuffer>& buffers) {
  std::size_t unit = 0;
  for (const LivingBuffer& one : buffers) unit = std::gcd(std::gcd(unit, one.bytes), std::gcd(one.alignment, one.fixed.value_or(0)));
  return std::max<std::size_t>(unit, 1);
}

// Alignments that divide all sizes and fixed offsets hold by themselves.
void drop_alignments(std::vector<LivingBuffer>& buffers) {
  std::size_t sizes = 0;
  for (const LivingBuffer& one : buffers) sizes = std::gcd(sizes, std::gcd(one.bytes, one.fixed.value_or(0)));
  const auto divides = [&](const LivingBuffer& one) { return sizes % one.alignment == 0; };
  if (sizes == 0 || !std::all_of(buffers.begin(), buffers.end(), divides)) return;
  for (LivingBuffer& one : buffers) one.alignment = sizes;
}

}  // namespace

bool surely_do_not_fit(std::vector<LivingBuffer> buffers, std::size_t height) {
  std::erase_if(buffers, [](const LivingBuffer& one) { return one.bytes == 0; });
  if (buffers.empty()) return false;
  drop_alignments(buffers);
  std::sort(buffers.begin(), buffers.end(), [](const LivingBuffer& a, const LivingBuffer& b) { return a.begin < b.begin; });
  const std::size_t unit = unit_of(buffers);
  std::set<Locations> states = {{}};
  std::size_t looks = 0;
  for (std::size_t born = 0; born < buffers.size(); ++born) {
    const LivingBuffer& one = buffers[born];
    std::set<Locations> next;
    for (const Locations& old : states) {
      Locations alive;
      std::copy_if(old.begin(), old.end(), std::back_inserter(alive),
                   [&](const auto& location) { return buffers[location.first].end > one.begin; });
      for (std::size_t offset = 0; offset <= height && one.bytes <= height - offset; offset += unit) {
        if (++looks > kMostLooks) return false;
        if (offset % one.alignment != 0 || (one.fixed && *one.fixed != offset)) continue;
        const bool free = std::all_of(alive.begin(), alive.end(), [&](const auto& location) {
          return location.second >= offset + one.bytes || location.second + buffers[location.first].bytes <= offset;
        });
        if (!free) continue;
        Locations with = alive;
        with.emplace_back(born, offset);
        next.insert(std::move(with));
      }
    }
    states = std::move(next);
  }
  return states.empty();
}

}  // namespace berth::internal::plan::verify
