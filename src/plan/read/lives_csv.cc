// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <functional>
#include <unordered_set>
#include <utility>

#include "base/limited.h"
#include "base/radix_sort.h"
#include "base/text.h"
#include "berth/base/checked.h"
#include "berth/plan/read_graph.h"
#include "plan/read/lines.h"

// Lifetimes become a graph with the same packing problem. The timeline is cut where a lifetime begins or ends;
// each interval in which something is live is a node, which writes what begins at its start and reads what ends
// at its end:
//
//     time     0     2        5  6           nodes   "0" writes a        (nothing dies at 2)
//     a        [--------------)                      "2" reads a, writes b
//     b              [-----------)                   "5" reads b
namespace berth {

using namespace internal;
using namespace internal::plan;

namespace {

using namespace internal::plan::read;

enum class Column : std::uint8_t { id, lower, upper, size, alignment, offset };
constexpr std::array<std::string_view, 6> kColumnNames = {"id", "lower", "upper", "size", "alignment", "offset"};
constexpr std::size_t kColumnsNeeded = 4;
constexpr std::size_t kShortestRow = std::string_view("a,0,1,8\n").size();
constexpr std::string_view kCsvHelp =
    "the first line names the columns, id,lower,upper,size and perhaps alignment and offset; each further one is a buffer, such as "
    "17,0,5,4096; no field is quoted";

std::size_t count_of(std::string_view text, char wanted) { return static_cast<std::size_t>(std::ranges::count(text, wanted)); }

// The begin or the end of a lifetime.
struct Turn {
  std::uint64_t time;
  ValueId value;
};

struct Lives {
  std::vector<GraphValue> values;
  std::vector<Turn> begins;
  std::vector<Turn> ends;
};

class LivesReader {
 public:
  LivesReader(std::string_view bytes, std::string_view name, const LivesOptions& options)
      : bytes_(bytes),
        name_(name),
        lines_(bytes, name, kCsvHelp),
        fixed_offsets_(options.fixed_offsets),
        rows_(std::min(count_of(bytes, '\n'), bytes.size() / kShortestRow) + 1) {}

  Lives read() {
    read_header();
    reserve();
    while (lines_.next()) {
      check_time();
      if (!lines_.line().empty()) read_row();
    }
    if (may_repeat_ids()) refuse_repeated_id();
    return std::move(lives_);
  }

 private:
  void read_header() {
    while (lines_.next() && lines_.line().empty()) {
    }
    std::string_view rest = lines_.line();
    if (rest.empty()) lines_.refuse("there is no line that names the columns");
    for (std::size_t left = count_of(rest, ',') + 1; left > 0; --left) add_column(take_until(rest, ','));
    for (std::size_t i = 0; i < kColumnsNeeded; ++i)
      if (!has(static_cast<Column>(i))) lines_.refuse(text::join("there is no column ", kColumnNames[i]));
    if (fixed_offsets_ && !has(Column::offset)) lines_.refuse("there is no column offset, which fixed offsets need");
  }

  void add_column(std::string_view name) {
    const auto found = std::ranges::find(kColumnNames, name);
    if (found == kColumnNames.end()) lines_.refuse(text::join("there is no such column as ", text::quoted(name.substr(0, 40))));
    const auto column = static_cast<Column>(found - kColumnNames.begin());
    if (has(column)) lines_.refuse(text::join("the column ", name, " is there twice"));
    columns_.push_back(column);
  }

  bool has(Column column) const { return std::ranges::find(columns_, column) != columns_.end(); }

  void reserve() {
    base::reserve(lives_.values, rows_);
    base::reserve(lives_.begins, rows_);
    base::reserve(lives_.ends, rows_);
    base::reserve(hashes_, rows_);
  }

