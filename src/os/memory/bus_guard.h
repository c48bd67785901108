// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstddef>
#include <memory>
#include <span>
#include <type_traits>

// Survives bus errors: an access to a mapped file whose bytes are gone raises SIGBUS, which ends the process. While
// a BusGuard lives, one that happens in `touch`, within its ranges, abandons that work instead, and is told by
// lost_at. Every other SIGBUS goes where it would have gone without berth.
//
//     BusGuard guard(ranges);
//     BusGuard::touch([&] { std::memcpy(target, mapped, bytes); });
//     if (guard.lost_at() != nullptr) …             // the target is written in part
//
// The first guard installs a handler, which stays, and every guard looks whether it is still there: one that a program
// has installed since is put below (docs/decisions/0034-survive-a-mapped-byte-that-vanishes.md). On processors other
// than x86-64 and ARM64, and where the system refuses to install a handler, a guard does nothing.
namespace berth::internal::os {

struct TouchedRange {
  const void* begin;
  std::size_t bytes;

  // Whole pages: a vector load may begin in front of the range.
  bool is_near(const void* address) const noexcept;
  bool is_near(const void* address, std::size_t unit) const noexcept;  // whole units, a power of 2
};

// Made and destroyed by one thread; other threads work under it with an OnThread.
class BusGuard {
  struct Frame;

 public:
  // The calling thread works under a guard, or under none, while this lives: SIGBUS is not blocked then, because a
  // blocked one ends the process without asking a handler.
  class OnThread {
   public:
    explicit OnThread(BusGuard* guard) noexcept;
    ~OnThread();
    OnThread(const OnThread&) = delete;
    OnThread& operator=(const OnThread&) = delete;

   private:
    BusGuard* const outer_;
    bool was_blocked_ = false;
  };

  explicit BusGuard(std::span<const TouchedRange> ranges) noexcept;  // which outlive the guard
  ~BusGuard();
  BusGuard(const BusGuard&) = delete;
  BusGuard& operator=(const BusGuard&) = delete;

  // An address that was not there, or null. Work by other threads must have ended.
  const void* lost_at() const noexcept { return lost_at_.load(std::memory_order_relaxed); }

  static BusGuard* current() noexcept { return t_current; }  // of this thread; null: none

  // Runs the work, or as much of it as can be; skips it once anything is lost. REQUIRES: it is a plain loop over
  // memory: what it would release or unlock when it returns stays so when it is abandoned. The floating-point
  // mode is restored.
  template <class Work>
  static void touch(Work&& work) noexcept {
    if (t_current == nullptr) [[likely]]
      return static_cast<void>(work());
    using Callable = std::remove_reference_t<Work>;
    t_current->run([](void* callable) noexcept { static_cast<void>((*static_cast<Callable*>(callable))()); },
                   const_cast<void*>(static_cast<const void*>(std::addressof(work))));
  }

  // For the handler: whether that signal is of a work under way on this thread, which then goes on behind it.
  static bool abandons(void* info, void* context) noexcept;

 private:
  static constinit thread_local BusGuard* t_current [[gnu::tls_model("initial-exec")]];
  static constinit thread_local Frame* t_frame [[gnu::tls_model("initial-exec")]];

  void run(void (*work)(void*) noexcept, void* context) noexcept;
  const void* covered(const void* address, std::size_t unit) const noexcept;  // within a range; null: none

  const std::span<const TouchedRange> ranges_;
  std::atomic<const void*> lost_at_{nullptr};  // relaxed: read when the threads have ended
  struct Installed {
    Installed() noexcept;
  } installed_;
  const OnThread here_{this};  // last: the signal is let through when there is a handler
};

}  // namespace berth::internal::os
