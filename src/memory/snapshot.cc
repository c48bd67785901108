// SPDX-License-Identifier: Apache-2.0
#include "berth/memory/snapshot.h"

#include <algorithm>

#include "base/allowance.h"
#include "base/text.h"
#include "berth/base/checked.h"
#include "berth/base/json.h"
#include "berth/memory/allocator.h"
#include "memory/live_blocks.h"

namespace berth {

using namespace internal;
using namespace internal::memory;

namespace {

// Strategies without an address range list their blocks in any order, with addresses for offsets.
void sort_by_address(Snapshot& snapshot) {
  if (snapshot.range_bytes != 0 || (snapshot.blocks.empty() && snapshot.free.empty())) return;
  std::ranges::sort(snapshot.blocks, {}, &SnapshotBlock::offset);
  std::ranges::sort(snapshot.free, {}, &FreeRun::offset);
  snapshot.base = std::min(snapshot.blocks.empty() ? UINT64_MAX : snapshot.blocks.front().offset,
                           snapshot.free.empty() ? UINT64_MAX : snapshot.free.front().offset);
  for (SnapshotBlock& block : snapshot.blocks) block.offset -= snapshot.base;
  for (FreeRun& run : snapshot.free) run.offset -= snapshot.base;
}

// Replaces tag numbers by indices into the snapshot's own list of names.
void name_tags(Snapshot& snapshot) {
  std::vector<std::uint32_t> index(1, 0);  // by the tag's number
  for (SnapshotBlock& block : snapshot.blocks) {
    const auto id = static_cast<std::uint16_t>(block.tag);
    if (id >= index.size()) index.resize(id + std::size_t{1}, 0);
    if (id != 0 && index[id] == 0) {
      index[id] = static_cast<std::uint32_t>(snapshot.tags.size());
      snapshot.tags.emplace_back(Tag::from_id(id).word());
    }
    block.tag = index[id];
  }
}

void name_sites(Snapshot& snapshot, Device device) {
  const LiveBlocks known = live_blocks(device.key());  // empty without a tracker
  if (known.empty()) return;
  std::unordered_map<std::uint64_t, std::uint32_t> index;  // by site and stack
  for (SnapshotBlock& block : snapshot.blocks) {
    const auto found = known.find(snapshot.base + block.offset);
    if (found == known.end() || block.state != BlockState::live) continue;
    const BlockNote& note = found->second;
    block.age_ns = note.age_ns;
    const auto [at, fresh] = index.try_emplace(std::uint64_t{note.site.value} << 32 | note.stack.value, 0);
    if (fresh) {
      at->second = static_cast<std::uint32_t>(snapshot.sites.size());
      snapshot.sites.push_back(site_in_words(note.site, note.stack));
    }
    block.site = at->second;
  }
}

SnapshotFigures figures_of(const Snapshot& snapshot) {
  SnapshotFigures figures;
  for (const MemoryRun& run : snapshot.memory) figures.committed_bytes += run.bytes;
  for (const SnapshotBlock& block : snapshot.blocks) {
    if (block.state == BlockState::waiting) {
      figures.waiting_bytes += block.bytes;
      ++figures.waiting_blocks;
      continue;
    }
    figures.requested_bytes += block.requested;
    figures.rounding_bytes += block.bytes - block.requested;
    ++figures.live_blocks;
  }
  for (const FreeRun& run : snapshot.free) {
    figures.free_bytes += run.bytes;
    if (run.kind == FreeKind::slab)
      figures.slab_free_bytes += run.bytes;
    else
      figures.largest_free_bytes = std::max(figures.largest_free_bytes, run.bytes);
  }
  if (snapshot.memory.empty())
    figures.committed_bytes = figures.requested_bytes + figures.rounding_bytes + figures.waiting_bytes + figures.free_bytes;
  return figures;
}

// By stream. Sorted once at the end: a file may name as many streams as it has blocks.
std::vector<StreamWait> waits_of(const Snapshot& snapshot) {
  std::vector<StreamWait> waits;
  const auto wait = [&](std::uint64_t stream_id, std::uint64_t bytes) {
    if (stream_id != 0) base::append(waits, {stream_id, bytes});
  };
  for (const SnapshotBlock& block : snapshot.blocks)
    if (block.state == BlockState::waiting) wait(block.stream_id, block.bytes);
  for (const FreeRun& run : snapshot.free)
    if (run.kind == FreeKind::stream) wait(run.stream_id, run.bytes);
  std::ranges::sort(waits, {}, &StreamWait::stream_id);
  std::size_t kept = 0;
  for (const StreamWait& one : waits) {
    if (kept != 0 && waits[kept - 1].stream_id == one.stream_id)
      waits[kept - 1].bytes += one.bytes;
    else
      waits[kept++] = one;
  }
  waits.resize(kept);
  return waits;
}

// Checks blocks and free runs in one walk, in order of offset.
class Auditor {
 public:
  explicit Auditor(const Snapshot& snapshot) noexcept : snapshot_(snapshot) {}

