// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cerrno>
#include <chrono>
#include <string>
#include <vector>

// Runs a program that the system refuses something, and that must end all the same.
namespace berth::testing {

struct Ended {
  int exit_code = -1;      // -1 - signal if a signal killed it
  bool timed_out = false;  // and was killed, with all that it had started
  std::string output;      // standard output and error together
};

// `variables` are "NAME=value", in addition to this process's.
Ended run_limited(const std::vector<std::string>& words, const std::vector<std::string>& variables = {},
                  std::chrono::seconds patience = std::chrono::seconds(60));

// The program and arguments that run `words` with that call of the system refused (tests/hostile/deny.cc); `deny` is
// what DENY_CALL is set to.
Ended run_denied(const std::vector<std::string>& words, const std::string& deny, std::vector<std::string> variables = {});

// The numbers of the calls that the program makes from its main on; empty, with the reason, if they cannot be recorded.
struct Recorded {
  std::vector<long> calls;
  Ended ended;
};
Recorded record_calls(const std::vector<std::string>& words, const std::vector<std::string>& variables = {});

// A folder of the test's own, empty at first and removed at the end, in `where`.
class OwnFolder {
 public:
  explicit OwnFolder(const std::string& where = "");
  ~OwnFolder();
  OwnFolder(const OwnFolder&) = delete;
  OwnFolder& operator=(const OwnFolder&) = delete;
  void clear() const;
  const std::string& path() const noexcept { return path_; }

 private:
  std::string path_;
};

}  // namespace berth::testing
