// SPDX-License-Identifier: Apache-2.0
#include <fmt/core.h>

#include <algorithm>
#include <bit>
#include <map>
#include <vector>

#include "base/text.h"
#include "cli/commands.h"
#include "cli/table.h"
#include "cli/tensor_source.h"

// `berth inspect` and `berth check`: the content of a tensor file, and whether it is valid.
namespace berth::internal::cli {

namespace {

constexpr std::uint64_t kPage = 4096;

std::uint64_t alignment_of(const TensorEntry& entry) noexcept {
  return entry.file_offset == 0 ? kPage : std::min(entry.file_offset & (~entry.file_offset + 1), kPage);
}

bool is_viewable(const TensorEntry& entry) noexcept { return !entry.dtype || entry.file_offset % size_bytes(*entry.dtype) == 0; }

struct Total {
  std::string what;
  std::size_t tensors = 0;
  std::uint64_t bytes = 0;
};

// The name up to the `depth`-th dot or slash; the whole name when it has fewer.
std::string_view prefix_of(std::string_view name, int depth) noexcept {
  std::size_t end = 0;
  for (int i = 0; i < depth; ++i) {
    end = name.find_first_of("./", end);
    if (end == std::string_view::npos) return name;
    ++end;
  }
  return name.substr(0, end - 1);
}

template <class Key>
std::vector<Total> totals(std::span<const TensorEntry> entries, Key key) {
  std::map<std::string, Total, std::less<>> sums;
  for (const TensorEntry& entry : entries) {
    Total& sum = sums[std::string(key(entry))];
    ++sum.tensors;
    sum.bytes += entry.size_bytes;
  }
  std::vector<Total> sorted;
  for (auto& [what, sum] : sums) sorted.push_back({what, sum.tensors, sum.bytes});
  std::stable_sort(sorted.begin(), sorted.end(), [](const Total& a, const Total& b) { return a.bytes > b.bytes; });
  return sorted;
}

struct Findings {
  std::uint64_t bytes = 0;
  std::vector<Total> by_dtype;
  std::vector<Total> by_prefix;
  std::vector<std::string> problems;
};

Findings look_at(const TensorSource& source, int depth) {
  Findings found;
  std::size_t copied = 0;
  std::size_t foreign = 0;
  for (const TensorEntry& entry : source.entries()) {
    found.bytes += entry.size_bytes;
    copied += is_viewable(entry) ? 0 : 1;
    foreign += entry.dtype ? 0 : 1;
  }
  found.by_dtype = totals(source.entries(), [](const TensorEntry& entry) -> std::string_view { return entry.format_dtype; });
  found.by_prefix = totals(source.entries(), [&](const TensorEntry& entry) { return prefix_of(entry.name, depth); });
  if (copied != 0)
    found.problems.push_back(
        fmt::format("{} not aligned to the element size: copied on use; berth convert aligns them", count_of(copied, "tensor")));
  if (foreign != 0) found.problems.push_back(fmt::format("{} of a dtype that berth lacks: readable as bytes", count_of(foreign, "tensor")));
  return found;
}

void write_totals(JsonWriter& json, std::string_view key, const std::vector<Total>& all) {
  json.key(key).begin_array();
  for (const Total& one : all)
    json.begin_object().member("name", one.what).member("tensors", one.tensors).member("bytes", one.bytes).end_object();
  json.end_array();
}

void write_tensor(JsonWriter& json, const TensorEntry& entry) {
  json.begin_object().member("name", entry.name).member("format_dtype", entry.format_dtype).key("dtype");
  entry.dtype ? json.value(to_string(*entry.dtype)) : json.null();
  json.key("shape").begin_array();
  for (const std::int64_t dim : entry.shape) json.value(dim);
  json.end_array().member("bytes", entry.size_bytes).member("offset", entry.file_offset).member("file", entry.file);
  json.member("alignment", alignment_of(entry)).member("viewable", is_viewable(entry)).end_object();
}

std::string to_json(const std::string& path, const TensorSource& source, const Findings& found) {
  JsonWriter json(JsonWriter::Style::pretty);
  json.begin_object().member("path", path).member("format", source.format()).member("bytes", found.bytes).key("files").begin_array();
  for (const TensorFile& file : source.files())
    json.begin_object()
        .member("path", file.path)
        .member("size_bytes", file.size_bytes)
        .member("data_offset", file.data_offset)
        .end_object();
  json.end_array().key("metadata").begin_object();
  for (const auto& [key, value] : source.metadata()) json.member(key, value);
  json.end_object().key("tensors").begin_array();
  for (const TensorEntry& entry : source.entries()) write_tensor(json, entry);
  json.end_array();
  write_totals(json, "dtypes", found.by_dtype);
  write_totals(json, "prefixes", found.by_prefix);
  json.key("problems").begin_array();
  for (const std::string& problem : found.problems) json.value(problem);
  json.end_array().end_object();
  return json.take() + "\n";
}

std::string share_bar(std::uint64_t part, std::uint64_t whole) {
  constexpr std::uint64_t kWidth = 20;
  const std::uint64_t full = whole == 0 ? 0 : (part * kWidth + whole / 2) / whole;
  std::string out;
  for (std::uint64_t i = 0; i < kWidth; ++i) out += i < full ? "█" : "░";
  return out;
}

std::string totals_table(std::string title, const std::vector<Total>& all, std::uint64_t bytes, std::size_t most) {
  using enum Table::Align;
  Table table({{std::move(title)}, {"tensors", right}, {"bytes", right}, {""}});
  for (const Total& one : std::span(all).first(std::min(most, all.size())))
    table.add({paint(Mood::strong, text::printable(one.what, 60)), fmt::format("{}", one.tensors), text::bytes(one.bytes),
               share_bar(one.bytes, bytes)});
  std::string out = table.to_string();
  if (all.size() > most) out += fmt::format("… and {} more\n", all.size() - most);
  return out;
}

std::string tensor_table(std::span<const TensorEntry> entries, bool all) {
  constexpr std::size_t kShown = 20;
  using enum Table::Align;
  Table table({{"tensor"}, {"dtype"}, {"shape"}, {"bytes", right}, {"at byte", right}, {"aligned to", right}});
  std::vector<const TensorEntry*> shown;
  for (const TensorEntry& entry : entries) shown.push_back(&entry);
  const bool cut = !all && shown.size() > kShown;
  if (cut) {
    std::stable_sort(shown.begin(), shown.end(), [](const auto* a, const auto* b) { return a->size_bytes > b->size_bytes; });
    shown.resize(kShown);
  }
  for (const TensorEntry* const one : shown) {
    const std::string aligned = fmt::format("{}", alignment_of(*one));
    table.add({paint(Mood::strong, text::printable(one->name, 80)), text::printable(one->format_dtype), one->shape.to_string(),
               text::bytes(one->size_bytes), fmt::format("{}", one->file_offset),
               is_viewable(*one) ? aligned : paint(Mood::warning, aligned)});
  }
  std::string out = table.to_string();
  if (cut) out += fmt::format("the {} largest of {}; --all lists all\n", kShown, entries.size());
  return out;
}

std::string to_text(const InspectCommand& command, const TensorSource& source, const Findings& found) {
  std::string out = fmt::format("{}: {}, {}, {}", text::printable(command.path), source.format(),
                                count_of(source.entries().size(), "tensor"), text::bytes(found.bytes));
  if (source.files().size() == 1 && source.files()[0].data_offset != 0)
    out += fmt::format(", data at byte {}", source.files()[0].data_offset);
  if (source.files().size() > 1) out += fmt::format(" in {} files", source.files().size());
  out += "\n";
  for (const auto& [key, value] : source.metadata())
    out += fmt::format("  {} = {}\n", text::printable(key, 60), text::printable(value, 100));
  out += "\n" + tensor_table(source.entries(), command.all);
  out += "\n" + totals_table("dtype", found.by_dtype, found.bytes, 30);
  out += "\n" + totals_table("prefix", found.by_prefix, found.bytes, 20) + "\n";
  for (const std::string& problem : found.problems) out += fmt::format("{} {}\n", paint(Mood::warning, "!"), problem);
  if (found.problems.empty()) out += fmt::format("{} no problems found\n", paint(Mood::good, "✔"));
  return out;
}

}  // namespace

Exit run_inspect(const InspectCommand& command) {
  const TensorSource source(command.path, command.lax);
  const Findings found = look_at(source, command.depth);
  print(command.json ? to_json(command.path, source, found) : to_text(command, source, found));
  return Exit::ok;
}

Exit run_check(const CheckCommand& command) {
  JsonWriter json(JsonWriter::Style::pretty);
  json.begin_object().member("path", command.path);
  try {
    const TensorSource source(command.path, command.lax);
    source.verify();
    if (command.json)
      print(json.member("ok", true).member("format", source.format()).member("tensors", source.entries().size()).end_object().take() +
            "\n");
    else
      print(fmt::format("{} {}: {}, {}, every rule kept\n", paint(Mood::good, "✔"), text::printable(command.path), source.format(),
                        count_of(source.entries().size(), "tensor")));
    return Exit::ok;
  } catch (const Error& error) {  // an invalid file is an answer; one that cannot be opened is a usage error
    if (exit_of(error) != Exit::no) throw;
    if (command.json) print(json.member("ok", false).key("error").json(to_json(error)).end_object().take() + "\n");
    print_error(error);
    return Exit::no;
  }
}

}  // namespace berth::internal::cli
