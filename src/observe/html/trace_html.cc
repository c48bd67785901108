// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <functional>

#include "base/allowance.h"
#include "base/text.h"
#include "berth/observe/html.h"
#include "html/html.h"
#include "html/number.h"
#include "html/palette.h"
#include "observe/html/kinds.h"
#include "observe/html/trace_run.h"
#include "observe/html/words.h"

namespace berth {

using namespace internal;

namespace {

using namespace internal::observe;

constexpr std::size_t kMostBoxes = 250'000;     // about eight characters each in the report
constexpr std::size_t kMostLiveBlocks = 1'000;  // rows that a browser sorts without delay

// The figures of each kind over the whole trace.
struct KindFigures {
  std::uint64_t live_bytes = 0;
  std::uint64_t most_bytes = 0;
  std::uint64_t blocks = 0;
  std::uint64_t bytes = 0;
  double area = 0;  // bytes times events
};

double area_of(const TracedBlock& block) { return static_cast<double>(block.bytes) * static_cast<double>(block.end - block.begin); }

// Calls begin(block) and end(block) in the order of events.
template <class Begin, class End>
void walk(const TraceRun& run, const Begin& begin, const End& end) {
  std::vector<std::size_t> by_end;
  base::reserve(by_end, run.blocks.size());
  by_end.resize(run.blocks.size());
  for (std::size_t i = 0; i < by_end.size(); ++i) by_end[i] = i;
  std::ranges::stable_sort(by_end, {}, [&](std::size_t i) { return run.blocks[i].end; });
  auto ending = by_end.begin();
  for (const TracedBlock& block : run.blocks) {
    for (; ending != by_end.end() && run.blocks[*ending].end <= block.begin; ++ending) end(run.blocks[*ending]);
    begin(block);
  }
  for (; ending != by_end.end() && run.blocks[*ending].end < run.events; ++ending) end(run.blocks[*ending]);
}

class TraceReport {
 public:
  TraceReport(const Trace& trace, const TraceHtmlOptions& options)
      : trace_(trace), options_(options), run_(run_trace(trace, options)), by_tag_(trace.words.size() > 1) {
    count_kinds();
  }

  std::string write(const std::string& title) {
    html::HtmlReport report(title, subtitle());
    report.figures(figures()).timeline(timeline()).map(map()).table(holders()).table(kinds_table()).table(fragmentation());
    for (const std::string& note : notes()) report.paragraph(note);
    return report.take();
  }

 private:
  std::uint16_t kind_of(const TracedBlock& block) const { return by_tag_ ? block.tag : size_kind(block.bytes); }

  void count_kinds() {
    std::vector<std::string> names = by_tag_ ? trace_.words : size_kinds();
    if (by_tag_) names[0] = kUntagged;
    figures_.resize(names.size());
    walk(
        run_,
        [&](const TracedBlock& block) {
          KindFigures& figures = figures_[kind_of(block)];
          figures.live_bytes += block.bytes;
          figures.most_bytes = std::max(figures.most_bytes, figures.live_bytes);
          figures.bytes += block.bytes;
          figures.area += area_of(block);
          ++figures.blocks;
        },
        [&](const TracedBlock& block) { figures_[kind_of(block)].live_bytes -= block.bytes; });
    std::vector<Kind> kinds;
    for (std::size_t i = 0; i < names.size(); ++i) {
      // Sizes are in order, the largest lowest.
      const double area = by_tag_ ? figures_[i].area : static_cast<double>(i);
      kinds.push_back({.name = names[i], .most = figures_[i].most_bytes, .area = area});
    }
    kinds_ = group_kinds(by_tag_ ? "tag" : "size", std::move(kinds));
  }

  std::string subtitle() const {
    return text::join(html::grouped(run_.events), " events, replayed with ", run_.strategy, " on ", options_.device.to_string(),
                      options_.scale == 1 ? "" : text::join(", sizes divided by ", options_.scale));
  }

  std::vector<html::Figure> figures() const {
    std::vector<html::Figure> all = {
        {"peak live", text::bytes(run_.peak_bytes), text::join("at event ", html::grouped(run_.peak_event))},
        {"blocks at the peak", html::grouped(live_at(run_, run_.peak_event).size())},
        {"allocations", html::grouped(run_.blocks.size())},
        {"live at the end", text::bytes(end_bytes()), text::join(html::grouped(live_at_end().size()), " blocks")}};
    if (run_.committed.empty()) return all;
    all.insert(all.begin() + 1, {"peak committed", text::bytes(run_.peak_committed_bytes), "taken from the device"});
    all.insert(all.begin() + 2, {"committed / live", html::decimal(share(run_.peak_committed_bytes, run_.peak_bytes), 3), "peak by peak"});
    return all;
  }

