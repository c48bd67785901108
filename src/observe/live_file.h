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

// The file in which a process exposes itself to observers: text behind a sequence lock.
//
//     | magic | version | sequence | bytes | text ...            |      64 KiB
//
// The sequence is odd while the text is being written; a reader that finds it even, and the same before and
// after, has read a consistent text. The file is named after the process, in a directory of the user's own, and
// the process holds a file lock on it, which the kernel releases when the process dies. One thread writes; any
// process reads.
namespace berth::internal::observe {

// Containers may share the directory but have PID namespaces of their own: two processes may have the same id.
struct LiveName {
  std::int64_t process = 0;
  std::uint64_t space = 0;  // os::process_space

  static LiveName own() noexcept;
  friend auto operator<=>(const LiveName&, const LiveName&) = default;
};

class LiveFile {
 public:
  static constexpr std::size_t kBytes = 64 * 1024;
  struct Header {
    std::uint64_t magic;
    std::uint64_t version;
    std::atomic<std::uint64_t> sequence;
    std::atomic<std::uint64_t> bytes;
  };
  static constexpr std::size_t kMostText = kBytes - sizeof(Header);

  // Makes the file of the calling process. Never `already_exists`: the file of a dead process with the same id
  // is replaced.
  static Result<LiveFile> make(const LiveName& name = LiveName::own()) noexcept;

  LiveFile(LiveFile&& other) noexcept;
  LiveFile& operator=(LiveFile&& other) noexcept;
  ~LiveFile();

  void write(std::string_view text) noexcept;  // REQUIRES: at most kMostText
  // Whether readers find the file, and find its process alive. False when the file was unlinked, or the program
  // closed the descriptor that holds the lock, as programs that close all descriptors do: then a new file is
  // needed.
  bool is_seen() const noexcept;
  void remove_name() noexcept;     // no-op when the name refers to another file by now
  void close_in_child() noexcept;  // else the lock would live as long as the child

  // The text of a live process of this user; else nullopt. The file of a dead process is removed.
  static std::optional<std::string> read(const LiveName& name);
  static std::vector<LiveName> names();

 private:
  static Result<LiveFile> try_make(const LiveName& name) noexcept;
  LiveFile(const LiveName& name, os::Descriptor lock, const os::FileFacts& file, void* mapped) noexcept;
  bool has_lock() const noexcept;

  LiveName name_;
  // Its open file description holds the lock. Closed only while has_lock(): the program may have reused the
  // number.
  os::Descriptor lock_;
  os::FileFacts file_;
  void* mapped_;
};

}  // namespace berth::internal::observe
