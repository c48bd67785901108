// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "berth/base/result.h"

// A child process that talks with berth in lines of text: it reads them from its standard input and answers on
// its standard output. Its standard error is discarded.
//
// It never outlives its handle: the destructor kills its whole process group and reaps it. If berth dies first,
// the child reads end-of-file on its standard input. One thread at a time.
namespace berth::internal::os {

class Child {
 public:
  // Starts the program words[0], found through PATH, with the rest as its arguments. It inherits the
  // environment, overridden by `variables` (each NAME=VALUE), and none of berth's file descriptors. Throws
  // nothing but bad_alloc. REQUIRES: `words` is not empty.
  static Result<Child> start(const std::vector<std::string>& words, const std::vector<std::string>& variables = {});

  Child(Child&& other) noexcept
      : process_(std::exchange(other.process_, -1)), socket_(std::exchange(other.socket_, -1)), unread_(std::move(other.unread_)) {}
  Child& operator=(Child&&) = delete;
  ~Child();

  int process() const noexcept { return process_; }

  // Sends the line and a newline, without blocking. Fails when the program has ended, or the socket's buffer is
  // full.
  Status send_line(std::string_view line);

  // The next line, without its newline. Fails when the program has ended, has not completed a line in that
  // time, or has sent 64 KiB without a newline. After a failure the child must not be used any more.
  Result<std::string> read_line(std::chrono::milliseconds patience);

 private:
  Child(int process, int socket) noexcept : process_(process), socket_(socket) {}

  int process_;  // also its process group; -1 when moved from
  int socket_;
  std::string unread_;  // received after the last complete line
};

}  // namespace berth::internal::os
