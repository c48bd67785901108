// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <vector>

#include "base/text.h"
#include "berth/base/error.h"
#include "berth/copy/threads.h"
#include "berth/device/backend.h"
#include "copy/host/host_copy.h"
#include "copy/host/workers.h"
#include "copy/mapped_bytes.h"
#include "copy/notes.h"
#include "copy/now.h"
#include "copy/route/device_batch.h"
#include "copy/route/execute.h"
#include "copy/validate.h"
#include "memory/race_detector.h"
#include "record/emit.h"

namespace berth {

using namespace internal;
using namespace internal::copy;
using namespace internal::memory;
using namespace internal::record;

namespace {

std::uint64_t device_pair(const ValidatedPair& pair) noexcept {
  const auto word = [](const Backend* backend) {
    const DeviceKey key = backend->device().key();
    return std::uint64_t{key.kind} << 16 | key.index;
  };
  return word(pair.source) << 32 | word(pair.target);
}

// A validated batch: the copies that the host does alone, most of them runs of bytes, and those that involve
// another device.
struct Batch {
  struct Other {
    std::size_t index;
    ValidatedPair pair;
    std::uint64_t devices;
    Transfer transfer;  // for runs of bytes: kept, because a second pass over thousands of storages takes as
                        // long as validating them
  };
  std::vector<HostRun> runs;
  std::vector<HostCopy> copies;
  std::vector<Other> others;  // sorted by pair of devices, so that each device gets all of its work in one call