  // Stops early where it is plain that reading ends too late: after some lines the pace is known.
  void check_time() {
    constexpr std::uint64_t kLines = 1024;
    constexpr std::uint64_t kLeast = 16 * kLines;  // some milliseconds, which say how long all takes
    if (lines_.number() % kLines != 0) return;
    base::reached(kRowsShare * (1 - static_cast<double>(lines_.left()) / static_cast<double>(bytes_.size())));
    if (lines_.number() < kLeast) return;
    base::checkpoint_now();
    if (base::is_hopeless()) throw base::OutOfTime();
  }

  void read_row() {
    std::array<std::string_view, kColumnNames.size()> fields;
    std::string_view rest = lines_.line();
    if (count_of(rest, ',') + 1 != columns_.size())
      lines_.refuse(text::join("there are not as many fields as columns, which are ", columns_.size()));
    for (const Column column : columns_) fields[static_cast<std::size_t>(column)] = take_until(rest, ',');
    add(fields);
  }

  void add(const std::array<std::string_view, kColumnNames.size()>& fields) {
    const auto [id, lower_text, upper_text, size, alignment, offset] = fields;
    check_id(id);
    const std::uint64_t lower = lines_.number_of(lower_text, "lower");
    const std::uint64_t upper = lines_.number_of(upper_text, "upper");
    if (lower >= upper) lines_.refuse(lower == upper ? "the life ends when it begins" : "the life ends before it begins");
    const auto value = checked_narrow<ValueId>(lives_.values.size(), "the number of buffers");
    lives_.begins.push_back({lower, value});
    lives_.ends.push_back({upper, value});
    lives_.values.push_back({.name = std::string(id), .bytes = lines_.bytes_of(size, "the size")});
    if (!alignment.empty()) lives_.values.back().alignment = alignment_of(alignment);
    if (fixed_offsets_ && !offset.empty()) lives_.values.back().fixed_offset = lines_.bytes_of(offset, "the offset");
  }

  void check_id(std::string_view id) {
    if (id.empty()) lines_.refuse("the id is missing");
    for (std::string_view rest = id; !rest.empty();) {
      const std::size_t length = text::utf8_length(rest);
      if (length == 0) lines_.refuse("the id is not UTF-8");  // it could not make a round trip through JSON
      rest.remove_prefix(length);
    }
    hashes_.push_back(std::hash<std::string_view>()(id));
  }

  // Most files repeat no id, and then no two have the same hash: a list of hashes is much faster than a set of ids.
  bool may_repeat_ids() {
    base::checkpoint_now();
    const std::size_t sorting = hashes_.size() * sizeof(std::size_t);
    base::take(sorting);
    const bool repeats = base::have_repeats(std::exchange(hashes_, {}));
    base::give(rows_ * sizeof(std::size_t) + sorting);
    return repeats;
  }

  // Reads again, with a set of ids, to find the line; returns when only hashes were equal.
  void refuse_repeated_id() {
    std::unordered_set<std::string_view> ids;
    Lines lines(bytes_, name_, kCsvHelp);
    while (lines.next() && lines.line().empty()) {
    }
    while (lines.next()) {
      base::checkpoint();
      std::string_view rest = lines.line();
      if (rest.empty()) continue;
      std::string_view id;
      for (const Column column : columns_) {
        const std::string_view field = take_until(rest, ',');
        if (column == Column::id) id = field;
      }
      base::take(base::kHashEntry);
      if (!ids.insert(id).second)
        throw ArgumentError(
            ErrorCode::duplicate_value,
            {lines.where(), text::join("another buffer has the id ", text::quoted(id), " too"), "give each buffer an id of its own"},
            {{"line", lines.number()}, {"value", text::printable(id)}});
    }
  }

  std::size_t alignment_of(std::string_view field) const {
    const std::size_t alignment = lines_.bytes_of(field, "the alignment");
    if (is_power_of_two(alignment)) return alignment;
    throw ArgumentError(ErrorCode::invalid_alignment,
                        {lines_.where(), text::join("the alignment is ", alignment, ", which is not a power of two"),
                         "use 1, 2, 4, 8, …, or leave the field empty"},
                        {{"line", lines_.number()}, {"alignment", alignment}});
  }

