// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <functional>
#include <map>

#include "base/allowance.h"
#include "base/text.h"
#include "berth/observe/html.h"
#include "html/html.h"
#include "html/palette.h"
#include "observe/html/kinds.h"
#include "observe/html/words.h"

namespace berth {

using namespace internal;

namespace {

using namespace internal::observe;

constexpr std::size_t kMostHolders = 1'000;  // rows that a browser sorts without delay

std::string pool_name(const Snapshot& pool) { return text::join(pool.device, " ", pool.allocator); }

std::string age_text(std::uint64_t age_ns) { return age_ns == 0 ? std::string(kUnknown) : duration_text(age_ns); }

struct Placed {
  const Snapshot* pool;
  const SnapshotBlock* block;
};

class SnapshotReport {
 public:
  explicit SnapshotReport(const ProcessSnapshot& snapshot) : snapshot_(snapshot) {
    find_blocks();
    find_kinds();
  }

  std::string write(const std::string& title) {
    html::HtmlReport report(title, subtitle());
    report.figures(figures());
    if (oldest_ns_ != 0) report.timeline(timeline());
    for (const Snapshot& pool : snapshot_.pools)
      if (!pool.blocks.empty() || !pool.free.empty()) report.range(range(pool), kinds_.groups);
    report.table(fragmentation()).table(holders()).table(groups());
    return report.take();
  }

 private:
  // ---- All pools together.

  void find_blocks() {
    for (const Snapshot& pool : snapshot_.pools) {
      for (const SnapshotBlock& block : pool.blocks) {
        base::append(blocks_, {&pool, &block});
        oldest_ns_ = std::max(oldest_ns_, block.age_ns);
      }
    }
    std::ranges::stable_sort(blocks_, std::greater(), [](const Placed& one) { return one.block->requested; });
  }

  // The same tag has the same tone in every pool.
  void find_kinds() {
    std::vector<Kind> kinds;
    for (const Placed& one : blocks_) {
      const std::string& word = one.pool->tags[one.block->tag];
      const auto [found, fresh] = kind_of_word_.try_emplace(word, kinds.size());
      if (fresh) {
        base::take(2 * word.size() + base::kHashEntry);
        base::append(kinds, {.name = word.empty() ? std::string(kUntagged) : word});
      }
      Kind& kind = kinds[found->second];
      kind.most += one.block->requested;
      kind.area += static_cast<double>(one.block->requested);
    }
    kinds_ = group_kinds("tag", std::move(kinds));
  }

  const Kind& kind(const Placed& one) const { return kinds_.all[kind_of_word_.at(one.pool->tags[one.block->tag])]; }

  std::string subtitle() const {
    return text::join("process ", snapshot_.process, snapshot_.program.empty() ? "" : text::join(" (", snapshot_.program, ")"), ", ",
                      snapshot_.reason);
  }

  std::vector<html::Figure> figures() const {
    SnapshotFigures all;
    for (const Snapshot& pool : snapshot_.pools) {
      all.committed_bytes += pool.figures.committed_bytes;
      all.requested_bytes += pool.figures.requested_bytes;
      all.rounding_bytes += pool.figures.rounding_bytes;
      all.waiting_bytes += pool.figures.waiting_bytes;
      all.free_bytes += pool.figures.free_bytes;
      all.live_blocks += pool.figures.live_blocks;
    }
    return {{"in use", text::bytes(all.requested_bytes), text::join(html::grouped(all.live_blocks), " blocks")},
            {"committed", text::bytes(all.committed_bytes), "taken from devices"},
            {"free in pools", text::bytes(all.free_bytes), percent(share(all.free_bytes, all.committed_bytes)) + " of committed"},
            {"waiting for streams", text::bytes(all.waiting_bytes)},
            {"rounding", text::bytes(all.rounding_bytes)},
            {"pools", html::grouped(snapshot_.pools.size())}};
  }

  // ---- When the live blocks were allocated. Blocks of unknown age are drawn from the start.

  html::Timeline timeline() const {
    std::vector<Placed> by_age;
    for (const Placed& one : blocks_)
      if (one.block->state == BlockState::live) by_age.push_back(one);
    const auto begin = [&](const Placed& one) { return one.block->age_ns == 0 ? 0 : oldest_ns_ - one.block->age_ns; };
    std::ranges::stable_sort(by_age, {}, begin);
    html::TimelineMaker maker(0, oldest_ns_, kinds_.groups);
    for (const Placed& one : by_age) maker.add(std::min(begin(one), oldest_ns_ - 1), kind(one).group, one.block->requested);
    html::Timeline line = maker.take();
    line.title = "What lives now, by when it was allocated";
    line.step = "before";
    line.clock = html::Timeline::Clock::before;
    return line;
  }

  // ---- One pool.

