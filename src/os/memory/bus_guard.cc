// SPDX-License-Identifier: Apache-2.0
#include "os/memory/bus_guard.h"

#include <cerrno>
#include <csetjmp>
#include <csignal>
#include <cstdint>
#include <functional>
#include <utility>

#include "base/annotations.h"
#include "base/float_mode.h"
#include "os/inject.h"
#include "os/lock/mutex.h"
#include "os/memory/memory.h"
#include "os/memory/resume_at.h"
#include "os/process/fork.h"

namespace berth::internal::os {

// A work under way, on the stack of its thread.
struct BusGuard::Frame {
  BusGuard* const guard;
  Frame* const outer;
  const void* lost_at = nullptr;
  std::jmp_buf place = {};
};

constinit thread_local BusGuard* BusGuard::t_current [[gnu::tls_model("initial-exec")]] = nullptr;
constinit thread_local BusGuard::Frame* BusGuard::t_frame [[gnu::tls_model("initial-exec")]] = nullptr;

namespace {

void handle(int number, siginfo_t* info, void* context) { BusGuard::on_signal(number, info, context); }

bool has_function(const struct sigaction& action) noexcept {
  return (action.sa_flags & SA_SIGINFO) != 0 || (action.sa_handler != SIG_DFL && action.sa_handler != SIG_IGN);
}

bool is_ours(const struct sigaction& action) noexcept { return (action.sa_flags & SA_SIGINFO) != 0 && action.sa_sigaction == handle; }

// What the program does with a SIGBUS. Written with the mutex of Handler, but for the handler itself, and read by
// handlers: a new one goes where none is in use.
class Disposition {
 public:
  void set(const struct sigaction& action) noexcept {
    const std::size_t unused = 1 - used_.load(std::memory_order_relaxed);
    values_[unused] = action;
    used_.store(unused, std::memory_order_release);  // release: it is written
  }
  const struct sigaction& get() const noexcept { return values_[used_.load(std::memory_order_acquire)]; }

 private:
  struct sigaction values_[2] = {};  // zero is SIG_DFL
  std::atomic<std::size_t> used_{0};
};

class Handler {
 public:
  void need() noexcept {
    const Lock lock(mutex_);
    if (origin_.is_inherited()) {  // the guards are those of the parent's other threads
      origin_ = {};
      guards_.store(0, std::memory_order_relaxed);
    }
    install(guards_.fetch_add(1, std::memory_order_relaxed) != 0);
  }

  void drop() noexcept {
    const Lock lock(mutex_);
    if (guards_.fetch_sub(1, std::memory_order_relaxed) == 1 && installed_) put_back();
  }

  void pass_on(int number, siginfo_t* info, ucontext_t* context) noexcept;

 private:
  void install(bool is_in_use) noexcept BERTH_REQUIRES(mutex_) {
    struct sigaction found;
    if (must_fail("sigaction") || sigaction(SIGBUS, nullptr, &found) != 0) return;
    if (is_ours(found)) return static_cast<void>(installed_ = true);  // another guard's, or a fork left it there
    if (is_in_use && installed_) note_replaced();
    before_.set(found);
    struct sigaction ours {};
    ours.sa_sigaction = handle;
    ours.sa_flags = SA_SIGINFO | SA_ONSTACK;  // on the alternate stack: runtimes with small stacks require it
    installed_ = sigaction(SIGBUS, &ours, nullptr) == 0;
  }

  void put_back() noexcept BERTH_REQUIRES(mutex_) {
    installed_ = false;
    struct sigaction found;
    if (sigaction(SIGBUS, &before_.get(), &found) != 0 || is_ours(found)) return;
    (void)sigaction(SIGBUS, &found, nullptr);  // the program has installed another meanwhile: it stays
    note_replaced();
  }

  // A handler that replaced ours believes that ours was there before it, and may pass signals on to it for good.
  void note_replaced() noexcept BERTH_REQUIRES(mutex_) {
    const struct sigaction& displaced = before_.get();
    std::size_t count = below_count_.load(std::memory_order_relaxed);
    for (std::size_t i = 0; i < count; ++i) {
      if (has_function(displaced) == has_function(below_[i]) && displaced.sa_sigaction == below_[i].sa_sigaction) count = i;
    }
    if (count == kMostBelow) return;
    below_[count] = displaced;
    below_count_.store(count + 1, std::memory_order_release);  // release: it is written
  }

  struct sigaction next(std::size_t entered) const noexcept;

  // A signal that is being passed on. Its frame tells a handler that passed it on to ours from a later signal, after a
  // handler that never returned.
  struct Passing {
    const void* context = nullptr;
    const void* frame = nullptr;
    std::size_t entered = 0;  // how often ours was, for this signal, before this time
  };
  static constinit thread_local Passing t_passing [[gnu::tls_model("initial-exec")]];
  static constexpr std::size_t kMostBelow = 8;  // more handlers than a program installs in the middle of our calls