  static constexpr double kRowsShare = 0.6;  // of reading; the rest sorts turns, makes nodes and validates the graph

  const std::string_view bytes_;
  const std::string_view name_;
  Lines lines_;
  bool fixed_offsets_;
  std::size_t rows_;  // upper bound
  std::vector<Column> columns_;
  std::vector<std::size_t> hashes_;  // of the ids
  Lives lives_;
};

// Sweeps over the begins and the ends in order of time.
class Sweep {
 public:
  explicit Sweep(Lives lives) : begins_(std::move(lives.begins)), ends_(std::move(lives.ends)), born_in_(lives.values.size()) {
    graph_.values = std::move(lives.values);
    sort(begins_);
    sort(ends_);
    base::reached(0.75);
  }

  Graph run() {
    base::reserve(graph_.nodes, times());
    while (next_end_ < ends_.size()) begin_stretch();
    return std::move(graph_);
  }

 private:
  // Turns of one time stay in the order of the values.
  static void sort(std::vector<Turn>& turns) {
    base::checkpoint_now();
    base::take(turns.size() * sizeof(Turn));
    base::radix_sort(turns, [](const Turn& turn) { return turn.time; });
    base::give(turns.size() * sizeof(Turn));
  }

  bool is_begin_due(std::uint64_t time) const { return next_begin_ < begins_.size() && begins_[next_begin_].time == time; }
  bool is_end_due(std::uint64_t time) const { return next_end_ < ends_.size() && ends_[next_end_].time == time; }

  // The time of the next turn. REQUIRES: there is an end left; the last turn is one.
  std::uint64_t next_time() const {
    const std::uint64_t end = ends_[next_end_].time;
    return next_begin_ < begins_.size() ? std::min(begins_[next_begin_].time, end) : end;
  }

  // How many times there are, and one more.
  std::size_t times() {
    std::size_t count = 1;
    for (; next_end_ < ends_.size(); ++count) {
      const std::uint64_t time = next_time();
      while (is_end_due(time)) ++next_end_;
      while (is_begin_due(time)) ++next_begin_;
    }
    next_begin_ = next_end_ = 0;
    return count;
  }

  // Processes all turns of the next time.
  void begin_stretch() {
    base::checkpoint();
    const std::uint64_t time = next_time();
    for (; is_end_due(time); ++next_end_) die(ends_[next_end_].value);
    const std::size_t births = next_begin_;
    while (is_begin_due(time)) ++next_begin_;
    live_ += next_begin_ - births;
    if (live_ == 0) return;
    GraphNode& node = graph_.nodes.emplace_back();
    node.side_effects = true;  // it stands for a time: not to be reordered
    node.name = std::to_string(time);
    base::reserve(node.outputs, next_begin_ - births);
    for (std::size_t i = births; i < next_begin_; ++i) bear(begins_[i].value);
  }

  void bear(ValueId value) {
    graph_.nodes.back().outputs.push_back(value);
    born_in_[value] = static_cast<NodeId>(graph_.nodes.size() - 1);
  }

  // The last node is the interval that ends here, in which the value is live: it reads the value.
  void die(ValueId value) {
    --live_;
    if (born_in_[value] != graph_.nodes.size() - 1) base::append(graph_.nodes.back().inputs, value);
  }

  std::vector<Turn> begins_;
  std::vector<Turn> ends_;
  std::size_t next_begin_ = 0;
  std::size_t next_end_ = 0;
  std::vector<NodeId> born_in_;
  std::size_t live_ = 0;
  Graph graph_;
};

}  // namespace

Graph read_lives_csv(std::string_view bytes, std::string_view name, const LivesOptions& options, const ReadLimits& limits) {
  return limited(bytes.size(), name, limits, [&] {
    Graph graph = Sweep(LivesReader(bytes, name, options).read()).run();
    base::reached(0.85);
    graph.validate();
    return graph;
  });
}

}  // namespace berth
