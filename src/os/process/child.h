// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "berth/base/result.h"

// A program that berth starts and talks to in lines of text: it reads them from its standard input and answers on its standard output. Its
// standard error goes nowhere.
//
// It never outlives its handle: the destructor kills it, with every program that it has started itself and left in its process group, and
// reaps it. Should berth die first, it finds its standard input at an end. One thread at a time.
namespace berth::internal::os {

class Child {
 public:
  // The program words[0], found as the shell finds it, with the rest as its arguments. It inherits the environment with `variables`, each
  // NAME=VALUE, put in, and none of berth's descriptors. Throws nothing but for a lack of heap. REQUIRES: there is a word.
  static Result<Child> start(const std::vector<std::string>& words, const std::vector<std::string>& variables = {});

  Child(Child&& other) noexcept
      : process_(std::exchange(other.process_, -1)), socket_(std::exchange(other.socket_, -1)), unread_(std::move(other.unread_)) {}
  Child& operator=(Child&&) = delete;
  ~Child();

  int process() const noexcept { return process_; }

  // The line and a newline, without waiting. Fails when the program has ended, or has left so much unread that there is no room.
  Status send_line(std::string_view line);

  // The next line, without its newline. Fails when the program has ended, has not finished a line in that time, or has sent 64 KiB without
  // one. A program that has failed once is of no use any more.
  Result<std::string> read_line(std::chrono::milliseconds patience);

 private:
  Child(int process, int socket) noexcept : process_(process), socket_(socket) {}

  int process_;  // also its process group; -1 when moved from
  int socket_;
  std::string unread_;  // what has arrived after the last line
};

}  // namespace berth::internal::os
