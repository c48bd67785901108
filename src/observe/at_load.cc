// SPDX-License-Identifier: Apache-2.0
#include <atomic>
#include <charconv>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <string>

#include "base/text.h"
#include "berth/base/json.h"
#include "berth/observe/live.h"
#include "berth/observe/profiler.h"
#include "berth/observe/snapshot_file.h"
#include "berth/observe/tracker.h"
#include "memory/refusal_hook.h"
#include "os/file/new_file.h"
#include "os/process/fork.h"
#include "os/process/signals.h"
#include "os/system.h"

// Reads the environment when the library is loaded, and starts what it asks for: BERTH_LEAKS, BERTH_PROFILE,
// BERTH_SNAPSHOT_SIGNAL, BERTH_SNAPSHOT_ON_OOM, BERTH_LIVE. Errors are printed to standard error, and the
// program continues.
namespace berth::internal::observe {

namespace {

constexpr int kMostRefusals = 10;  // snapshots that one process saves on OutOfMemory

void say(const std::string& line) noexcept { std::fputs((line + "\n").c_str(), stderr); }

// ---- Leaks and the profile, reported at exit. Never destroyed.

Tracker* g_tracker = nullptr;
Profiler* g_profiler = nullptr;

std::size_t depth_from_environment() {
  const std::string value = os::environment("BERTH_STACK_DEPTH").value_or("0");
  std::size_t depth = 0;
  const char* const end = value.data() + value.size();
  const auto [stop, error] = std::from_chars(value.data(), end, depth);
  if (error == std::errc() && stop == end && depth <= CallSite::kMostFrames) return depth;
  say(text::join("berth: BERTH_STACK_DEPTH=", text::printable(value), " is not a number from 0 to ", CallSite::kMostFrames,
                 ": no stacks are kept"));
  return 0;
}

void report_leaks() {
  const Leaks leaks = g_tracker->leaks();
  std::uint64_t bytes = 0;
  for (const Leak& leak : leaks) bytes += leak.bytes;
  if (leaks.empty()) return say("berth: no leaks");
  std::string report = text::join("berth: ", leaks.size(), leaks.size() == 1 ? " leak, " : " leaks, ", text::bytes(bytes));
  for (const Leak& leak : leaks) report += text::join("\nberth:   ", leak.to_string());
  say(report);
}

void write_profile() {
  const auto path = os::environment("BERTH_PROFILE");
  if (!path) return;
  const std::string content = to_json(g_profiler->profile()) + "\n";
  const Status written = os::write_new_file(*path, content);
  if (!written)
    say(text::join("berth: the profile cannot be written to BERTH_PROFILE=", text::printable(*path), ": ",
                   std::string_view(written.failure().why), "; name a file that can be created"));
}

// Not in a forked child that exits: its parent reports what the child has inherited.
void report_at_exit() noexcept {
  if (os::fork_generation() != 0) return;
  try {
    if (g_profiler != nullptr) write_profile();
    if (g_tracker != nullptr) report_leaks();
  } catch (const std::exception& error) {
    std::fprintf(stderr, "berth: no report at exit: %s\n", error.what());
  }
}

// ---- Snapshots

void save_into(const char* variable, const char* otherwise, const char* name, const std::string& reason) noexcept {
  try {
    const std::string folder = os::environment(variable).value_or(otherwise);
    const std::string path = save_snapshot(text::join(folder, "/", std::string_view(name)), reason);
    say(text::join("berth: snapshot saved to ", text::printable(path)));
  } catch (const std::exception& error) {
    std::fprintf(stderr, "berth: no snapshot: %s\n", error.what());
  }
}

void save_on_signal() noexcept { save_into("BERTH_SNAPSHOT_DIR", ".", "berth-%p-%n.json", "signal"); }

void save_on_refusal(const OutOfMemory& refusal) noexcept {
  static std::atomic<int> saved{0};
  if (saved.fetch_add(1, std::memory_order_relaxed) >= kMostRefusals) return;
  save_into("BERTH_SNAPSHOT_ON_OOM", ".", "berth-oom-%p-%n.json", refusal.what());
}

void listen_for_signal(const std::string& name) {
  const std::optional<int> number = os::signal_by_name(name);
  if (!number) return say(text::join("berth: BERTH_SNAPSHOT_SIGNAL=", text::printable(name), " is not supported; use USR1 or USR2"));
  const Status done = os::run_on_signal(*number, save_on_signal);
  if (!done) say(text::join("berth: BERTH_SNAPSHOT_SIGNAL=", text::printable(name), ": ", std::string_view(done.failure().why)));
}

bool is_on(const char* variable) {
  const auto value = os::environment(variable);
  return value && *value != "0";
}

void read_environment() {
  const bool counts = os::environment("BERTH_PROFILE").has_value();
  const std::size_t depth = is_on("BERTH_LEAKS") || counts ? depth_from_environment() : 0;
  if (is_on("BERTH_LEAKS")) g_tracker = new Tracker({.stack_depth = depth});
  if (counts) g_profiler = new Profiler({.sites = depth != 0, .stack_depth = depth, .every = std::chrono::milliseconds(100)});
  if (os::environment("BERTH_SNAPSHOT_ON_OOM")) memory::g_refusal_hook.store(save_on_refusal, std::memory_order_release);
  if (const auto signal = os::environment("BERTH_SNAPSHOT_SIGNAL")) listen_for_signal(*signal);
  if (is_on("BERTH_LIVE")) expose_live();
}

// Registered as early as possible: exit handlers run in reverse order, so static objects are destroyed before
// the report is made.
[[gnu::constructor(101)]] void register_report() {
  if (is_on("BERTH_LEAKS") || os::environment("BERTH_PROFILE")) (void)std::atexit(report_at_exit);
}

[[gnu::constructor]] void read_environment_at_load() {
  try {
    read_environment();
  } catch (const std::exception& error) {
    std::fprintf(stderr, "berth: %s\n", error.what());
  }
}

}  // namespace

}  // namespace berth::internal::observe

// A program that links the static library refers to this symbol to pull in this file: nothing else in the
// library does.
extern "C" {
extern const char berth_observes_at_load;
const char berth_observes_at_load = 1;
}
