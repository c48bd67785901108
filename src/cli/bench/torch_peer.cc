// SPDX-License-Identifier: Apache-2.0
#include "cli/bench/torch_peer.h"

#include <fmt/core.h>

#include <charconv>
#include <cstring>

#include "base/text.h"
#include "cli/output.h"
#include "os/system.h"

namespace berth::internal::cli {

namespace {

std::string reason(const Failure& failure) {
  return failure.os_error == 0 ? failure.why : fmt::format("{} ({})", failure.why, std::strerror(failure.os_error));
}

std::string dims_text(const Shape& shape) {
  std::string out;
  for (const std::int64_t dim : shape) out += fmt::format("{}{}", out.empty() ? "" : ",", dim);
  return out;
}

std::optional<double> parse_seconds(std::string_view answer) {
  constexpr std::string_view kWord = "seconds ";
  if (!answer.starts_with(kWord)) return std::nullopt;
  answer.remove_prefix(kWord.size());
  double seconds = 0;
  const auto [rest, error] = std::from_chars(answer.data(), answer.data() + answer.size(), seconds);
  if (error != std::errc() || rest != answer.data() + answer.size() || !(seconds > 0 && seconds < 1e9)) return std::nullopt;
  return seconds;
}

}  // namespace

TorchPeer::TorchPeer(int threads, std::chrono::milliseconds patience)
    : patience_(patience), program_(os::environment("BERTH_PYTHON").value_or("python3")) {
  start(threads);
}

void TorchPeer::start(int threads) {
  const StatusLine status("starting PyTorch");
  // Huge pages, as berth's memory has, and OpenMP threads that stop spinning soon.
  Result<os::Child> started = os::Child::start({program_, "-c", kTorchScript, std::to_string(threads)},
                                               {"THP_MEM_ALLOC_ENABLE=1", "KMP_BLOCKTIME=10", "PYTHONUNBUFFERED=1"});
  if (!started) return give_up(reason(started.failure()));
  child_.emplace(std::move(*started));
  const Result<std::string> greeting = child_->read_line(patience_);
  if (!greeting) return give_up(reason(greeting.failure()));
  if (greeting->starts_with("none ")) return give_up(text::printable(greeting->substr(5)));
  if (!greeting->starts_with("ready ")) give_up("it answers " + text::quoted(*greeting));
}

bool TorchPeer::prepare(const BenchCase& one, int calls) {
  const bool on_host = one.source_device == Device() && one.target_device == Device();
  const std::string devices = on_host ? "" : fmt::format(" {} {}", one.source_device.to_string(), one.target_device.to_string());
  const auto answer = ask(fmt::format("prepare {} {} {} {} {} {}{}", to_string(one.kind), to_string(one.layout), to_string(one.from),
                                      to_string(one.to), dims_text(one.shape), calls, devices));
  if (!answer) return false;
  if (*answer != "ok" && !answer->starts_with("cannot ")) give_up("it answers " + text::quoted(*answer));
  return *answer == "ok";
}

std::optional<double> TorchPeer::round(int runs, double enough_seconds) {
  const auto answer = ask(fmt::format("round {} {}", runs, enough_seconds));
  if (!answer) return std::nullopt;
  const std::optional<double> seconds = parse_seconds(*answer);
  if (!seconds) give_up("it answers " + text::quoted(*answer));
  return seconds;
}

// The answer; nullopt when the child is gone.
std::optional<std::string> TorchPeer::ask(std::string_view request) {
  if (!child_) return std::nullopt;
  const Status sent = child_->send_line(request);
  const Result<std::string> answer = sent ? child_->read_line(patience_) : Result<std::string>(sent.failure());
  if (answer) return *answer;
  give_up(reason(answer.failure()));
  return std::nullopt;
}

void TorchPeer::give_up(std::string_view why) {
  child_.reset();
  print_note(fmt::format("no comparison with PyTorch, by {}: {}", text::printable(program_), why),
             "pip install torch, or name a Python that has it in BERTH_PYTHON; --no-torch leaves it out");
}

}  // namespace berth::internal::cli
