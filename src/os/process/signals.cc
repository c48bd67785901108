// SPDX-License-Identifier: Apache-2.0
#include "os/process/signals.h"

#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <charconv>

#include "os/inject.h"
#include "os/process/no_signals.h"

namespace berth::internal::os {

namespace {

// Wakes the thread. A semaphore and not a file descriptor: a program may close all descriptors, and reuse their
// numbers.
sem_t g_wake;
std::atomic<pid_t> g_process{0};
std::atomic<void (*)() noexcept> g_work{nullptr};

Failure failed(const char* why) noexcept { return {ErrorCode::device_error, errno, why}; }

void handle(int) {
  if (getpid() != g_process.load(std::memory_order_relaxed)) return;  // a child has no such thread
  const int kept = errno;
  (void)sem_post(&g_wake);  // fails only when the counter overflows, and then the thread is awake
  errno = kept;
}

void* wait_for_signals(void*) {
  while (true) {
    if (sem_wait(&g_wake) != 0) continue;  // interrupted
    while (sem_trywait(&g_wake) == 0) {
    }  // coalesce signals that came together
    g_work.load(std::memory_order_relaxed)();
  }
}

// All signals are blocked on this thread: they are for the program's own threads.
Status start_thread() noexcept {
  const NoSignals quiet;
  pthread_t thread;
  const int error = must_fail("pthread_create") ? errno : pthread_create(&thread, nullptr, wait_for_signals, nullptr);
  if (error != 0) return Failure{ErrorCode::device_error, error, "no thread can be started"};
  pthread_detach(thread);
  return {};
}

struct NamedSignal {
  std::string_view name;
  int number;
};
constexpr NamedSignal kSignals[] = {{"HUP", SIGHUP},   {"USR1", SIGUSR1}, {"USR2", SIGUSR2}, {"ALRM", SIGALRM},   {"CONT", SIGCONT},
                                    {"URG", SIGURG},   {"PROF", SIGPROF}, {"IO", SIGIO},     {"WINCH", SIGWINCH}, {"PWR", SIGPWR},
                                    {"QUIT", SIGQUIT}, {"TERM", SIGTERM}, {"INT", SIGINT}};

}  // namespace

std::optional<int> signal_by_name(std::string_view name) noexcept {
  if (name.starts_with("SIG")) name.remove_prefix(3);
  int number = 0;
  const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), number);
  const bool is_number = error == std::errc() && end == name.data() + name.size();
  for (const NamedSignal& one : kSignals) {
    if (is_number ? one.number == number : one.name == name) return one.number;
  }
  return std::nullopt;
}

Status run_on_signal(int number, void (*work)() noexcept) noexcept {
  struct sigaction before {};
  if (must_fail("sigaction") || sigaction(number, nullptr, &before) != 0) return failed("the signal's handler cannot be queried");
  pid_t nobody = 0;
  if (before.sa_handler != SIG_DFL && before.sa_handler != SIG_IGN)
    return Failure{ErrorCode::already_exists, 0, "the program handles that signal itself"};
  if (!g_process.compare_exchange_strong(nobody, getpid()))
    return Failure{ErrorCode::already_exists, 0, "another signal is already in use"};
  static const int counter = sem_init(&g_wake, 0, 0);  // once: an earlier thread may be waiting on it
  (void)counter;                                       // fails only for counts above SEM_VALUE_MAX
  g_work.store(work);
  const Status started = start_thread();
  struct sigaction action {};
  action.sa_handler = handle;
  action.sa_flags = SA_RESTART;
  if (started && !must_fail("sigaction") && sigaction(number, &action, nullptr) == 0) return {};
  const Status done = started ? Status(failed("the signal cannot be handled")) : started;
  g_process.store(0);
  return done;
}

}  // namespace berth::internal::os
