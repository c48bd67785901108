// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

#include "fuzz/target.h"

// A folder of this process in memory, which an environment variable names for the library. Its files are removed with it,
// where the program ends as it should: a crash leaves /dev/shm/berth_fuzz_PID.
namespace berth::testing::fuzz {

class MemoryFolder {
 public:
  explicit MemoryFolder(const char* variable) : path_("/dev/shm/berth_fuzz_" + std::to_string(getpid()) + '_' + variable) {
    require(mkdir(path_.c_str(), 0700) == 0 && setenv(variable, path_.c_str(), 1) == 0, "the machine has a folder in memory");
  }
  ~MemoryFolder() {
    for (const std::string& name : names_) unlink(operator/(name).c_str());
    rmdir(path_.c_str());
  }
  MemoryFolder(const MemoryFolder&) = delete;
  MemoryFolder& operator=(const MemoryFolder&) = delete;

  std::string operator/(const std::string& name) const { return path_ + '/' + name; }

  // A new file of that name, as long as the bytes or longer.
  void write(const std::string& name, std::string_view bytes, std::size_t size = 0) {
    const std::string path = operator/(name);
    unlink(path.c_str());
    const int file = open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    const bool done = ftruncate(file, static_cast<off_t>(std::max(size, bytes.size()))) == 0 &&
                      pwrite(file, bytes.data(), bytes.size(), 0) == static_cast<ssize_t>(bytes.size());
    close(file);
    require(done, "the machine has memory for a file");
    if (names_.empty() || names_.back() != name) names_.push_back(name);
  }

 private:
  std::string path_;
  std::vector<std::string> names_;
};

}  // namespace berth::testing::fuzz
