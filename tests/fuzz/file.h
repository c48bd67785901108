// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <string>
#include <string_view>

#include "fuzz/target.h"

// A file in memory, for what reads a path or a descriptor. One thread at a time.
namespace berth::testing::fuzz {

class File {
 public:
  explicit File(std::string_view bytes = {}) : number_(memfd_create("fuzz", MFD_CLOEXEC | MFD_ALLOW_SEALING)) { hold(bytes); }
  ~File() { close(number_); }
  File(const File&) = delete;
  File& operator=(const File&) = delete;

  void hold(std::string_view bytes) {
    require(ftruncate(number_, static_cast<off_t>(bytes.size())) == 0 && write_at(0, bytes), "the machine has memory for a file");
  }
  bool write_at(off_t offset, std::string_view bytes) const {
    return pwrite(number_, bytes.data(), bytes.size(), offset) == static_cast<ssize_t>(bytes.size());
  }
  int number() const noexcept { return number_; }
  std::string path() const { return "/proc/self/fd/" + std::to_string(number_); }

 private:
  const int number_;
};

// The number that the next descriptor gets: the same before and after what leaves none open.
inline int next_descriptor() {
  const int number = fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 0);
  close(number);
  return number;
}

}  // namespace berth::testing::fuzz
