// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "base/limited.h"
#include "base/text.h"
#include "berth/base/checked.h"
#include "berth/plan/read_graph.h"
#include "plan/read/lines.h"

namespace berth {

using namespace internal;
using namespace internal::plan;

namespace {

using namespace internal::plan::read;

constexpr std::string_view kTextHelp =
    "a line is index operator | producer indices | output bytes, such as 7 Conv | 5 6 | 4096; a comment begins with # and may name the "
    "graph's outputs, as in # outputs: 3 7";
constexpr std::string_view kOutputs = "outputs:";

// Indices are resolved after the last line, as outputs are named before all nodes; so each mention keeps its
// line for errors.
struct Line {
  std::uint64_t index;  // of the node, in the file
  std::uint64_t number;
  NodeId node;
  ValueId value;  // its first output
};

struct Mention {
  std::uint64_t index;
  std::uint64_t line;
  NodeId reader;  // unused for outputs
};

class TextReader {
 public:
  TextReader(std::string_view bytes, std::string_view name) : name_(name), lines_(bytes, name, kTextHelp) {}

  Graph read() {
    while (lines_.next()) {
      base::checkpoint();
      read_line(trimmed(lines_.line()));
    }
    sort_lines();
    for (const Mention& input : inputs_) graph_.nodes[input.reader].inputs.push_back(find(input));
    for (const Mention& output : outputs_) graph_.values[find(output)].output = true;
    return std::move(graph_);
  }

 private:
  void read_line(std::string_view line) {
    if (line.starts_with('#'))
      read_comment(line);
    else if (!line.empty())
      read_node(line);
  }

  void read_comment(std::string_view comment) {
    const std::size_t found = comment.find(kOutputs);
    if (found != std::string_view::npos) read_mentions(comment.substr(found + kOutputs.size()), "an output", 0, outputs_);
  }

  void read_node(std::string_view line) {
    if (std::ranges::count(line, '|') != 2) lines_.refuse("a line must have two bars");
    std::string_view operation = take_until(line, '|');
    const std::string_view producers = take_until(line, '|');
    const std::uint64_t index = lines_.number_of(take_word(operation), "the index");
    if (trimmed(operation).empty()) lines_.refuse("the operator is missing");
    const auto node = static_cast<NodeId>(graph_.nodes.size());
    base::append(graph_.nodes, {.name = std::to_string(index), .op = std::string(trimmed(operation))});
    read_mentions(producers, "a producer", node, inputs_);
    add_outputs(line, node);
    const std::vector<ValueId>& outputs = graph_.nodes[node].outputs;
    base::append(read_, {index, lines_.number(), node, outputs.empty() ? kNoValue : outputs.front()});
  }

  void read_mentions(std::string_view words, std::string_view what, NodeId reader, std::vector<Mention>& mentions) {
    for (words = trimmed(words); !words.empty(); words = trimmed(words))
      base::append(mentions, {lines_.number_of(take_word(words), what), lines_.number(), reader});
  }

  void add_outputs(std::string_view sizes, NodeId id) {
    GraphNode& node = graph_.nodes[id];
    std::size_t position = 0;
    for (sizes = trimmed(sizes); !sizes.empty(); sizes = trimmed(sizes), ++position) {
      const std::size_t bytes = lines_.bytes_of(take_word(sizes), "an output's size");
      if (position > 0 && bytes == 0) continue;
      base::append(node.outputs, static_cast<ValueId>(graph_.values.size()));
      base::append(graph_.values, {.name = position == 0 ? node.name : text::join(node.name, ':', position), .bytes = bytes});
    }
  }

  static std::string_view take_word(std::string_view& rest) {
    const std::size_t end = rest.find_first_of(" \t");
    const std::string_view word = rest.substr(0, end);
    rest.remove_prefix(word.size());
    return word;
  }

  // Sorts by index, for binary search.
  void sort_lines() {
    std::ranges::stable_sort(read_, {}, &Line::index);
    const auto twice = std::ranges::adjacent_find(read_, {}, &Line::index);
    if (twice == read_.end()) return;
    throw ArgumentError(ErrorCode::duplicate_value,
                        {where(twice[1].number), text::join("line ", twice[0].number, " has the index ", twice->index, " too"),
                         "give each node an index of its own"},
                        {{"line", twice[1].number}, {"value", twice->index}});
  }

  ValueId find(const Mention& mention) const {
    const auto found = std::ranges::lower_bound(read_, mention.index, {}, &Line::index);
    const bool there = found != read_.end() && found->index == mention.index;
    if (there && found->value != kNoValue) return found->value;
    throw ArgumentError(
        ErrorCode::undefined_value,
        {where(mention.line), text::join("it names ", mention.index, there ? ", which has no output" : ", and no line has that index"),
         "name nodes of this file that have an output"},
        {{"line", mention.line}, {"value", mention.index}});
  }

  std::string where(std::uint64_t line) const { return text::join("reading line ", line, " of ", text::printable(name_)); }

  std::string_view name_;
  Lines lines_;
  Graph graph_;
  std::vector<Line> read_;
  std::vector<Mention> inputs_;
  std::vector<Mention> outputs_;
};

}  // namespace

Graph read_graph_text(std::string_view bytes, std::string_view name, const ReadLimits& limits) {
  return limited(bytes.size(), name, limits, [&] {
    Graph graph = TextReader(bytes, name).read();
    graph.validate();
    return graph;
  });
}

}  // namespace berth
