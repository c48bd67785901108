// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <vector>

#include "base/text.h"
#include "berth/base/error.h"
#include "berth/copy/threads.h"
#include "copy/check.h"
#include "copy/execute.h"
#include "copy/host_copy.h"
#include "copy/notes.h"
#include "copy/now.h"
#include "memory/stream_check.h"
#include "record/emit.h"

namespace berth {

namespace {

std::uint64_t device_pair(const CheckedPair& pair) noexcept {
  const auto word = [](const Backend* backend) {
    const DeviceKey key = backend->device().key();
    return std::uint64_t{key.kind} << 16 | key.index;
  };
  return word(pair.source) << 32 | word(pair.target);
}

// The pairs of a batch, which `Span` tells of, each checked.
template <class Span>
std::vector<CheckedPair> check_all(std::span<const Span> sources, std::span<const Span> targets) {
  std::vector<CheckedPair> pairs;
  pairs.reserve(sources.size());
  for (std::size_t i = 0; i < sources.size(); ++i) pairs.push_back(check_pair(sources[i], targets[i]));
  return pairs;
}

HostCopy host_copy(const SpanRef& source, const SpanRef& target, std::size_t run_bytes) noexcept {
  return {target.shape->span(),
          {static_cast<std::byte*>(source.data), source.dtype, source.strides->span()},
          {static_cast<std::byte*>(target.data), target.dtype, target.strides->span()},
          run_bytes};
}

// What the host does alone is one piece of work for its threads. The rest runs from device pair to device pair, so that each is asked for
// everything it has to do at a stretch. A pair that shares bytes within itself needs its temporary, and runs by itself.
template <class Span>
void run_all(std::span<const Span> sources, std::span<const Span> targets, std::span<const CheckedPair> pairs) {
  std::vector<HostCopy> on_host;
  std::vector<std::size_t> others;
  on_host.reserve(pairs.size());
  for (std::size_t i = 0; i < pairs.size(); ++i) {
    if (pairs[i].kind == PairKind::host)
      on_host.push_back(host_copy(sources[i], targets[i], pairs[i].run_bytes));
    else if (pairs[i].kind != PairKind::nothing)
      others.push_back(i);
  }
  std::ranges::stable_sort(others, {}, [&](std::size_t i) { return device_pair(pairs[i]); });
  if (!on_host.empty()) copy_on_host(on_host, copy_threads());
  for (const std::size_t i : others) run_pair(sources[i], targets[i], pairs[i]);
}

template <class Span>
void note_all(std::span<const Span> sources, std::span<const Span> targets, StreamRef stream) {
  if (!is_checking_streams()) return;
  for (std::size_t i = 0; i < sources.size(); ++i) note_copy(sources[i], targets[i], stream);
}

template <class Span>
void record_all(std::span<const Span> sources, std::span<const Span> targets, StreamRef stream, const Site& site) {
  if (!is_recording()) return;
  for (std::size_t i = 0; i < sources.size(); ++i) record_copy(sources[i], targets[i], stream, site);
}

template <class Span>
void run_batch(std::span<const Span> sources, std::span<const Span> targets, const Site& site) {
  const std::vector<CheckedPair> pairs = check_all(sources, targets);
  note_all(sources, targets, {});
  run_all(sources, targets, std::span(pairs));
  record_all(sources, targets, {}, site);
}

// What a batch in a stream keeps until it has run.
struct KeptBatch {
  std::vector<StridedSpan> sources;
  std::vector<StridedSpan> targets;
  std::vector<CheckedPair> pairs;
};

}  // namespace

void require_equal_counts(std::size_t sources, std::size_t targets) {
  if (sources == targets) return;
  throw ArgumentError(
      ErrorCode::size_mismatch,
      {text::join("copying ", sources, " sources to ", targets, " targets"), "the counts differ", "pass one target for each source"},
      {{"sources", sources}, {"targets", targets}});
}

void copy_batch_now(std::span<const SpanRef> sources, std::span<const SpanRef> targets, const Site& site) {
  run_batch(sources, targets, site);
}

Event copy_batch_in(std::vector<StridedSpan> sources, std::vector<StridedSpan> targets, const CopyOptions& options, const Site& site) {
  std::vector<CheckedPair> pairs = check_all(std::span<const StridedSpan>(sources), std::span<const StridedSpan>(targets));
  const auto kept = std::make_shared<const KeptBatch>(KeptBatch{std::move(sources), std::move(targets), std::move(pairs)});
  note_all(std::span(kept->sources), std::span(kept->targets), options.stream);
  Event done = options.stream->enqueue([kept] { run_all(std::span(kept->sources), std::span(kept->targets), std::span(kept->pairs)); });
  if (!options.non_blocking) done.wait();
  record_all(std::span(kept->sources), std::span(kept->targets), options.stream, site);
  return done;
}

Event copy_batch(std::span<const StridedSpan> sources, std::span<const StridedSpan> targets, const CopyOptions& options, Site site) {
  require_equal_counts(sources.size(), targets.size());
  if (options.stream) return copy_batch_in({sources.begin(), sources.end()}, {targets.begin(), targets.end()}, options, site);
  run_batch(sources, targets, site);
  return {};
}

}  // namespace berth