  html::RangeMap range(const Snapshot& pool) const {
    html::RangeMap map{.title = text::join("Addresses of ", pool_name(pool), ", ", text::bytes(pool.figures.committed_bytes), " committed"),
                       .base = pool.base,
                       .sites = pool.sites};
    for (const std::string& site : pool.sites) base::take(sizeof site + site.size());
    for (const Kind& one : kinds_.all) {
      base::take(one.name.size());
      base::append(map.tags, {one.name, one.tone});
    }
    base::reserve(map.pieces, pool.blocks.size() + pool.free.size());
    for (const SnapshotBlock& block : pool.blocks)
      map.pieces.push_back({.offset = block.offset,
                            .bytes = block.bytes,
                            .asked_bytes = block.requested,
                            .age_ns = block.age_ns,
                            .stream_id = block.stream_id,
                            .tag = static_cast<std::uint16_t>(kind_of_word_.at(pool.tags[block.tag])),
                            .site = block.site,
                            .kind = block.state == BlockState::live ? html::PieceKind::live : html::PieceKind::waiting});
    for (const FreeRun& run : pool.free)
      map.pieces.push_back({.offset = run.offset,
                            .bytes = run.bytes,
                            .stream_id = run.stream_id,
                            .kind = run.kind == FreeKind::slab ? html::PieceKind::slab : html::PieceKind::free});
    html::fold_addresses(map);
    return map;
  }

  html::Table fragmentation() const {
    html::Table table{.heading = "Fragmentation of each pool",
                      .columns = {{"pool"},
                                  {"committed", true},
                                  {"in use, rounding, waiting, free"},
                                  {"free", true},
                                  {"largest free run", true},
                                  {"fragmentation", true}},
                      .note = "Fragmentation is the part of the free memory outside slabs that is not in its longest run."};
    std::uint64_t most = 0;
    for (const Snapshot& pool : snapshot_.pools) most = std::max(most, pool.figures.committed_bytes);
    for (const Snapshot& pool : snapshot_.pools) table.rows.push_back(counted(fragmentation_row(pool, most)));
    return table;
  }

  static std::vector<html::TableCell> fragmentation_row(const Snapshot& pool, std::uint64_t most) {
    const SnapshotFigures& figures = pool.figures;
    html::TableCell bar{text::join(text::bytes(figures.requested_bytes), " in use of ", text::bytes(figures.committed_bytes)),
                        std::to_string(figures.requested_bytes)};
    const auto part = [&](std::uint64_t bytes, std::string_view colour, std::string_view what) {
      bar.bar.push_back({share(bytes, most), colour, text::join(what, " ", text::bytes(bytes))});
    };
    part(figures.requested_bytes, "tone-0", "in use");
    part(figures.rounding_bytes, "tone-1", "rounding");
    part(figures.waiting_bytes, "tone-3", "waiting");
    part(figures.free_bytes, "faint", "free");
    return {{pool_name(pool)},
            html::bytes_cell(figures.committed_bytes),
            bar,
            html::bytes_cell(figures.free_bytes),
            html::bytes_cell(figures.largest_free_bytes),
            percent_cell(pool.fragmentation())};
  }

  // ---- The largest holders.

  html::Table holders() const {
    html::Table table{.heading = "Largest blocks",
                      .columns = {{"bytes", true}, {"tag"}, {"site"}, {"age", true}, {"pool"}, {"state"}, {"address"}},
                      .searchable = true};
    for (const Placed& one : blocks_) {
      if (table.rows.size() == kMostHolders) break;
      table.rows.push_back(counted(holder_row(one)));
    }
    if (blocks_.size() > kMostHolders)
      table.note = text::join("The largest ", html::grouped(kMostHolders), " of ", html::grouped(blocks_.size()), ".");
    return table;
  }

  std::vector<html::TableCell> holder_row(const Placed& one) const {
    const SnapshotBlock& block = *one.block;
    const std::string& site = one.pool->sites[block.site];
    return {html::bytes_cell(block.requested),
            {kind(one).name},
            {site.empty() ? std::string(kUnknown) : site},
            {age_text(block.age_ns), block.age_ns == 0 ? "" : std::to_string(block.age_ns)},
            {pool_name(*one.pool)},
            {std::string(to_string(block.state))},
            {text::hex(one.pool->base + block.offset)}};
  }

  html::Table groups() const {
    html::Table table{.heading = "By tag and site",
                      .columns = {{"bytes", true}, {"share"}, {"blocks", true}, {"tag"}, {"site"}, {"pool"}},
                      .searchable = true};
    const std::vector<SnapshotGroup> groups = group_blocks(snapshot_);
    std::uint64_t all = 0;
    for (const SnapshotGroup& group : groups) all += group.bytes;
    for (const SnapshotGroup& group : groups) {
      if (table.rows.size() == kMostHolders) break;
      table.rows.push_back(counted({html::bytes_cell(group.bytes),
                                    bar_cell(group.bytes, all, html::tone_name(kinds_.all[kind_of_word_.at(group.tag)].tone)),
                                    html::count_cell(group.blocks),
                                    {group.tag.empty() ? std::string(kUntagged) : group.tag},
                                    {group.site.empty() ? std::string(kUnknown) : group.site},
                                    {text::join(group.device, " ", group.allocator)}}));
    }
    return table;
  }

  const ProcessSnapshot& snapshot_;
  std::vector<Placed> blocks_;  // the largest first
  std::uint64_t oldest_ns_ = 0;
  std::map<std::string, std::size_t> kind_of_word_;
  Kinds kinds_;
};

}  // namespace

std::string snapshot_html(const ProcessSnapshot& snapshot, const std::string& title) { return SnapshotReport(snapshot).write(title); }

}  // namespace berth
