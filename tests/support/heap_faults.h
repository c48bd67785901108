// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>

// Makes `operator new` fail on purpose, or tells of it. Linked into every test program; off unless armed. Only the arming
// thread is affected.
namespace berth::testing {

// While it lives, the nth allocation of this thread (1 is the first) throws std::bad_alloc, or returns null
// from the nothrow form.
class FailNthNew {
 public:
  explicit FailNthNew(std::uint64_t nth) noexcept;
  ~FailNthNew();
  FailNthNew(const FailNthNew&) = delete;
  FailNthNew& operator=(const FailNthNew&) = delete;

  bool happened() const noexcept;  // whether the nth allocation was reached
};

// While it lives, `hook` runs before each allocation of this thread, except for the hook's own: a way to act in the
// middle of a call.
class AtNew {
 public:
  explicit AtNew(std::function<void()> hook);
  ~AtNew();
  AtNew(const AtNew&) = delete;
  AtNew& operator=(const AtNew&) = delete;

 private:
  std::function<void()> hook_;
};

// While it lives, counts the bytes of this thread's heap: `peak_bytes` is the most that there were more than when it
// began, by the sizes that malloc really gave. One at a time.
class PeakOfNews {
 public:
  PeakOfNews() noexcept;
  std::int64_t peak_bytes() const noexcept;
};

// Allocations of this thread through operator new, since the thread began, that it has not freed.
std::int64_t live_news() noexcept;

}  // namespace berth::testing
