// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "berth/base/error.h"

// Common to all subcommands: exit codes, colour, and output. Results go to standard output; everything about
// the run itself (errors, progress) to standard error.
namespace berth::internal::cli {

// 0: success. 1: the answer is no: a check failed, a file is malformed, memory or disk space ran out, the
// machine lacks a kind of device that berth knows. 2: usage error: bad arguments, or a device or file that does
// not exist, is not accessible, or is not a regular file. `check` on a file that cannot be opened is 2: nothing
// was checked.
enum class Exit : int { ok = 0, no = 1, usage = 2 };

// The exit code of a command that failed with this error.
Exit exit_of(const Error& error) noexcept;

enum class ColourMode { automatic, always, never };

// Decides about colour once, for standard output: only on a terminal and without NO_COLOR, unless the mode says
// otherwise.
void choose_colour(ColourMode mode);

enum class Mood { good, warning, bad, quiet, strong };

// The text in the colour of the mood, or plain.
std::string paint(Mood mood, std::string_view text);

// "1 tensor", "2 tensors".
std::string count_of(std::size_t count, std::string_view what);

// Writes to standard output. A closed pipe (`berth … | head`) is not an error and exits silently with 0; any
// other write error exits with 1 and a message.
void print(std::string_view text);

// Prints "error: …" with the reason and a hint to standard error.
void print_error(const Error& error);
void print_error(std::string_view message, std::string_view help = {});
// Prints "note: …", for a result that is incomplete but valid.
void print_note(std::string_view message, std::string_view help = {});
void print_error_details(std::string_view lines);  // verbatim, below the error

// Shows the current activity in a line of standard error, and erases it when destroyed; only on a terminal. It
// starts no thread and no timer, which could disturb a measurement.
class StatusLine {
 public:
  explicit StatusLine(std::string_view text);
  ~StatusLine();
  StatusLine(const StatusLine&) = delete;
  StatusLine& operator=(const StatusLine&) = delete;

 private:
  const bool shown_;
};

// Shows progress in the same line; only on a terminal, and only after a second.
class Progress {
 public:
  Progress();
  ~Progress();
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  void say(std::string_view text);

 private:
  const bool possible_;
  const std::uint64_t start_ns_;
  bool shown_ = false;
};

}  // namespace berth::internal::cli
