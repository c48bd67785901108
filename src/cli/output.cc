// SPDX-License-Identifier: Apache-2.0
#include "cli/output.h"

#include <fmt/core.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "base/text.h"
#include "os/file/file.h"
#include "os/system.h"

namespace berth::internal::cli {

namespace {

constexpr int kStandardOutput = 1;
bool g_colour = false;

std::string_view code(Mood mood) {
  switch (mood) {
    case Mood::good: return "\x1b[32m";
    case Mood::warning: return "\x1b[33m";
    case Mood::bad: return "\x1b[31m";
    case Mood::quiet: return "\x1b[2m";
    case Mood::strong: return "\x1b[1m";
  }
  return "";
}

void print_with_help(std::string_view word, std::string_view message, std::string_view help) {
  std::string text = fmt::format("{}{}\n", word, message);
  if (!help.empty()) text += fmt::format("help:  {}\n", help);
  std::fputs(text.c_str(), stderr);  // errors ignored: a closed standard error does not matter
}

}  // namespace

void choose_colour(ColourMode mode) {
  g_colour =
      mode == ColourMode::always || (mode == ColourMode::automatic && os::is_terminal(kStandardOutput) && !os::environment("NO_COLOR"));
}

std::string paint(Mood mood, std::string_view text) { return g_colour ? fmt::format("{}{}\x1b[0m", code(mood), text) : std::string(text); }

std::string count_of(std::size_t count, std::string_view what) { return fmt::format("{} {}{}", count, what, count == 1 ? "" : "s"); }

void print(std::string_view text) {
  const Status written = os::write_file(kStandardOutput, text.data(), text.size());
  if (written) return;
  const int error = written.failure().os_error;
  if (error == EPIPE) std::_Exit(static_cast<int>(Exit::ok));
  print_error(fmt::format("writing the result: {}", std::strerror(error)), "check the disk, or where standard output goes");
  std::_Exit(static_cast<int>(Exit::no));
}

Exit exit_of(const Error& error) noexcept {
  if (dynamic_cast<const FormatError*>(&error) != nullptr) return Exit::no;
  if (dynamic_cast<const ArgumentError*>(&error) != nullptr) return Exit::usage;
  switch (error.code()) {
    case ErrorCode::no_such_device:
    case ErrorCode::not_found:
    case ErrorCode::permission_denied: return Exit::usage;
    // A path: the file is a directory or a pipe.
    case ErrorCode::unsupported: return error.fact("path").empty() ? Exit::no : Exit::usage;
    default: return Exit::no;
  }
}

void print_error(const Error& error) { print_error(fmt::format("{}: {}", error.asked(), error.why()), error.help()); }

void print_error(std::string_view message, std::string_view help) { print_with_help("error: ", message, help); }
void print_note(std::string_view message, std::string_view help) { print_with_help("note:  ", message, help); }

void print_error_details(std::string_view lines) { std::fwrite(lines.data(), 1, lines.size(), stderr); }

StatusLine::StatusLine(std::string_view text) : shown_(os::is_terminal(2)) {
  if (shown_) fmt::print(stderr, "{} …\r", text);
}

StatusLine::~StatusLine() {
  if (shown_) std::fputs("\x1b[K", stderr);
}

Progress::Progress() : possible_(os::is_terminal(2)), start_ns_(os::steady_time_ns()) {}

Progress::~Progress() {
  if (shown_) std::fputs("\x1b[K", stderr);
}

void Progress::say(std::string_view text) {
  constexpr std::uint64_t kSecond = 1'000'000'000;
  if (!possible_ || os::steady_time_ns() - start_ns_ < kSecond) return;
  shown_ = true;
  fmt::print(stderr, "\x1b[K{} …\r", text);
}

}  // namespace berth::internal::cli
