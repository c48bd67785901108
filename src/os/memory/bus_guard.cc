// SPDX-License-Identifier: Apache-2.0
#include "os/memory/bus_guard.h"

#include <algorithm>
#include <array>
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

using Action = struct sigaction;

// How many different actions a program has for SIGBUS in its life; past that there is no guard above the next.
constexpr std::size_t kMostLinks = 32;

// What the program does with the signal where our handler of that number is installed. Each is written once, before
// its handler is installed for the first time.
constinit Action g_below[kMostLinks] = {};
constinit std::atomic<std::size_t> g_links{0};  // written so far

// Which of them a handler passes on to, less its own number, modulo their count: 0 for nearly all.
constinit std::atomic<std::size_t> g_detours[kMostLinks] = {};

std::size_t below_of(std::size_t link) noexcept { return (link + g_detours[link].load(std::memory_order_relaxed)) % kMostLinks; }

bool has_function(const Action& action) noexcept {
  return (action.sa_flags & SA_SIGINFO) != 0 || (action.sa_handler != SIG_DFL && action.sa_handler != SIG_IGN);
}

// The others say nothing about SIGBUS, or are the C library's own.
int flags_of(const Action& action) noexcept {
  constexpr unsigned kFlags = SA_SIGINFO | SA_ONSTACK | SA_RESTART | SA_NODEFER | SA_RESETHAND;
  return static_cast<int>(static_cast<unsigned>(action.sa_flags) & kFlags);
}

bool is_same(const Action& one, const Action& other) noexcept {
  if (!has_function(one) || !has_function(other)) return !has_function(one) && !has_function(other) && one.sa_handler == other.sa_handler;
  if (one.sa_sigaction != other.sa_sigaction || flags_of(one) != flags_of(other)) return false;
  for (int i = 1; i < NSIG; ++i) {
    if (sigismember(&one.sa_mask, i) != sigismember(&other.sa_mask, i)) return false;
  }
  return true;
}

Action default_action() noexcept {
  Action action{};
  action.sa_handler = SIG_DFL;
  return action;
}

// Ends the process as the signal would: the access that raised it is repeated, without a handler.
void end_by(int number, const siginfo_t& info) noexcept {
  const Action none = default_action();
  (void)sigaction(number, &none, nullptr);
  if (info.si_code <= 0) (void)raise(number);  // somebody sent it: there is no access
}

template <std::size_t kLink>
void handle(int number, siginfo_t* info, void* context);

using Handlers = std::array<void (*)(int, siginfo_t*, void*), kMostLinks>;
constexpr Handlers kHandlers = []<std::size_t... kLinks>(std::index_sequence<kLinks...>) { return Handlers{&handle<kLinks>...}; }
(std::make_index_sequence<kMostLinks>());

// Which of ours it is; kMostLinks: none.
std::size_t link_of(const Action& action) noexcept {
  if ((action.sa_flags & SA_SIGINFO) == 0) return kMostLinks;
  return static_cast<std::size_t>(std::ranges::find(kHandlers, action.sa_sigaction) - kHandlers.begin());
}

bool is_ours(const Action& action) noexcept { return link_of(action) != kMostLinks; }

// As the kernel does when it calls such a handler, unless another handler calls it.
void reset(std::size_t link, int number) noexcept {
  Action found{};
  if (sigaction(number, nullptr, &found) != 0 || link_of(found) != link) return;
  const Action none = default_action();
  (void)sigaction(number, &none, nullptr);
}

// Not noexcept: a program's handler may throw where the program is compiled for that.
void pass_on(std::size_t link, int number, siginfo_t* info, void* context) {
  (void)g_links.load(std::memory_order_acquire);  // acquire: pairs with the release of Chain
  const Action& below = g_below[below_of(link)];
  if (!has_function(below)) {
    // An access cannot be ignored.
    if (below.sa_handler == SIG_DFL || info->si_code > 0) end_by(number, *info);
    return;
  }
  if ((flags_of(below) & static_cast<int>(SA_RESETHAND)) != 0) reset(link, number);
  (below.sa_flags & SA_SIGINFO) != 0 ? below.sa_sigaction(number, info, context) : below.sa_handler(number);
}

template <std::size_t kLink>
void handle(int number, siginfo_t* info, void* context) {
  const int kept = errno;
  if (!BusGuard::abandons(info, context)) pass_on(kLink, number, info, context);
  errno = kept;
}

