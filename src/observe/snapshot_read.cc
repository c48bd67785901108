// SPDX-License-Identifier: Apache-2.0
#include <simdjson.h>

#include <algorithm>
#include <charconv>
#include <initializer_list>
#include <new>

#include "base/limited.h"
#include "base/text.h"
#include "berth/base/error.h"
#include "berth/observe/snapshot_file.h"
#include "observe/stats_json.h"

// Reads what to_json(ProcessSnapshot) writes. The input is untrusted: each value must exist and have its type,
// and the result must pass the audit.
namespace berth {

using namespace internal;
using namespace internal::observe;

namespace {

using simdjson::dom::array;
using simdjson::dom::element;
using simdjson::dom::object;

class SnapshotReader {
 public:
  explicit SnapshotReader(std::string_view name) : name_(name) {}

  [[noreturn]] void refuse(std::string why) const {
    throw FormatError(ErrorCode::format_error, {text::join("reading ", text::quoted(name_)), std::move(why),
                                                "pass a file that save_snapshot, BERTH_SNAPSHOT_SIGNAL or BERTH_SNAPSHOT_ON_OOM wrote"});
  }

  ProcessSnapshot read(std::string_view bytes) {
    base::take(kParsed * bytes.size());
    const simdjson::padded_string padded(bytes);
    element root;
    const auto error = parser_.parse(padded).get(root);
    if (error == simdjson::MEMALLOC) throw std::bad_alloc();
    if (error) refuse(simdjson::error_message(error));
    const object all = get<object>(root, "it", "an object");
    if (text_of(all, "format") != "berth snapshot") refuse("it is JSON, but not a snapshot of berth");
    if (number_of(all, "version") != 1) refuse("it was written by another version of berth");
    ProcessSnapshot made{.program = text_of(all, "program"),
                         .process = signed_of(all, "process"),
                         .taken_ns = number_of(all, "taken_ns"),
                         .reason = text_of(all, "reason"),
                         .pools = {}};
    for (const element pool : list_of(all, "pools")) base::append(made.pools, read_pool(get<object>(pool, "a pool", "an object")));
    return made;
  }

 private:
  // Bytes of the parser's own for each byte of text: eight of its tape, four of its index, strings, and a padded copy.
  static constexpr std::size_t kParsed = 15;

  template <class T>
  T get(element value, std::string_view what, std::string_view kind) const {
    T got;
    if (value.get(got) != simdjson::SUCCESS) refuse(text::join(what, " is not ", kind));
    return got;
  }
  element member(const object& from, std::string_view name) const {
    element found;
    if (from.at_key(name).get(found) != simdjson::SUCCESS) refuse(text::join("there is no \"", name, "\""));
    return found;
  }
  std::string text_of(const object& from, std::string_view name) const {
    const auto found = get<std::string_view>(member(from, name), name, "text");
    base::take_text(found.size());
    return std::string(found);
  }
  std::uint64_t number_of(const object& from, std::string_view name) const {
    return get<std::uint64_t>(member(from, name), name, "a number");
  }
  std::int64_t signed_of(const object& from, std::string_view name) const {
    return get<std::int64_t>(member(from, name), name, "a number");
  }
  array list_of(const object& from, std::string_view name) const { return get<array>(member(from, name), name, "a list"); }
  object object_of(const object& from, std::string_view name) const { return get<object>(member(from, name), name, "an object"); }

  std::uint64_t address_of(const object& from, std::string_view name) const {
    const std::string text = text_of(from, name);
    std::uint64_t value = 0;
    const char* const end = text.data() + text.size();
    const bool is_hex = text.starts_with("0x") && std::from_chars(text.data() + 2, end, value, 16).ptr == end && text.size() > 2;
    if (!is_hex) refuse(text::join(name, " is not an address"));
    return value;
  }

  std::vector<std::string> words_of(const object& from, std::string_view name) const {
    std::vector<std::string> words;
    const array all = list_of(from, name);
    base::reserve(words, all.size());
    for (const element one : all) {
      base::checkpoint();
      const auto word = get<std::string_view>(one, name, "a list of text");
      base::take_text(word.size());
      base::append(words, std::string(word));
    }
    if (words.empty() || !words.front().empty()) refuse(text::join("\"", name, "\" does not begin with an empty word"));
    return words;
  }

