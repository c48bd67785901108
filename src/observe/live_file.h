// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "berth/base/result.h"
#include "os/file/descriptor.h"
#include "os/file/shared_file.h"

// The page that a process keeps for those who watch it: text, with a header that says whether it is whole.
//
//     | magic | version | sequence | bytes | text ...            |      64 KiB
//
// The sequence is odd while the text is being written; a reader who finds it even, and the same before and after, has read a whole one. The
// file is named after the process, in a folder of the user's own, and the process holds a lock on it that the kernel takes away when it dies.
namespace berth::internal::observe {

// Containers may share the folder, and count their processes each for itself: two may have the same id.
struct LiveName {
  std::int64_t process = 0;
  std::uint64_t space = 0;  // os::process_space

  static LiveName own() noexcept;
  friend auto operator<=>(const LiveName&, const LiveName&) = default;
};

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

  // A page of that name, which is the calling process's. `already_exists` cannot be: what a dead process of that number has left goes.
  static Result<LivePage> make(const LiveName& name = LiveName::own()) noexcept;

  LivePage(LivePage&& other) noexcept;
  LivePage& operator=(LivePage&& other) noexcept;
  ~LivePage();

  void write(std::string_view text) noexcept;  // REQUIRES: at most kMostText
  // Whether readers find it, and find that its process lives. Not when someone took its name away, or the program closed the descriptor that has the
  // lock, as some close all there are: then a new page is due.
  bool is_seen() const noexcept;
  void remove_name() noexcept;     // does nothing when the name is another page's by now
  void close_in_child() noexcept;  // or it would seem to live as long as the child does

  // The text of a process that lives and is this user's; else nothing. A page of a dead one is removed.
  static std::optional<std::string> read(const LiveName& name);
  static std::vector<LiveName> names();

 private:
  LivePage(const LiveName& name, os::Descriptor lock, const os::FileFacts& file, void* page) noexcept;
  bool has_lock() const noexcept;

  LiveName name_;
  os::Descriptor lock_;  // its description has the lock; closed only while has_lock(): the number may be the program's by now
  os::FileFacts file_;
  void* page_;
};

}  // namespace berth::internal::observe
