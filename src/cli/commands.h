// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string>

#include "cli/output.h"

// The sub-commands. Each prints a table for people, or with `json` one JSON value, and returns how the program exits.
namespace berth::cli {

Exit run_devices(bool json);
Exit run_doctor(bool json);
Exit run_tour();

struct ReplayCommand {
  std::string path;
  std::string device = "cpu";
  std::string strategy;  // empty: the device's default
  std::size_t scale = 1;
  int threads = 1;
  bool touch = false;
  bool once = false;  // no second run, and so no percentiles
  bool compare = false;
  bool json = false;
};
Exit run_replay(const ReplayCommand& command);

}  // namespace berth::cli