  // Reads rows of numbers into a list. Each must have as many numbers as there are columns, in the order of these names.
  template <class Run, class Make>
  void rows_of(const object& from, std::string_view name, std::initializer_list<std::string_view> columns, std::vector<Run>& runs,
               Make make) const {
    const object table = object_of(from, name);
    const array titles = list_of(table, "columns");
    if (!std::ranges::equal(titles, columns, [](const element& title, std::string_view column) {
          std::string_view text;
          return title.get(text) == simdjson::SUCCESS && text == column;
        }))
      refuse(text::join("\"", name, "\" has other columns"));
    std::vector<std::uint64_t> row(columns.size());
    const array all = list_of(table, "rows");
    base::reserve(runs, all.size());
    for (const element one : all) {
      base::checkpoint();
      const array numbers = get<array>(one, name, "a list of rows");
      if (numbers.size() != row.size()) refuse(text::join("\"", name, "\" has a row that is longer or shorter than its columns"));
      std::ranges::transform(numbers, row.begin(), [&](const element& n) { return get<std::uint64_t>(n, name, "rows of numbers"); });
      base::append(runs, make(row));
    }
  }

  template <class Enum>
  Enum enum_of(std::uint64_t value, Enum last, std::string_view what) const {
    if (value > static_cast<std::uint64_t>(last)) refuse(text::join("there is no such ", what, ": ", value));
    return static_cast<Enum>(value);
  }

  std::uint32_t index_of(std::uint64_t value, const std::vector<std::string>& words, std::string_view what) const {
    if (value >= words.size()) refuse(text::join("there is no ", what, " number ", value));
    return static_cast<std::uint32_t>(value);
  }

  Snapshot read_pool(const object& from) const {
    Snapshot made;
    made.device = text_of(from, "device");
    made.allocator = text_of(from, "allocator");
    made.settings = text_of(from, "settings");
    made.allocator_id = number_of(from, "allocator_id");
    made.base = address_of(from, "base");
    made.range_bytes = number_of(from, "range_bytes");
    made.page_bytes = number_of(from, "page_bytes");
    made.limit_bytes = number_of(from, "limit_bytes");
    made.has_blocks = get<bool>(member(from, "has_blocks"), "has_blocks", "true or false");
    made.tags = words_of(from, "tags");
    made.sites = words_of(from, "sites");
    made.stats = stats_from([&, stats = object_of(from, "stats")](std::string_view name) {
      const bool is_newer = name == "table_bytes" && stats.at_key(name).error() != simdjson::SUCCESS;  // than some files
      return is_newer ? 0 : number_of(stats, name);
    });
    read_lists(from, made);
    made.sum_up();
    if (const std::string wrong = made.audit(); !wrong.empty()) refuse(wrong);
    return made;
  }

  void read_lists(const object& from, Snapshot& made) const {
    using Row = const std::vector<std::uint64_t>&;
    rows_of(from, "memory", {"offset", "bytes"}, made.memory, [&](Row row) { return MemoryRun{row[0], row[1]}; });
    rows_of(from, "blocks", {"offset", "bytes", "requested", "stream", "age_ns", "tag", "site", "state"}, made.blocks, [&](Row row) {
      return SnapshotBlock{.offset = row[0],
                           .bytes = row[1],
                           .requested = row[2],
                           .stream_id = row[3],
                           .age_ns = row[4],
                           .tag = index_of(row[5], made.tags, "tag"),
                           .site = index_of(row[6], made.sites, "site"),
                           .state = enum_of(row[7], BlockState::waiting, "state of a block")};
    });
    rows_of(from, "free", {"offset", "bytes", "stream", "kind"}, made.free, [&](Row row) {
      return FreeRun{row[0], row[1], row[2], enum_of(row[3], FreeKind::slab, "kind of free run")};
    });
  }

  std::string_view name_;
  simdjson::dom::parser parser_;
};

}  // namespace

ProcessSnapshot read_snapshot(std::string_view bytes, std::string_view name, const ReadLimits& limits) {
  return limited(bytes.size(), name, limits, [&] { return SnapshotReader(name).read(bytes); });
}

}  // namespace berth
