// SPDX-License-Identifier: Apache-2.0
#include <CLI/CLI.hpp>

#include <algorithm>
#include <csignal>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/refuse.h"
#include "base/text.h"
#include "berth/berth.h"
#include "cli/commands.h"
#include "cli/options.h"

using namespace berth::internal::cli;

namespace {

// The command line: its subcommands, and the function that runs each.
class CommandLine {
 public:
  CommandLine();

  // Nothing when there is a subcommand to run. Otherwise help, the version or a usage error was printed, and
  // this is the exit code.
  std::optional<Exit> parse(int argc, char** argv);

  // Runs the subcommand that was parsed, and reports its errors.
  Exit run() const;

 private:
  struct Subcommand {
    const CLI::App* app;
    std::function<Exit()> run;
  };

  void add_bench_commands();
  void add_shm_commands();
  void add_snapshot_commands();
  void add_tour_commands();
  CLI::App& add_group(const char* name, const char* does);
  CLI::App& add_plain(CLI::App& parent, const char* name, const char* does, Exit (*work)(bool json));
  template <class Command>
  void add(CLI::App& parent, const char* name, const char* does, void (*add_options)(CLI::App&, Command&), Exit (*work)(const Command&));

  CLI::App app_{"berth: the memory under a tensor program", "berth"};
  std::string colour_ = "auto";
  std::vector<Subcommand> subcommands_;
};

// ---- Set up. The help lists the subcommands in this order.

CommandLine::CommandLine() {
  app_.require_subcommand(1);
  app_.set_version_flag("--version", std::string("berth ") + berth::version());
  app_.footer("Exit codes: 0 done; 1 the answer is no; 2 wrong use, also a file that cannot be opened. `berth tour` is a good start.");
  app_.add_option("--color", colour_, "auto (on a terminal), always or never")->check(CLI::IsMember({"auto", "always", "never"}));

  add_plain(app_, "devices", "List this machine's devices, their memory and what they can do", run_devices);
  add_plain(app_, "doctor", "Say what this machine has and lacks for berth, and how to fix it", run_doctor);
  add(app_, "replay", "Run a trace of allocations through an allocator, and say what it cost", add_replay_options, run_replay);
  add(app_, "plan", "Decide where every value of a graph lives, in as little memory as possible", add_plan_options, run_plan);
  add(app_, "verify", "Judge a plan that berth plan --out wrote", add_verify_options, run_verify);
  add(app_, "inspect", "Say what is in a file of tensors", add_inspect_options, run_inspect);
  add(app_, "check", "Say whether a file of tensors keeps every rule of its format, or where it does not", add_check_options, run_check);
  add(app_, "convert", "Write a file of tensors in another format, with other dtypes, aligned", add_convert_options, run_convert);
  add_bench_commands();
  add_shm_commands();
  add_snapshot_commands();
  add(app_, "top", "Show the pools of running processes", add_top_options, run_top);
  add_tour_commands();
}

void CommandLine::add_bench_commands() {
  CLI::App& bench = add_group("bench", "Measure what berth does on this machine");
  add(bench, "copy", "Copies and conversions, beside memcpy and PyTorch", add_bench_copy_options, run_bench_copy);
  add(bench, "alloc", "Allocating and freeing, warm: by size, with many live blocks, by many threads", add_bench_alloc_options,
      run_bench_alloc);
  add(bench, "load", "Loading a model file, plain and converted, beside one thread of read", add_bench_load_options, run_bench_load);
}

void CommandLine::add_shm_commands() {
  CLI::App& shm = add_group("shm", "Named shared storages: list them, or remove those that dead processes left");
  add_plain(shm, "ls", "List them: size, age, and which processes hold them, alive or dead", run_shm_list);
  add_plain(shm, "reap", "Remove those that only dead processes hold", run_shm_reap);
  add_plain(shm, "gc", "The old name of reap", run_shm_reap).group("");
}

// Each reads files that save_snapshot wrote.
void CommandLine::add_snapshot_commands() {
  CLI::App& snapshot = add_group("snapshot", "Look at the saved state of a process's pools");
  add(snapshot, "show", "Print the pools of a snapshot, and who holds the most", add_snapshot_show_options, run_snapshot_show);
  add(snapshot, "diff", "Print what came and went between two snapshots", add_snapshot_diff_options, run_snapshot_diff);
  add(snapshot, "html", "Write an HTML report of a snapshot, in one file", add_snapshot_html_options, run_snapshot_html);
  snapshot.footer("berth::save_snapshot writes them, and so do BERTH_SNAPSHOT_SIGNAL and BERTH_SNAPSHOT_ON_OOM: see docs/observing.md.");
}

void CommandLine::add_tour_commands() {
  CLI::App* const guest = app_.add_subcommand("tour-guest", "The second process of the tour")->group("");
  const auto name = std::make_shared<std::string>();
  guest->add_option("NAME", *name)->required();
  subcommands_.push_back({guest, [name] { return run_tour_guest(*name); }});
  CLI::App* const tour = app_.add_subcommand("tour", "Show what berth does, on this machine's devices, in a few seconds");
  subcommands_.push_back({tour, run_tour});
}

// A subcommand that only has subcommands.
CLI::App& CommandLine::add_group(const char* name, const char* does) {
  CLI::App* const group = app_.add_subcommand(name, does);
  group->require_subcommand(1);
  return *group;
}

// A subcommand without options of its own.
CLI::App& CommandLine::add_plain(CLI::App& parent, const char* name, const char* does, Exit (*work)(bool json)) {
  CLI::App* const app = parent.add_subcommand(name, does);
  const auto json = std::make_shared<bool>(false);
  app->add_flag("--json", *json, "Print JSON");
  subcommands_.push_back({app, [json, work] { return work(*json); }});
  return *app;
}

template <class Command>
void CommandLine::add(CLI::App& parent, const char* name, const char* does, void (*add_options)(CLI::App&, Command&),
                      Exit (*work)(const Command&)) {
  CLI::App* const app = parent.add_subcommand(name, does);
  const auto command = std::make_shared<Command>();
  add_options(*app, *command);
  subcommands_.push_back({app, [command, work] { return work(*command); }});
}

// ---- Parse

ColourMode colour_mode(const std::string& name) {
  if (name == "always") return ColourMode::always;
  return name == "never" ? ColourMode::never : ColourMode::automatic;
}

// "berth plan": the commands that were parsed, whose --help lists what they take.
std::string parsed_so_far(const CLI::App& app) {
  std::string words = app.get_name();
  for (const CLI::App* at = &app; !at->get_subcommands().empty();) {
    at = at->get_subcommands().front();
    words += " " + at->get_name();
  }
  return words;
}

std::optional<Exit> CommandLine::parse(int argc, char** argv) {
  try {
    app_.parse(argc, argv);
  } catch (const CLI::CallForHelp&) {
    print(app_.help() + "\n");
    return Exit::ok;
  } catch (const CLI::CallForVersion& version) {
    print(std::string(version.what()) + "\n");
    return Exit::ok;
  } catch (const CLI::ParseError& error) {
    // Of a word that is no command CLI11 says only that one is required.
    const std::vector<std::string> unknown = app_.remaining(true);
    const bool no_command = error.get_name() == "RequiredError" && !unknown.empty() && !unknown.front().starts_with('-');
    print_error(no_command ? berth::internal::text::join("there is no command ", berth::internal::text::quoted(unknown.front()))
                           : berth::internal::text::printable(error.what()),
                parsed_so_far(app_) + " --help says what it takes");
    return Exit::usage;
  }
  choose_colour(colour_mode(colour_));
  return std::nullopt;
}

// ---- Run

Exit CommandLine::run() const {
  try {
    const auto chosen = std::ranges::find_if(subcommands_, [](const Subcommand& one) { return one.app->parsed(); });
    return chosen == subcommands_.end() ? Exit::usage : chosen->run();
  } catch (const berth::Error& error) {
    print_error(error);
    return exit_of(error);
  } catch (const std::bad_alloc&) {
    print_error("out of memory for the command itself", berth::internal::base::kRaiseLimit);
    return Exit::no;
  } catch (const std::exception& error) {  // of the standard library, such as std::filesystem
    print_error(berth::internal::text::printable(error.what()));
    return Exit::no;
  }
}

}  // namespace

int main(int argc, char** argv) {
  std::signal(SIGPIPE, SIG_IGN);  // write reports a closed pipe, see print()
  CommandLine line;
  if (const std::optional<Exit> done = line.parse(argc, argv)) return static_cast<int>(*done);
  return static_cast<int>(line.run());
}