// Our handlers. Each stands for one action of the program, for good: it is installed with that one's mask and flags, and
// passes on to it what is no guard's. So it does not matter which handlers a program has put above ours, remembers,
// puts back or raises the signal for again: all goes as if the action itself were there.
class Chain {
 public:
  // One of ours is on top from here on, unless the system refuses.
  void install() noexcept {
    Action found{};
    if (must_fail("sigaction") || sigaction(SIGBUS, nullptr, &found) != 0 || is_ours(found)) return;
    const Lock lock(mutex_);
    put_above(found);
  }

 private:
  // The program may install others meanwhile. What ours displaces is what it is to stand for; if it stands for another
  // one, it is replaced again. Who has put a handler above it until then believes that it stands for what it displaced.
  void put_above(const Action& found) noexcept BERTH_REQUIRES(mutex_) {
    Action below = found;
    Action expected = found;
    for (bool is_mended = false;; is_mended = true) {
      const Action top = above(below);
      if (!is_mended && !is_ours(top)) return;
      Action displaced{};
      if (must_fail("sigaction") || sigaction(SIGBUS, &top, &displaced) != 0 || is_same(displaced, expected)) return;
      if (is_mended) redirect(expected, below);
      expected = top;
      below = displaced;
    }
  }

  // That handler of ours stands for another action from here on. What it stood for may need another then, so that this
  // ends when half of them are used: a program that never stops installing handlers is to lose none.
  void redirect(const Action& handler, const Action& below) noexcept BERTH_REQUIRES(mutex_) {
    if (g_links.load(std::memory_order_relaxed) >= kMostLinks / 2) return;
    const std::size_t from = link_of(handler);
    const std::size_t to = link_of(above(below));
    if (from == kMostLinks || to == kMostLinks) return;
    g_detours[from].store(below_of(to) + kMostLinks - from, std::memory_order_relaxed);
  }

  // What stands for that action: itself, if it is ours or there is no other.
  Action above(const Action& below) noexcept BERTH_REQUIRES(mutex_) {
    if (is_ours(below)) return below;
    const std::size_t count = g_links.load(std::memory_order_relaxed);
    std::size_t link = 0;
    while (link < count && (below_of(link) != link || !is_same(g_below[link], below))) ++link;
    if (link == kMostLinks) return below;
    if (link == count) {
      g_below[link] = below;
      g_links.store(count + 1, std::memory_order_release);  // release: it is written
    }
    return handler_for(link);
  }

  static Action handler_for(std::size_t link) noexcept {
    Action action = g_below[link];
    const int kept = flags_of(action) & static_cast<int>(~static_cast<unsigned>(SA_RESETHAND));
    // Where it stands for no function: on the alternate stack, which runtimes with small stacks require.
    action.sa_flags = has_function(action) ? kept | SA_SIGINFO : SA_SIGINFO | SA_ONSTACK | SA_RESTART;
    action.sa_sigaction = kHandlers[link];
    return action;
  }

  Mutex mutex_;
};

// Never destroyed: guards may be made while the process exits.
Chain& chain() {
  static auto* const made = new Chain;
  return *made;
}
[[maybe_unused]] const Chain& g_chain_at_load = chain();

}  // namespace

bool TouchedRange::is_near(const void* address) const noexcept { return is_near(address, page_bytes()); }

bool TouchedRange::is_near(const void* address, std::size_t unit) const noexcept {
  const auto page = ~(static_cast<std::uintptr_t>(unit) - 1);
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

BusGuard::Installed::Installed() noexcept { chain().install(); }

BusGuard::BusGuard(std::span<const TouchedRange> ranges) noexcept : ranges_(ranges) {}
BusGuard::~BusGuard() = default;

const void* BusGuard::covered(const void* address, std::size_t unit) const noexcept {
  for (const TouchedRange& range : ranges_) {
    if (range.is_near(address, unit)) return std::max(address, range.begin, std::less<>());
  }
  return nullptr;
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

bool BusGuard::abandons(void* info, void* context) noexcept {
  const auto& told = *static_cast<siginfo_t*>(info);
  Frame* const frame = t_frame;
  // Somebody sent it, or memory failed that nobody touches now.
  if (frame == nullptr || told.si_code <= 0 || told.si_code == BUS_MCEERR_AO) return false;
  const std::size_t failed = told.si_code == BUS_MCEERR_AR ? std::size_t{1} << told.si_addr_lsb : 1;  // of a huge page, all
  const void* const lost_at = frame->guard->covered(told.si_addr, std::max(failed, page_bytes()));
  const auto leave = [](void* at) noexcept { _longjmp(static_cast<Frame*>(at)->place, 1); };
  if (lost_at == nullptr || !resume_at(*static_cast<ucontext_t*>(context), leave, frame)) return false;
  frame->lost_at = lost_at;
  return true;
}

}  // namespace berth::internal::os