  Mutex mutex_;
  std::atomic<std::size_t> guards_{0};  // changed with the mutex; relaxed: handlers need no more than a recent value
  bool installed_ BERTH_GUARDED_BY(mutex_) = false;
  Origin origin_ BERTH_GUARDED_BY(mutex_);
  Disposition before_;                  // what ours replaced
  struct sigaction below_[kMostBelow];  // what ours had replaced each time that the program replaced ours, oldest first
  std::atomic<std::size_t> below_count_{0};
};

constinit thread_local Handler::Passing Handler::t_passing [[gnu::tls_model("initial-exec")]] = {};

// Never destroyed: a handler may run while the process exits.
Handler& handler() {
  static auto* const made = new Handler;
  return *made;
}
[[maybe_unused]] const Handler& g_handler_at_load = handler();

// Ends the process as the signal would: the access that raised it is repeated, without a handler.
void end_by(int number, const siginfo_t& info) noexcept {
  struct sigaction none {};
  none.sa_handler = SIG_DFL;
  (void)sigaction(number, &none, nullptr);
  if (info.si_code <= 0) (void)raise(number);  // somebody sent it: there is no access
}

// As the kernel does when it calls a handler; returning from ours restores the mask.
void block_for(const struct sigaction& action, int number, const ucontext_t& context) noexcept {
  sigset_t blocked = context.uc_sigmask;
  for (int i = 1; i < NSIG; ++i) {
    if (sigismember(&action.sa_mask, i) == 1) sigaddset(&blocked, i);
  }
  if ((action.sa_flags & SA_NODEFER) == 0) sigaddset(&blocked, number);
  pthread_sigmask(SIG_SETMASK, &blocked, nullptr);
}

// The one below ours: the first time what ours replaced, when it comes back the one below that, and so on.
struct sigaction Handler::next(std::size_t entered) const noexcept {
  const bool is_on_top = guards_.load(std::memory_order_relaxed) != 0;
  if (is_on_top && entered == 0) return before_.get();
  const std::size_t count = below_count_.load(std::memory_order_acquire);
  const std::size_t depth = is_on_top ? entered : entered + 1;
  if (depth <= count) return below_[count - depth];
  const struct sigaction none {};
  return count == 0 && entered == 0 ? before_.get() : none;
}

void Handler::pass_on(int number, siginfo_t* info, ucontext_t* context) noexcept {
  Passing here{context, &here};
  if (t_passing.context == context && std::less<>()(here.frame, t_passing.frame)) here.entered = t_passing.entered + 1;
  const struct sigaction action = next(here.entered);
  if (!has_function(action)) {
    // An access cannot be ignored.
    if (action.sa_handler == SIG_DFL || info->si_code > 0) end_by(number, *info);
    return;
  }
  if ((action.sa_flags & static_cast<int>(SA_RESETHAND)) != 0) before_.set({});
  const Passing outer = std::exchange(t_passing, here);
  block_for(action, number, *context);
  (action.sa_flags & SA_SIGINFO) != 0 ? action.sa_sigaction(number, info, context) : action.sa_handler(number);
  t_passing = outer;
}

}  // namespace

bool TouchedRange::is_near(const void* address) const noexcept {
  const auto page = ~(static_cast<std::uintptr_t>(page_bytes()) - 1);
  const auto first = reinterpret_cast<std::uintptr_t>(begin);
  const auto at = reinterpret_cast<std::uintptr_t>(address) & page;
  return bytes != 0 && at >= (first & page) && at <= ((first + bytes - 1) & page);
}

BusGuard::OnThread::OnThread(BusGuard* guard) noexcept : outer_(std::exchange(t_current, guard)) {
  if (guard == nullptr) return;
  sigset_t bus;
  sigset_t before;
  sigemptyset(&bus);
  sigaddset(&bus, SIGBUS);
  was_blocked_ = pthread_sigmask(SIG_UNBLOCK, &bus, &before) == 0 && sigismember(&before, SIGBUS) == 1;
}

BusGuard::OnThread::~OnThread() {
  t_current = outer_;
  if (!was_blocked_) return;
  sigset_t bus;
  sigemptyset(&bus);
  sigaddset(&bus, SIGBUS);
  pthread_sigmask(SIG_BLOCK, &bus, nullptr);
}

BusGuard::Installed::Installed() noexcept { handler().need(); }
BusGuard::Installed::~Installed() { handler().drop(); }

BusGuard::BusGuard(std::span<const TouchedRange> ranges) noexcept : ranges_(ranges) {}
BusGuard::~BusGuard() = default;

bool BusGuard::covers(const void* address) const noexcept {
  for (const TouchedRange& range : ranges_) {
    if (range.is_near(address)) return true;
  }
  return false;
}

// In a function of its own: what it calls is opaque to the compiler, so all of the work is between the two.
void BusGuard::run(void (*work)(void*) noexcept, void* context) noexcept {
  if (lost_at() != nullptr) return;
  const base::FloatMode mode;
  Frame frame{.guard = this, .outer = t_frame};
  if (_setjmp(frame.place) == 0) {
    t_frame = &frame;
    work(context);
  }
  t_frame = frame.outer;
  const void* none = nullptr;
  if (frame.lost_at != nullptr) lost_at_.compare_exchange_strong(none, frame.lost_at, std::memory_order_relaxed);
}

void BusGuard::on_signal(int number, void* info, void* context) noexcept {
  auto& told = *static_cast<siginfo_t*>(info);
  auto& machine = *static_cast<ucontext_t*>(context);
  Frame* const frame = t_frame;
  const bool expected = frame != nullptr && told.si_code > 0 && frame->guard->covers(told.si_addr);
  const auto leave = [](void* at) noexcept { _longjmp(static_cast<Frame*>(at)->place, 1); };
  if (expected && resume_at(machine, leave, frame)) {
    frame->lost_at = told.si_addr;
    return;
  }
  const int kept = errno;
  handler().pass_on(number, &told, &machine);
  errno = kept;
}

}  // namespace berth::internal::os