  std::vector<const TracedBlock*> live_at_end() const { return live_at(run_, run_.events == 0 ? 0 : run_.events - 1); }

  std::uint64_t end_bytes() const {
    std::uint64_t bytes = 0;
    for (const TracedBlock* block : live_at_end()) bytes += block->bytes;
    return bytes;
  }

  html::Timeline timeline() const {
    html::TimelineMaker maker(0, run_.events, kinds_.groups);
    const auto group = [&](const TracedBlock& block) { return kinds_.all[kind_of(block)].group; };
    walk(
        run_, [&](const TracedBlock& block) { maker.add(block.begin, group(block), block.bytes); },
        [&](const TracedBlock& block) { maker.remove(block.end, group(block), block.bytes); });
    html::Timeline line = maker.take();
    line.title = text::join("Live bytes by ", kinds_.noun);
    line.step = "event";
    if (!run_.committed.empty()) line.lines = {{"committed", run_.committed}};
    return line;
  }

  html::AddressMap map() const {
    html::AddressMap map{.title = "Addresses over time",
                         .noun = "blocks",
                         .one = "block",
                         .step = "event",
                         .kind = by_tag_ ? kinds_.noun : "",
                         .end = run_.events,
                         .tags = map_tags(kinds_)};
    for (const TracedBlock* block : largest_blocks())
      map.boxes.push_back({.begin = block->begin,
                           .end = block->end,
                           .offset = block->address,
                           .bytes = block->bytes,
                           .id = block->serial,
                           .tag = kind_of(*block)});
    html::fold_addresses(map);
    map.is_complete = map.boxes.size() == run_.blocks.size();
    if (!map.is_complete)
      map.title += text::join(", the ", html::grouped(map.boxes.size()), " largest of ", html::grouped(run_.blocks.size()), " blocks");
    return map;
  }

  // By bytes times lifetime: the blocks that cover the most of the map.
  std::vector<const TracedBlock*> largest_blocks() const {
    std::vector<const TracedBlock*> all;
    base::reserve(all, run_.blocks.size());
    for (const TracedBlock& block : run_.blocks) all.push_back(&block);
    if (all.size() <= kMostBoxes) return all;
    std::ranges::nth_element(all, all.begin() + kMostBoxes, std::greater(), [](const TracedBlock* block) { return area_of(*block); });
    all.resize(kMostBoxes);
    return all;
  }

  html::Table holders() const {
    html::Table table{
        .heading = text::join("Largest holders at the peak, event ", html::grouped(run_.peak_event)),
        .columns = {{"block", true}, {"bytes", true}, {"of the peak", true}, {kinds_.noun}, {"since event", true}, {"lives", true}},
        .searchable = true};
    std::vector<const TracedBlock*> live = live_at(run_, run_.peak_event);
    std::ranges::stable_sort(live, std::greater(), &TracedBlock::bytes);
    if (live.size() > kMostLiveBlocks) {
      table.note = text::join("The largest ", html::grouped(kMostLiveBlocks), " of ", html::grouped(live.size()), ".");
      live.resize(kMostLiveBlocks);
    }
    for (const TracedBlock* block : live) table.rows.push_back(holder_row(*block));
    return table;
  }

  std::vector<html::TableCell> holder_row(const TracedBlock& block) const {
    const std::uint64_t life = block.end - block.begin;
    return {{std::to_string(block.serial), std::to_string(block.serial)},
            html::bytes_cell(block.bytes),
            percent_cell(share(block.bytes, run_.peak_bytes)),
            {kinds_.all[kind_of(block)].name},
            html::count_cell(block.begin),
            {block.end == run_.events ? "to the end" : text::join(html::grouped(life), life == 1 ? " event" : " events"),
             std::to_string(life)}};
  }

  html::Table kinds_table() const {
    html::Table table{.heading = text::join("By ", kinds_.noun),
                      .columns = {{kinds_.noun},
                                  {"at the peak", true},
                                  {"share of the peak"},
                                  {"most ever", true},
                                  {"blocks", true},
                                  {"allocated in all", true}},
                      .searchable = kinds_.all.size() > 20};
    std::vector<std::uint64_t> at_peak(kinds_.all.size());
    for (const TracedBlock* block : live_at(run_, run_.peak_event)) at_peak[kind_of(*block)] += block->bytes;
    std::vector<std::size_t> order;
    for (std::size_t i = 0; i < kinds_.all.size(); ++i)
      if (figures_[i].blocks != 0) order.push_back(i);
    std::ranges::stable_sort(order, std::greater(), [&](std::size_t i) { return at_peak[i]; });
    for (const std::size_t i : order) table.rows.push_back(kind_row(i, at_peak[i]));
    return table;
  }

