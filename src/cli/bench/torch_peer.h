// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <string_view>

#include "cli/bench/cases.h"
#include "os/process/child.h"

// The PyTorch baseline, in a Python child process: $BERTH_PYTHON, or python3. It is started once, prepares one
// case at a time, and measures a round on request, so that its rounds interleave with berth's.
//
// It is optional: if it is not installed, dies, hangs or gives an invalid answer, a message goes to standard
// error once, and there is no comparison from then on. A case that it does not support is skipped silently.
//
// The protocol, line by line:
//
//     from it   ready 2.1.0                     or  none REASON
//     to it     prepare copy transposed f32 bf16 8192,8192 1      with two devices behind, unless both are the host
//     from it   ok                              or  cannot REASON
//     to it     round 3 0.2
//     from it   seconds 0.0123
namespace berth::internal::cli {

// The Python program that implements it. Its argument is the number of threads.
extern const char* const kTorchScript;

class TorchPeer {
 public:
  TorchPeer(int threads, std::chrono::milliseconds patience);

  bool is_there() const noexcept { return child_.has_value(); }

  // Prepares both sides of a case; `calls` is the number of copies per run. False: there will be no comparison.
  bool prepare(const BenchCase& one, int calls);

  // The fastest of at most `runs` runs; none starts after `enough_seconds`.
  std::optional<double> round(int runs, double enough_seconds);

 private:
  void start(int threads);
  std::optional<std::string> ask(std::string_view request);
  void give_up(std::string_view why);

  const std::chrono::milliseconds patience_;
  std::string program_;
  std::optional<os::Child> child_;
};

}  // namespace berth::internal::cli
