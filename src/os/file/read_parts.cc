// SPDX-License-Identifier: Apache-2.0
#include "os/file/read_parts.h"

#include <fcntl.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>

#include "os/inject.h"
#include "os/process/no_cancel.h"

namespace berth::internal::os {

namespace {

constexpr std::size_t kMostAtOnce = 64;  // targets per call: the kernel copies the list; more is no faster

Failure read_failure() noexcept { return {ErrorCode::io_error, errno, "the file cannot be read"}; }

// The position of the next byte in the targets.
class Cursor {
 public:
  explicit Cursor(std::span<const ReadTarget> targets) noexcept : rest_(targets) { skip_full(); }

  bool full() const noexcept { return rest_.empty(); }

  std::size_t list(std::array<iovec, kMostAtOnce>& ranges) const noexcept {
    const std::size_t count = std::min(rest_.size(), ranges.size());
    for (std::size_t i = 0; i < count; ++i) ranges[i] = {rest_[i].data, rest_[i].bytes};
    ranges[0] = {static_cast<std::byte*>(rest_[0].data) + within_, rest_[0].bytes - within_};
    return count;
  }

  void advance(std::size_t bytes) noexcept {
    while (bytes > 0) {
      const std::size_t step = std::min(bytes, rest_[0].bytes - within_);
      within_ += step;
      bytes -= step;
      skip_full();
    }
  }

 private:
  void skip_full() noexcept {
    while (!rest_.empty() && within_ == rest_[0].bytes) {
      rest_ = rest_.subspan(1);
      within_ = 0;
    }
  }

  std::span<const ReadTarget> rest_;
  std::size_t within_ = 0;  // bytes of the first target that are filled
};

}  // namespace

Result<std::size_t> read_parts(int descriptor, std::uint64_t offset, std::span<const ReadTarget> targets) noexcept {
  const NoCancel whole;
  std::array<iovec, kMostAtOnce> ranges;
  std::size_t done = 0;
  for (Cursor cursor(targets); !cursor.full();) {
    const auto count = static_cast<int>(cursor.list(ranges));
    const ssize_t read = must_fail("preadv") ? -1 : preadv(descriptor, ranges.data(), count, static_cast<off_t>(offset + done));
    if (read < 0 && errno == EINTR) continue;
    if (read < 0) return read_failure();
    if (read == 0) break;
    done += static_cast<std::size_t>(read);
    cursor.advance(static_cast<std::size_t>(read));
  }
  return done;
}

Result<Descriptor> reopen_direct(int descriptor) noexcept {
  const NoCancel whole;
  // Through /proc and not by path: the path may name another file by now.
  char self[64];
  std::snprintf(self, sizeof self, "/proc/self/fd/%d", descriptor);
  Descriptor again(must_fail("open") ? -1 : open(self, O_RDONLY | O_CLOEXEC | O_DIRECT));
  if (!again) return Failure{ErrorCode::unsupported, errno, "the file system refuses direct reads"};
  // Some file systems accept the flag and reject the reads.
  alignas(kDirectAlignment) std::byte block[kDirectAlignment];
  const Result<std::size_t> probe = read_direct(again.number(), 0, {block, sizeof block}, 1);
  if (!probe) return Failure{ErrorCode::unsupported, probe.failure().os_error, "the file system refuses direct reads of 4 KiB blocks"};
  return again;
}

Result<std::size_t> read_direct(int descriptor, std::uint64_t offset, const ReadTarget& target, std::size_t least) noexcept {
  const NoCancel whole;
  std::size_t done = 0;
  while (done < least) {
    const ssize_t read = must_fail("pread") ? -1
                                            : pread(descriptor, static_cast<std::byte*>(target.data) + done, target.bytes - done,
                                                    static_cast<off_t>(offset + done));
    if (read < 0 && errno == EINTR) continue;
    if (read < 0) return read_failure();
    done += static_cast<std::size_t>(read);
    if (read == 0 || done % kDirectAlignment != 0) break;  // only the end of the file gives a partial block
  }
  return done;
}

}  // namespace berth::internal::os
