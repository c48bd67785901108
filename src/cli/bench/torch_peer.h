// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <string_view>

#include "cli/bench/cases.h"
#include "os/process/child.h"

// PyTorch beside berth, in a Python of its own: $BERTH_PYTHON, or python3. It is started once, prepares one case at a time, and measures a
// round when asked, so that its rounds can stand between berth's.
//
// It is a guest: when it is not installed, dies, hangs or answers nonsense, that is said once on standard error, and there is no comparison
// from then on. A case that it cannot do is left out, silently.
//
// The conversation, in lines:
//
//     from it   ready 2.1.0                     or  none REASON
//     to it     prepare copy transposed f32 bf16 8192,8192 1      with two devices behind, unless both are the host
//     from it   ok                              or  cannot REASON
//     to it     round 3 0.2
//     from it   seconds 0.0123
namespace berth::internal::cli {

// The program that speaks so, in Python. Its argument is the number of threads.
extern const char* const kTorchScript;

class TorchPeer {
 public:
  TorchPeer(int threads, std::chrono::milliseconds patience);

  bool is_there() const noexcept { return child_.has_value(); }

  // Makes both sides of a case; `calls` is how many copies one run does. False: there will be no comparison.
  bool prepare(const BenchCase& one, int calls);

  // The least time of a run out of at most `runs`, of which none begins when `enough_seconds` have passed.
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
