// SPDX-License-Identifier: Apache-2.0
#include <fmt/core.h>

#include <algorithm>
#include <charconv>
#include <chrono>
#include <thread>

#include "base/text.h"
#include "berth/berth.h"
#include "berth/extend.h"
#include "berth/observe.h"
#include "cli/commands.h"
#include "cli/table.h"
#include "os/file/shared_file.h"
#include "os/system.h"

// `berth top`: the pools of running processes, from the live files that they expose.
namespace berth::internal::cli {

namespace {

constexpr std::uint64_t kStale = 3'000'000'000;  // age of a file that counts as stale

// The processes that the target selects: all, those with that id (containers that share the directory may have
// one each), or those of a program with that name.
std::vector<LiveProcess> chosen(const std::string& target) {
  if (target.empty()) return live_processes();
  std::int64_t process = 0;
  const char* const end = target.data() + target.size();
  const auto [stop, error] = std::from_chars(target.data(), end, process);
  const bool by_number = error == std::errc() && stop == end;
  std::vector<LiveProcess> all = live_processes();
  std::erase_if(all, [&](const LiveProcess& one) { return by_number ? one.process != process : one.program != target; });
  return all;
}

std::string tags_in_words(const LivePool& pool) {
  std::string out;
  for (const LiveTag& tag : pool.tags) {
    if (out.size() > 60) break;
    out += fmt::format("{}{} {}", out.empty() ? "" : ", ", tag.tag.empty() ? "(no tag)" : text::printable(tag.tag), text::bytes(tag.bytes));
  }
  return out;
}

std::string to_text(const LiveProcess& process) {
  using enum Table::Align;
  const std::uint64_t age = os::wall_time_ns() - std::min(os::wall_time_ns(), process.renewed_ns);
  std::string out = fmt::format("{} ({}{})", paint(Mood::strong, text::printable(process.program)), process.process,
                                process.elsewhere ? ", in another PID namespace" : "");
  if (age > kStale) out += paint(Mood::warning, fmt::format(", not updated for {} s", age / 1'000'000'000));
  Table table({{"device"},
               {"allocator"},
               {"in use", right},
               {"peak", right},
               {"committed", right},
               {"cached", right},
               {"blocks", right},
               {"allocations", right},
               {"refused", right},
               {"who"}});
  for (const LivePool& pool : process.pools)
    table.add({paint(Mood::strong, text::printable(pool.device)), fmt::format("{} {}", text::printable(pool.allocator), pool.id),
               text::bytes(pool.stats.in_use_bytes), text::bytes(pool.stats.peak_in_use_bytes), text::bytes(pool.stats.committed_bytes),
               text::bytes(pool.stats.cached_bytes), fmt::format("{}", pool.stats.live_blocks), fmt::format("{}", pool.stats.allocations),
               fmt::format("{}", pool.stats.failures), tags_in_words(pool)});
  out += '\n' + (process.pools.empty() ? std::string("  nothing allocated yet\n") : table.to_string());
  if (process.pools_left_out != 0) out += fmt::format("  and {} more allocators\n", process.pools_left_out);
  return out;
}

std::string to_json(const std::vector<LiveProcess>& processes) {
  JsonWriter json(JsonWriter::Style::pretty);
  json.begin_object().key("processes").begin_array();
  for (const LiveProcess& one : processes) one.write_json(json);
  json.end_array().end_object();
  return json.take() + "\n";
}

Exit say_none(const TopCommand& command) {
  if (command.json) print(to_json({}));
  const std::string whom =
      command.target.empty() ? "no process of this user" : "no process of this user that is " + text::quoted(command.target);
  print_error(whom + " exposes its memory", "start it with BERTH_LIVE=1, or have it call berth::expose_live()");
  return Exit::no;
}

}  // namespace

Exit run_top(const TopCommand& command) {
  const bool refreshes = !command.once && !command.json && os::is_terminal(1);
  bool any = false;
  while (true) {
    const std::vector<LiveProcess> processes = chosen(command.target);
    if (processes.empty()) {
      if (!any) return say_none(command);
      print("it has ended\n");
      return Exit::ok;
    }
    any = true;
    if (command.json) {
      print(to_json(processes));
      return Exit::ok;
    }
    std::string out = refreshes ? "\x1b[H\x1b[2J" : "";
    for (const LiveProcess& one : processes) out += to_text(one) + "\n";
    print(out);
    if (!refreshes) return Exit::ok;
    std::this_thread::sleep_for(std::chrono::duration<double>(command.every));
  }
}

}  // namespace berth::internal::cli
