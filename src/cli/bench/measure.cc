// SPDX-License-Identifier: Apache-2.0
#include "cli/bench/measure.h"

#include <algorithm>
#include <vector>

#include "cli/bench/device_peer.h"
#include "cli/bench/memcpy_peer.h"
#include "cli/bench/sides.h"

namespace berth::internal::cli {

namespace {

using Times = std::vector<double>;  // one for each round

double median(Times values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

double median_ratio(const Times& above, const Times& below) {
  Times ratios;
  for (std::size_t i = 0; i < above.size(); ++i) ratios.push_back(above[i] / below[i]);
  return median(std::move(ratios));
}

// The baseline of a batch.
BenchCase as_one_copy(const BenchCase& batch) {
  BenchCase one = batch;
  one.kind = BenchKind::copy;
  one.shape = {batch.shape[0] * batch.shape[1]};
  return one;
}

// Times of one copy by each contestant; empty for those that do not take part.
struct Turns {
  Times ours;
  Times memcpy;
  Times one_copy;
  Times torch;
};

void sum_up(const Turns& turns, BenchResult& result) {
  result.seconds = median(turns.ours);
  if (!turns.memcpy.empty()) result.memcpy_seconds = median(turns.memcpy);
  if (!turns.memcpy.empty()) result.memcpy_ratio = median_ratio(turns.memcpy, turns.ours);
  if (!turns.one_copy.empty()) result.large_copy_ratio = median_ratio(turns.ours, turns.one_copy);
  if (turns.torch.size() != turns.ours.size()) return;  // it is not available, or died in the middle
  result.torch_seconds = median(turns.torch);
  result.torch_ratio = median_ratio(turns.torch, turns.ours);
}

}  // namespace

std::size_t Bench::chunk_for(const MemcpyPeer& peer, std::size_t bytes) {
  const auto [at, is_new] = chunks_.try_emplace(bytes, 0);
  if (is_new) at->second = peer.best_chunk(pace_);
  return at->second;
}

BenchResult Bench::measure(const BenchCase& one) {
  BenchSides sides = make_sides(one);
  BenchResult result{.name = one.name, .bytes = sides.bytes()};
  copy_sides(one, sides);
  result.wrong = first_wrong(sides);
  if (result.wrong) return result;

  const int calls = one.kind == BenchKind::small ? pace_.small_calls : 1;
  const auto run = [&] {
    for (int i = 0; i < calls; ++i) copy_sides(one, sides);
  };
  const auto before = [&] {
    if (one.cold) renew_targets(sides);
  };
  const bool on_host = one.source_device == Device() && one.target_device == Device();
  std::optional<MemcpyPeer> peer;
  std::optional<DevicePeer> device_peer;
  if (!on_host) {
    device_peer.emplace(one, result.bytes);
  } else if (one.kind != BenchKind::small) {
    peer.emplace(sides, threads_);
    result.memcpy_chunk_bytes = chunk_for(*peer, result.bytes);
  }
  const bool batch = one.kind == BenchKind::batch;
  const BenchCase large = batch ? as_one_copy(one) : BenchCase();
  const BenchSides large_sides = batch ? make_sides(large) : BenchSides();
  const bool torch = one.beside_torch && torch_ != nullptr && torch_->prepare(one, calls);

  Turns turns;
  for (int round = 0; round < pace_.rounds; ++round) {
    if (peer) turns.memcpy.push_back(least_seconds(pace_, [&] { peer->run(*result.memcpy_chunk_bytes); }));
    if (device_peer) turns.memcpy.push_back(least_seconds(pace_, [&] { device_peer->run(); }));
    if (batch) turns.one_copy.push_back(least_seconds(pace_, [&] { copy_sides(large, large_sides); }));
    turns.ours.push_back(least_seconds(pace_, run, before) / calls);
    const auto theirs = torch ? torch_->round(pace_.runs, pace_.enough_seconds) : std::nullopt;
    if (theirs) turns.torch.push_back(*theirs);
  }
  sum_up(turns, result);
  return result;
}

}  // namespace berth::internal::cli
