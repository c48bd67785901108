// SPDX-License-Identifier: Apache-2.0
#include <CLI/CLI.hpp>

#include <csignal>
#include <string>

#include "base/text.h"
#include "berth/berth.h"
#include "cli/commands.h"

using namespace berth::cli;

int main(int argc, char** argv) {
  std::signal(SIGPIPE, SIG_IGN);  // a closed pipe is found out by the write, see print()

  CLI::App app("berth: the memory under a tensor program", "berth");
  app.require_subcommand(1);
  app.set_version_flag("--version", std::string("berth ") + berth::version());
  app.footer("Exit codes: 0 done, 1 the answer is no, 2 wrong use. `berth tour` is a good start.");
  std::string colour = "auto";
  app.add_option("--color", colour, "auto (on a terminal), always or never")->check(CLI::IsMember({"auto", "always", "never"}));

  bool json = false;
  CLI::App* const devices = app.add_subcommand("devices", "List this machine's devices, their memory and what they can do");
  devices->add_flag("--json", json, "Print JSON");
  CLI::App* const doctor = app.add_subcommand("doctor", "Say what this machine has and lacks for berth, and how to fix it");
  doctor->add_flag("--json", json, "Print JSON");
  CLI::App* const tour = app.add_subcommand("tour", "Show what berth does, on this machine's devices, in a few seconds");

  try {
    app.parse(argc, argv);
  } catch (const CLI::CallForHelp&) {
    print(app.help() + "\n");
    return static_cast<int>(Exit::ok);
  } catch (const CLI::CallForVersion& version) {
    print(std::string(version.what()) + "\n");
    return static_cast<int>(Exit::ok);
  } catch (const CLI::ParseError& error) {
    print_error(berth::text::printable(error.what()), "berth --help lists the commands and their options");
    return static_cast<int>(Exit::usage);
  }
  choose_colour(colour == "always" ? ColourMode::always : colour == "never" ? ColourMode::never : ColourMode::automatic);

  try {
    if (devices->parsed()) return static_cast<int>(run_devices(json));
    if (doctor->parsed()) return static_cast<int>(run_doctor(json));
    if (tour->parsed()) return static_cast<int>(run_tour());
  } catch (const berth::ArgumentError& error) {  // at this level arguments come from the environment: wrong use
    print_error(error);
    return static_cast<int>(Exit::usage);
  } catch (const berth::Error& error) {
    print_error(error);
    return static_cast<int>(Exit::no);
  } catch (const std::bad_alloc&) {
    print_error("out of memory for the command itself");
    return static_cast<int>(Exit::no);
  }
  return static_cast<int>(Exit::usage);
}