  void add(std::size_t index, const SpanRef& source, const SpanRef& target) {
    const ValidatedPair pair = validate_pair(source, target);
    auto* const from = static_cast<std::byte*>(source.data);
    auto* const to = static_cast<std::byte*>(target.data);
    if (pair.kind == PairKind::host && pair.run_bytes != 0)
      runs.push_back({from, to, pair.run_bytes});
    else if (pair.kind == PairKind::host)
      copies.push_back({target.shape->span(), {from, source.dtype, source.strides->span()}, {to, target.dtype, target.strides->span()}});
    else if (pair.kind != PairKind::nothing)
      others.push_back({index, pair, device_pair(pair), {to, target.device, from, source.device, pair.run_bytes}});
  }
};

// Most batches are runs of bytes in host memory, and inspecting thousands of storages takes a good part of the
// time of copying them, so the inspection is parallel too. Returns one run for each pair, of 0 bytes where the
// pair needs full validation; that includes pairs on other devices than the first pair's, whose backends may
// not be open yet. Returns no runs when the first pair is of another kind, or when the batch is too small to
// wake workers.
std::vector<HostRun> find_runs(const SpanList& sources, const SpanList& targets) {
  constexpr std::size_t kTogether = 256;
  if (sources.count < 4 * kTogether || host_run_bytes(sources[0], targets[0]) == 0) return {};
  const Device from = sources[0].device;
  const Device to = targets[0].device;
  std::vector<HostRun> runs(sources.count);
  run_in_parallel((sources.count + kTogether - 1) / kTogether, copy_threads(), [&](std::size_t item) noexcept {
    for (std::size_t i = item * kTogether; i < std::min((item + 1) * kTogether, sources.count); ++i) {
      const SpanRef source = sources[i];
      const SpanRef target = targets[i];
      const bool alike = source.device == from && target.device == to;
      runs[i] = {static_cast<std::byte*>(source.data), static_cast<std::byte*>(target.data), alike ? host_run_bytes(source, target) : 0};
    }
  });
  return runs;
}

Batch check_all(const SpanList& sources, const SpanList& targets) {
  Batch batch;
  batch.runs = find_runs(sources, targets);
  const std::size_t found = batch.runs.size();
  for (std::size_t i = 0; i < sources.count; ++i) {
    if (found == 0 || batch.runs[i].bytes == 0) batch.add(i, sources[i], targets[i]);
  }
  if (found != 0) std::erase_if(batch.runs, [](const HostRun& run) { return run.bytes == 0; });
  // Usually there is only one pair of devices, and sorting thousands would take as long as validating them.
  if (!std::ranges::is_sorted(batch.others, {}, &Batch::Other::devices)) std::ranges::stable_sort(batch.others, {}, &Batch::Other::devices);
  return batch;
}

// Runs the copies of one pair of devices: runs of bytes together, the others one after another.
void run_group(const SpanList& sources, const SpanList& targets, std::span<const Batch::Other> group) {
  std::vector<Transfer> direct;
  std::vector<Transfer> packed;
  for (const auto& [index, pair, devices, transfer] : group) {
    switch (group.size() == 1 ? BatchWay::alone : batch_way(pair)) {
      case BatchWay::alone: run_pair(sources[index], targets[index], pair); break;
      case BatchWay::direct: direct.push_back(transfer); break;
      case BatchWay::packed: packed.push_back(transfer); break;
    }
  }
  if (!direct.empty()) run_direct(direct, group.front().pair);
  if (!packed.empty()) run_packed(packed, group.front().pair);
}

// Host copies are distributed over all threads together. The others run grouped by device pair. A copy whose
// two sides overlap needs a temporary, and runs by itself.
void run_all(const SpanList& sources, const SpanList& targets, const Batch& batch) {
  if (!batch.runs.empty()) copy_on_host(batch.runs, copy_threads());
  if (!batch.copies.empty()) copy_on_host(batch.copies, copy_threads());
  for (auto begin = batch.others.begin(); begin != batch.others.end();) {
    const auto end = std::find_if(begin, batch.others.end(), [&](const Batch::Other& other) { return other.devices != begin->devices; });
    run_group(sources, targets, {begin, end});
    begin = end;
  }
}

// The same for batches with mapped files among them.
void run_guarded(const SpanList& sources, const SpanList& targets, const Batch& batch) {
  MappedTouches mapped;
  for (std::size_t i = 0; has_mapped_bytes() && i < sources.count; ++i) {
    mapped.add(sources[i]);
    mapped.add(targets[i]);
  }
  mapped.run([&] { run_all(sources, targets, batch); });
}

void note_all(const SpanList& sources, const SpanList& targets, StreamRef stream) {
  if (!memory::is_detecting_races()) return;
  for (std::size_t i = 0; i < sources.count; ++i) note_copy(sources[i], targets[i], stream);
}

void record_all(const CopyWatch& watch, const SpanList& sources, const SpanList& targets, const CopyOptions& options, const Site& site) {
  if (!record::has_copy_sinks()) return;
  for (std::size_t i = 0; i < sources.count; ++i) watch.copied_in_batch(sources[i], targets[i], sources.count, options, site);
}

SpanList list_of(std::span<const StridedSpan> spans) noexcept {
  return {spans.data(), spans.size(),
          [](const void* items, std::size_t i) noexcept { return SpanRef(static_cast<const StridedSpan*>(items)[i]); }};
}

// What a batch keeps alive until the stream has run it.
struct KeptBatch {
  std::vector<StridedSpan> sources;
  std::vector<StridedSpan> targets;
  Batch checked;  // points into the two
};

}  // namespace

void require_equal_counts(std::size_t sources, std::size_t targets) {
  if (sources == targets) return;
  throw ArgumentError(
      ErrorCode::size_mismatch,
      {text::join("copying ", sources, " sources to ", targets, " targets"), "the counts differ", "pass one target for each source"},
      {{"sources", sources}, {"targets", targets}});
}

void internal::copy::copy_batch_now(const SpanList& sources, const SpanList& targets, const Site& site) {
  const CopyWatch watch;
  const Batch batch = check_all(sources, targets);
  note_all(sources, targets, {});
  run_guarded(sources, targets, batch);
  record_all(watch, sources, targets, {}, site);
}

Event internal::copy::copy_batch_in(std::vector<StridedSpan> sources, std::vector<StridedSpan> targets, const CopyOptions& options,
                                    const Site& site) {
  const CopyWatch watch;
  Batch checked = check_all(list_of(sources), list_of(targets));
  const auto kept = std::make_shared<const KeptBatch>(KeptBatch{std::move(sources), std::move(targets), std::move(checked)});
  const SpanList from = list_of(kept->sources);
  const SpanList to = list_of(kept->targets);
  note_all(from, to, options.stream);
  Event done = options.stream->enqueue([kept, from, to] { run_guarded(from, to, kept->checked); });
  if (!options.non_blocking) done.wait();
  record_all(watch, from, to, options, site);
  return done;
}

Event copy_batch(std::span<const StridedSpan> sources, std::span<const StridedSpan> targets, const CopyOptions& options, Site site) {
  require_equal_counts(sources.size(), targets.size());
  if (options.stream) return copy_batch_in({sources.begin(), sources.end()}, {targets.begin(), targets.end()}, options, site);
  copy_batch_now(list_of(sources), list_of(targets), site);
  return {};
}

}  // namespace berth
