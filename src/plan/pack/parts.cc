// SPDX-License-Identifier: Apache-2.0
#include "plan/pack/parts.h"

#include <algorithm>
#include <numeric>
#include <tuple>
#include <utility>

#include "base/allowance.h"
#include "base/random.h"
#include "plan/pack/by_step.h"

namespace berth::internal::plan {

namespace {

// The end of the connected component of overlapping lifetimes that starts at `begin`. REQUIRES: sorted by
// begin.
std::size_t end_of_chain(const std::vector<PackBuffer>& buffers, const std::vector<std::uint32_t>& sorted, std::size_t begin) {
  std::uint32_t reach = buffers[sorted[begin]].end;
  std::size_t end = begin + 1;
  for (; end < sorted.size() && buffers[sorted[end]].begin < reach; ++end) reach = std::max(reach, buffers[sorted[end]].end);
  return end;
}

// Of few buffers in a long time: a table of all steps would be large.
void rank_sparse_times(Part& part) {
  std::vector<std::uint32_t>& times = part.times;
  times.reserve(2 * part.buffers.size());
  for (const PackBuffer& buffer : part.buffers) {
    times.push_back(buffer.begin);
    times.push_back(buffer.end);
  }
  std::sort(times.begin(), times.end());
  times.erase(std::unique(times.begin(), times.end()), times.end());
  times.shrink_to_fit();
  const auto rank = [&](std::uint32_t time) {
    return static_cast<std::uint32_t>(std::lower_bound(times.begin(), times.end(), time) - times.begin());
  };
  for (PackBuffer& buffer : part.buffers) {
    buffer.begin = rank(buffer.begin);
    buffer.end = rank(buffer.end);
  }
}

void rank_dense_times(Part& part, std::uint32_t first, std::uint32_t last) {
  std::vector<std::uint32_t> rank(last - first + std::size_t{1}, 0);
  for (const PackBuffer& buffer : part.buffers) rank[buffer.begin - first] = rank[buffer.end - first] = 1;
  part.times.reserve(static_cast<std::size_t>(std::count(rank.begin(), rank.end(), 1U)));
  for (std::uint32_t time = 0; time < rank.size(); ++time)
    if (rank[time] != 0) {
      rank[time] = static_cast<std::uint32_t>(part.times.size());
      part.times.push_back(first + time);
    }
  for (PackBuffer& buffer : part.buffers) {
    buffer.begin = rank[buffer.begin - first];
    buffer.end = rank[buffer.end - first];
  }
}

void rank_times(Part& part) {
  std::uint32_t first = UINT32_MAX;
  std::uint32_t last = 0;
  for (const PackBuffer& buffer : part.buffers) {
    first = std::min(first, buffer.begin);
    last = std::max(last, buffer.end);
  }
  if (are_dense(part.buffers.size(), last - first))
    rank_dense_times(part, first, last);
  else
    rank_sparse_times(part);
  part.steps = static_cast<std::uint32_t>(part.times.size() - 1);
}

PackBuffer mirrored(const PackBuffer& buffer, std::uint32_t steps) {
  PackBuffer out = buffer;
  out.begin = steps - buffer.end;
  out.end = steps - buffer.begin;
  return out;
}

// The greatest common divisor of all sizes and fixed offsets.
std::size_t common_unit(const Part& part) {
  std::size_t unit = 0;
  for (const PackBuffer& buffer : part.buffers)
    for (const std::size_t number : {buffer.bytes, buffer.fixed.value_or(0)})
      if (unit == 0 || number % unit != 0) unit = std::gcd(unit, number);
  return std::max<std::size_t>(unit, 1);
}

// A hash of everything that packing depends on, in units: an instance scaled by a constant has the same.
std::uint64_t fingerprint(const PackBuffer& buffer, std::size_t unit) {
  const std::size_t fixed = buffer.fixed ? *buffer.fixed / unit : SIZE_MAX;
  const std::size_t alignment = buffer.alignment / std::gcd<std::size_t>(buffer.alignment, unit);
  std::uint64_t hash = 0;
  for (const std::uint64_t part :
       {std::uint64_t{buffer.begin} << 32 | buffer.end, std::uint64_t{buffer.bytes / unit}, std::uint64_t{alignment}, std::uint64_t{fixed}})
    hash = Random(hash ^ part).next();
  return hash;
}

// Picks one of a part and its mirror image in time, so that both have the same result; which one does not
// matter.
void choose_direction(Part& part) {
  const std::size_t unit = common_unit(part);
  std::uint64_t forwards = 0;
  std::uint64_t backwards = 0;
  for (const PackBuffer& buffer : part.buffers) {
    forwards += fingerprint(buffer, unit);
    backwards += fingerprint(mirrored(buffer, part.steps), unit);
  }
  if (forwards <= backwards) return;
  for (PackBuffer& buffer : part.buffers) buffer = mirrored(buffer, part.steps);
  std::reverse(part.times.begin(), part.times.end());
  part.mirrored = true;
  part.last = part.times.front();
  for (std::uint32_t& time : part.times) time = part.last - time;
}

// Sorts the buffers independently of their numbers; the fixed ones first.
void put_in_order(CutPart& cut) {
  const std::size_t steps = cut.part.steps;
  const auto place = [&](std::uint32_t i) {
    const PackBuffer& one = cut.part.buffers[i];
    return one.begin + (one.fixed ? 0 : steps);
  };
  const auto key = [&](std::uint32_t i) {
    const PackBuffer& one = cut.part.buffers[i];
    return std::tuple(one.end, one.bytes, one.alignment, one.fixed.value_or(0), cut.indices[i]);
  };
  std::vector<std::uint32_t> order(cut.indices.size());
  std::iota(order.begin(), order.end(), 0U);
  order = sorted_by_step(std::move(order), 2 * steps, place);
  sort_equal_steps(order, place, [&](auto first, auto last) {
    std::sort(first, last, [&](std::uint32_t a, std::uint32_t b) { return key(a) < key(b); });
  });
  // Permutes in place, along the cycles of the permutation: there may be a million buffers.
  for (std::uint32_t start = 0; start < order.size(); ++start)
    for (std::uint32_t to = start; order[to] != to;) {
      const std::uint32_t from = std::exchange(order[to], to);
      if (from == start) break;
      std::swap(cut.part.buffers[to], cut.part.buffers[from]);
      std::swap(cut.indices[to], cut.indices[from]);
      to = from;
    }
}

void measure(Part& part) {
  std::vector<std::size_t> changes(part.steps + 1);  // differences may wrap, prefix sums do not
  for (const PackBuffer& buffer : part.buffers) {
    changes[buffer.begin] += buffer.bytes;
    changes[buffer.end] -= buffer.bytes;
    if (buffer.fixed) part.lower_bound_bytes = std::max(part.lower_bound_bytes, *buffer.fixed + buffer.bytes);
  }
  std::size_t live = 0;
  for (const std::size_t change : changes) {
    live += change;
    part.lower_bound_bytes = std::max(part.lower_bound_bytes, live);
  }
}

}  // namespace

std::vector<CutPart> cut_into_parts(const std::vector<PackBuffer>& buffers, std::uint32_t device) {
  const auto counts = [&](const PackBuffer& one) { return one.bytes != 0 && one.device == device; };
  std::vector<std::uint32_t> sorted;
  sorted.reserve(static_cast<std::size_t>(std::count_if(buffers.begin(), buffers.end(), counts)));
  for (std::uint32_t i = 0; i < buffers.size(); ++i)
    if (counts(buffers[i])) sorted.push_back(i);
  base::checkpoint_now();
  std::size_t steps = 0;
  for (const std::uint32_t index : sorted) steps = std::max<std::size_t>(steps, buffers[index].end);
  sorted = sorted_by_step(std::move(sorted), steps, [&](std::uint32_t i) { return buffers[i].begin; });
  std::vector<CutPart> parts;
  for (std::size_t begin = 0; begin < sorted.size();) {
    const std::size_t end = end_of_chain(buffers, sorted, begin);
    CutPart& cut = parts.emplace_back();
    const auto first = sorted.begin() + static_cast<std::ptrdiff_t>(begin);
    cut.indices.assign(first, first + static_cast<std::ptrdiff_t>(end - begin));
    if (end == sorted.size()) sorted.clear();
    if (sorted.empty()) sorted.shrink_to_fit();  // usually there is only one part
    cut.part.buffers.reserve(cut.indices.size());
    for (const std::uint32_t index : cut.indices) {
      cut.part.buffers.push_back(buffers[index]);
      cut.part.fixed += buffers[index].fixed ? 1U : 0U;
    }
    base::checkpoint_now();
    rank_times(cut.part);
    choose_direction(cut.part);
    base::checkpoint_now();
    put_in_order(cut);
    measure(cut.part);
    begin = end;
  }
  return parts;
}

PackBuffer uncut(const Part& part, const PackBuffer& buffer) {
  PackBuffer out = buffer;
  const std::uint32_t begin = part.times[buffer.begin];
  const std::uint32_t end = part.times[buffer.end];
  out.begin = part.mirrored ? part.last - end : begin;
  out.end = part.mirrored ? part.last - begin : end;
  return out;
}

}  // namespace berth::internal::plan