  std::string run() const {
    if (std::string wrong = check_lists(); !wrong.empty()) return wrong;
    if (!snapshot_.memory.empty() || snapshot_.range_bytes != 0) {
      if (std::string wrong = check_tiles(); !wrong.empty()) return wrong;
    }
    if (figures_of(snapshot_) != snapshot_.figures) return "snapshot: the figures are not the sums of its lists";
    return {};
  }

 private:
  template <class Run>
  std::string check_order(const std::vector<Run>& runs, std::string_view what) const {
    std::uint64_t at = 0;
    for (const Run& run : runs) {
      const auto end = try_add(run.offset, run.bytes);
      if (run.bytes == 0 || !end) return text::join("snapshot: ", what, " at offset ", run.offset, " has ", run.bytes, " bytes");
      if (run.offset < at) return text::join("snapshot: ", what, " at offset ", run.offset, " overlaps the one before, or is out of order");
      if (snapshot_.range_bytes != 0 && *end > snapshot_.range_bytes)
        return text::join("snapshot: ", what, " at offset ", run.offset, " lies outside the range");
      at = *end;
    }
    return {};
  }

  std::string check_lists() const {
    if (std::string wrong = check_order(snapshot_.memory, "memory"); !wrong.empty()) return wrong;
    if (std::string wrong = check_order(snapshot_.blocks, "a block"); !wrong.empty()) return wrong;
    if (std::string wrong = check_order(snapshot_.free, "a free run"); !wrong.empty()) return wrong;
    for (const SnapshotBlock& block : snapshot_.blocks) {
      if (block.requested > block.bytes)
        return text::join("snapshot: the block at offset ", block.offset, " is smaller than was asked for");
      if (block.tag >= snapshot_.tags.size() || block.site >= snapshot_.sites.size())
        return text::join("snapshot: the block at offset ", block.offset, " has a tag or a site that is not in the list");
    }
    return {};
  }

  // Blocks and free runs together cover the committed memory, without a gap.
  std::string check_tiles() const {
    auto block = snapshot_.blocks.begin();
    auto run = snapshot_.free.begin();
    for (const MemoryRun& memory : snapshot_.memory) {
      std::uint64_t at = memory.offset;
      while (at < memory.end()) {
        if (block != snapshot_.blocks.end() && block->offset == at)
          at = (block++)->end();
        else if (run != snapshot_.free.end() && run->offset == at)
          at = (run++)->end();
        else
          return text::join("snapshot: the memory at offset ", at, " is in no block and no free run, or in two");
      }
      if (at != memory.end()) return text::join("snapshot: there is no memory under the end of what begins before offset ", at);
    }
    if (block != snapshot_.blocks.end()) return text::join("snapshot: there is no memory under the block at offset ", block->offset);
    if (run != snapshot_.free.end()) return text::join("snapshot: there is no memory under the free run at offset ", run->offset);
    return {};
  }

