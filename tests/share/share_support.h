// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <dirent.h>
#include <sys/socket.h>
#include <unistd.h>

#include <chrono>
#include <cstring>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

#include "share/ticket_bytes.h"
#include "support/descriptors.h"

// Helpers for the tests of sharing: descriptors, mappings, and waiting for what the kernel does a moment later.
namespace berth::testing {

using namespace internal::share;

// Mappings of shared memory in this process.
inline std::size_t shared_mappings() {
  std::size_t count = 0;
  std::ifstream maps("/proc/self/maps");
  for (std::string line; std::getline(maps, line);) count += line.find("memfd:berth") != std::string::npos ? 1 : 0;
  return count;
}

// Whether something becomes true within a second: the kernel closes what was in flight to a dead process a
// moment after its death.
template <class Claim>
bool comes_true(Claim claim) {
  for (int i = 0; i < 1000; ++i) {
    if (claim()) return true;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return false;
}

inline void send_with_descriptors(int socket, const std::vector<char>& bytes, const std::vector<int>& files) {
  std::vector<char> control(CMSG_SPACE(files.size() * sizeof(int)));
  iovec part{const_cast<char*>(bytes.data()), bytes.size()};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  message.msg_control = control.data();
  message.msg_controllen = control.size();
  cmsghdr* const head = CMSG_FIRSTHDR(&message);
  head->cmsg_level = SOL_SOCKET;
  head->cmsg_type = SCM_RIGHTS;
  head->cmsg_len = CMSG_LEN(files.size() * sizeof(int));
  std::memcpy(CMSG_DATA(head), files.data(), files.size() * sizeof(int));
  (void)sendmsg(socket, &message, 0);
}

}  // namespace berth::testing
