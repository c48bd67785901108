// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/wait.h>

#include <cstdio>
#include <string>

// Runs a shell command and collects its output.
namespace berth::testing {

struct Ran {
  int exit_code = -1;  // -1 - signal if a signal killed it
  std::string output;  // standard output and error together
};

inline Ran run_command(const std::string& command) {
  Ran ran;
  FILE* const pipe = popen(("{ " + command + "; } 2>&1").c_str(), "r");
  if (pipe == nullptr) return ran;
  char buffer[4096];
  for (std::size_t n = 0; (n = std::fread(buffer, 1, sizeof buffer, pipe)) > 0;) ran.output.append(buffer, n);
  const int status = pclose(pipe);
  ran.exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : -1 - WTERMSIG(status);
  return ran;
}

}  // namespace berth::testing
