// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "berth/base/error.h"

// What every sub-command shares: exit codes, colour, and the two places text goes. Results go to standard output; everything about the
// run itself (errors, progress) to standard error.
namespace berth::internal::cli {

// 0: done. 1: the answer is no: a check failed, a file breaks a rule, memory or a disk refused, the machine lacks a kind of device that berth
// knows. 2: wrong use: arguments, and a device or a file that is not there, may not be used, or is no file. `check` on a file that cannot be
// opened is 2: nothing was checked.
enum class Exit : int { ok = 0, no = 1, usage = 2 };

// How a command exits that an error ended.
Exit exit_of(const Error& error) noexcept;

enum class ColourMode { automatic, always, never };

// Decides about colour once, for standard output: only on a terminal, and not when NO_COLOR is set, unless told otherwise.
void choose_colour(ColourMode mode);

enum class Mood { good, warning, bad, quiet, strong };

// The text in a colour that means something, or plain.
std::string paint(Mood mood, std::string_view text);

// "1 tensor", "2 tensors".
std::string count_of(std::size_t count, std::string_view what);

// Writes to standard output. A reader that has gone away (`berth … | head`) is no error and ends the program quietly with 0; any other
// failure to write ends it with 1 and says why.
void print(std::string_view text);

// "error: …" with the reason and what would help, on standard error.
void print_error(const Error& error);
void print_error(std::string_view message, std::string_view help = {});
// "note: …", for what is missing in a result that is there all the same.
void print_note(std::string_view message, std::string_view help = {});
void print_error_details(std::string_view lines);  // below it, as they are

// What is being done, in a line of standard error that goes away with it; only on a terminal. It starts no thread and no timer: what is
// being done may be measuring.
class StatusLine {
 public:
  explicit StatusLine(std::string_view text);
  ~StatusLine();
  StatusLine(const StatusLine&) = delete;
  StatusLine& operator=(const StatusLine&) = delete;

 private:
  const bool shown_;
};

// How far something is, in the same line; only on a terminal, and only once it has taken a second.
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
