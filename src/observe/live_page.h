// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "berth/base/result.h"
#include "os/descriptor.h"

// The page that a process keeps for those who watch it: text, with a header that says whether it is whole.
//
//     | magic | version | sequence | bytes | text ...            |      64 KiB
//
// The sequence is odd while the text is being written; a reader who finds it even, and the same before and after, has read a whole one. The
// file is named after the process, in a folder of the user's own, and the process holds a lock on it that the kernel takes away when it dies.
namespace berth {

class LivePage {
 public:
  static constexpr std::size_t kBytes = 64 * 1024;
  struct Header {
    std::uint64_t magic;
    std::uint64_t version;
    std::atomic<std::uint64_t> sequence;
    std::atomic<std::uint64_t> bytes;
  };
  static constexpr std::size_t kMostText = kBytes - sizeof(Header);

  // This process's own. `already_exists` cannot be: what a dead process of that number has left goes.
  static Result<LivePage> make() noexcept;

  LivePage(LivePage&& other) noexcept;
  LivePage& operator=(LivePage&&) = delete;
  ~LivePage();

  void write(std::string_view text) noexcept;  // REQUIRES: at most kMostText
  void remove_name() noexcept;
  void close_in_child() noexcept { lock_.close(); }  // or it would seem to live as long as the child does

  // The text of a process that lives and is this user's; else nothing. A page of a dead one is removed.
  static std::optional<std::string> read(std::int64_t process);
  static std::vector<std::int64_t> processes();

 private:
  LivePage(os::Descriptor folder, os::Descriptor lock, void* page) noexcept;

  os::Descriptor folder_;
  os::Descriptor lock_;  // its description has the lock
  void* page_;
};

}  // namespace berth