  const Snapshot& snapshot_;
};

template <class Run, class Write>
void write_rows(JsonWriter& json, std::string_view name, std::initializer_list<std::string_view> columns, const std::vector<Run>& runs,
                Write write) {
  json.key(name).begin_object().key("columns").begin_array();
  for (const std::string_view column : columns) json.value(column);
  json.end_array().key("rows").begin_array();
  for (const Run& run : runs) {
    json.begin_array();
    write(run);
    json.end_array();
  }
  json.end_array().end_object();
}

void write_words(JsonWriter& json, std::string_view name, const std::vector<std::string>& words) {
  json.key(name).begin_array();
  for (const std::string& word : words) json.value(word);
  json.end_array();
}

void write_figures(JsonWriter& json, const Snapshot& snapshot) {
  const SnapshotFigures& f = snapshot.figures;
  json.key("figures").begin_object();
  json.member("committed_bytes", f.committed_bytes).member("requested_bytes", f.requested_bytes);
  json.member("rounding_bytes", f.rounding_bytes).member("waiting_bytes", f.waiting_bytes).member("free_bytes", f.free_bytes);
  json.member("slab_free_bytes", f.slab_free_bytes).member("largest_free_bytes", f.largest_free_bytes);
  json.member("live_blocks", f.live_blocks).member("waiting_blocks", f.waiting_blocks);
  json.member("fragmentation", snapshot.fragmentation()).end_object();
}

}  // namespace

std::string_view to_string(BlockState state) noexcept { return state == BlockState::live ? "live" : "waiting"; }

std::string_view to_string(FreeKind kind) noexcept {
  constexpr std::string_view kNames[] = {"anyone", "stream", "slab"};
  return kNames[static_cast<std::size_t>(kind)];
}

double Snapshot::fragmentation() const noexcept {
  const std::uint64_t outside = figures.free_bytes - figures.slab_free_bytes;
  return outside == 0 ? 0 : 1 - static_cast<double>(figures.largest_free_bytes) / static_cast<double>(outside);
}

void Snapshot::sum_up() {
  figures = figures_of(*this);
  streams = waits_of(*this);
}

std::string Snapshot::audit() const { return Auditor(*this).run(); }

// Writes the lists as rows of numbers, with the columns named once, because a pool has many blocks.
void Snapshot::write_json(JsonWriter& json) const {
  json.begin_object().member("device", device).member("allocator", allocator).member("settings", settings);
  json.member("allocator_id", allocator_id).member("base", text::hex(base)).member("range_bytes", range_bytes);
  json.member("page_bytes", page_bytes).member("limit_bytes", limit_bytes).member("has_blocks", has_blocks);
  write_figures(json, *this);
  json.key("stats");
  stats.write_json(json);
  write_words(json, "tags", tags);
  write_words(json, "sites", sites);
  write_rows(json, "memory", {"offset", "bytes"}, memory, [&](const MemoryRun& run) { json.value(run.offset).value(run.bytes); });
  write_rows(json, "blocks", {"offset", "bytes", "requested", "stream", "age_ns", "tag", "site", "state"}, blocks,
             [&](const SnapshotBlock& block) {
               json.value(block.offset).value(block.bytes).value(block.requested).value(block.stream_id).value(block.age_ns);
               json.value(block.tag).value(block.site).value(static_cast<int>(block.state));
             });
  write_rows(json, "free", {"offset", "bytes", "stream", "kind"}, free,
             [&](const FreeRun& run) { json.value(run.offset).value(run.bytes).value(run.stream_id).value(static_cast<int>(run.kind)); });
  write_rows(json, "streams", {"stream", "bytes"}, streams, [&](const StreamWait& one) { json.value(one.stream_id).value(one.bytes); });
  json.end_object();
}

Snapshot Allocator::snapshot() const {
  Snapshot made;
  made.device = device().to_string();
  made.allocator = name();
  made.settings = settings();
  made.allocator_id = id();
  made.stats = stats();
  list_blocks(made);
  sort_by_address(made);
  name_tags(made);
  name_sites(made, device());
  made.sum_up();
  return made;
}

}  // namespace berth
