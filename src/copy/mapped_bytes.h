// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>

#include "base/few.h"
#include "copy/span_ref.h"
#include "os/memory/bus_guard.h"

// Memory whose bytes can vanish while they are copied, because it is a mapped file, which anyone may truncate. Whoever
// maps files tells where; a call that touches such a range runs under an os::BusGuard, and what was lost is an
// exception. Any thread.
namespace berth::internal::copy {

class MappedBytes {
 public:
  // Throws unless those bytes are there, and still what they were when they were mapped.
  virtual void require_there(const void* at, std::size_t bytes) const = 0;
  // Throws why that address could not be touched.
  [[noreturn]] virtual void throw_lost(const void* at) const = 0;

 protected:
  MappedBytes() = default;
  MappedBytes(const MappedBytes&) = delete;
  MappedBytes& operator=(const MappedBytes&) = delete;
  ~MappedBytes() = default;  // REQUIRES: it has left

  // Once the range is mapped, and before it is unmapped.
  void enter(const void* begin, std::size_t bytes);
  void leave(const void* begin) noexcept;
};

bool has_mapped_bytes() noexcept;  // there are any: one load

// The mapped files among the operands of one call.
class MappedTouches {
 public:
  void add(const SpanRef& span);
  bool empty() const noexcept { return files_.empty(); }

  // Runs the work, and throws if bytes were lost in it, or are not what they were by now. The work itself goes on
  // when they are: what it has written is to be thrown away.
  template <class Work>
  void run(const Work& work) const {
    if (empty()) return work();
    const void* lost_at = nullptr;
    {
      const os::BusGuard guard(ranges_.all());
      work();
      lost_at = guard.lost_at();
    }
    if (lost_at != nullptr) throw_lost(lost_at);
    require_there();
  }

  void require_there() const;             // as MappedBytes, of all
  void throw_lost(const void* at) const;  // REQUIRES: not empty

 private:
  void add(const MappedBytes& file, const void* begin, std::size_t bytes);

  // A call that touches one file needs no heap for it.
  Few<const MappedBytes*, 1> files_;
  Few<os::TouchedRange, 1> ranges_;  // parallel: what is touched of each
};

}  // namespace berth::internal::copy