  std::vector<html::TableCell> kind_row(std::size_t i, std::uint64_t at_peak) const {
    return {{kinds_.all[i].name, by_tag_ ? std::string() : std::to_string(i + 1)},
            html::bytes_cell(at_peak),
            bar_cell(at_peak, run_.peak_bytes, html::tone_name(kinds_.all[i].tone)),
            html::bytes_cell(figures_[i].most_bytes),
            html::count_cell(figures_[i].blocks),
            html::bytes_cell(figures_[i].bytes)};
  }

  html::Table fragmentation() const;
  std::vector<html::TableCell> fragmentation_row(const std::string& when, std::uint64_t event) const;
  std::uint64_t committed_at(std::uint64_t event) const;

  std::vector<std::string> notes() const {
    std::vector<std::string> all;
    if (trace_.dropped != 0) all.push_back(text::join(trace_.dropped, " events were dropped when the trace was written."));
    if (trace_.unpaired != 0) all.push_back(text::join(trace_.unpaired, " frees are left out: their allocations are not in the trace."));
    if (!trace_.complete) all.push_back("The trace is incomplete: the program that wrote it did not finish.");
    return all;
  }

  const Trace& trace_;
  const TraceHtmlOptions& options_;
  const TraceRun run_;
  const bool by_tag_;
  std::vector<KindFigures> figures_;  // by kind
  Kinds kinds_;
};

// The last sample at or before the event.
std::uint64_t TraceReport::committed_at(std::uint64_t event) const {
  const auto after = std::ranges::upper_bound(run_.committed, event, {}, &html::LivePoint::step);
  return after == run_.committed.begin() ? 0 : std::prev(after)->bytes;
}

html::Table TraceReport::fragmentation() const {
  html::Table table{
      .heading = "Fragmentation",
      .columns = {{"when"}, {"live", true}, {"committed", true}, {"live, and held beyond it"}, {"gaps", true}, {"largest gap", true}},
      .note = "Gaps are free addresses between live blocks; there need not be memory under them."};
  if (run_.events == 0) return table;
  table.rows.push_back(fragmentation_row("at the peak of live bytes", run_.peak_event));
  if (!run_.committed.empty()) {
    const html::LivePoint most = std::ranges::max(run_.committed, {}, &html::LivePoint::bytes);
    table.rows.push_back(fragmentation_row("at the peak of committed bytes", most.step));
  }
  table.rows.push_back(fragmentation_row("at the end", run_.events - 1));
  return table;
}

std::vector<html::TableCell> TraceReport::fragmentation_row(const std::string& when, std::uint64_t event) const {
  std::vector<const TracedBlock*> live = live_at(run_, event);
  std::ranges::sort(live, {}, &TracedBlock::address);
  std::uint64_t bytes = 0;
  std::uint64_t gaps = 0;
  std::uint64_t largest = 0;
  for (std::size_t i = 0; i < live.size(); ++i) {
    bytes += live[i]->bytes;
    if (i + 1 == live.size()) break;
    const std::uint64_t gap = live[i + 1]->address - (live[i]->address + live[i]->bytes);
    largest = std::max(largest, gap);
    gaps += gap != 0 ? 1 : 0;
  }
  const std::uint64_t committed = std::max(committed_at(event), bytes);
  const std::uint64_t most = std::max(run_.peak_committed_bytes, run_.peak_bytes);
  html::TableCell bar{text::join(text::bytes(bytes), " of ", text::bytes(committed)), std::to_string(committed)};
  bar.bar = {{share(bytes, most), "tone-0", text::join("live ", text::bytes(bytes))},
             {share(committed - bytes, most), "faint", text::join("held beyond it ", text::bytes(committed - bytes))}};
  return {{text::join(when, ", event ", html::grouped(event))},
          html::bytes_cell(bytes),
          run_.committed.empty() ? html::TableCell{std::string(kUnknown)} : html::bytes_cell(committed),
          bar,
          html::count_cell(gaps),
          html::bytes_cell(largest)};
}

}  // namespace

std::string trace_html(const Trace& trace, const std::string& title, const TraceHtmlOptions& options) {
  return TraceReport(trace, options).write(title);
}

}  // namespace berth
