// SPDX-License-Identifier: Apache-2.0
#include "copy/host/workers.h"

#include <algorithm>
#include <atomic>
#include <charconv>
#include <new>
#include <string>
#include <system_error>
#include <thread>

#include "base/float_mode.h"
#include "base/text.h"
#include "berth/base/error.h"
#include "os/lock/mutex.h"
#include "os/memory/bus_guard.h"
#include "os/process/fork.h"
#include "os/system.h"

namespace berth::internal::copy {

namespace {

constexpr int kMostByDefault = 16;

// One call of run, on the caller's stack. It is in the list until that call returns.
struct Job {
  const workers::Run run;
  void* const context;
  const std::size_t items;
  const int most_helpers;
  std::atomic<std::size_t> next{0};  // items handed out; may exceed `items`. Relaxed: the mutex provides the
                                     // ordering
  int helpers = 0;                   // workers running it; guarded by the crew's mutex
  Job* after = nullptr;              // the list; guarded by the crew's mutex
  os::BusGuard* const guard = os::BusGuard::current();

  bool has_items() const noexcept { return next.load(std::memory_order_relaxed) < items; }
  void work() noexcept {
    for (std::size_t item; (item = next.fetch_add(1, std::memory_order_relaxed)) < items;) run(context, item);
  }
};

class Crew {
 public:
  void run(Job& job) noexcept {
    if (!enlist(job)) return job.work();
    wanted_.notify_all();
    job.work();
    dismiss(job);
  }

 private:
  // Publishes the job to the workers, and starts workers until there are enough. Returns false if there are
  // none.
  bool enlist(Job& job) noexcept {
    int missing = 0;
    {
      const os::Lock lock(mutex_);
      if (origin_.is_inherited()) {  // the workers, and the threads that had jobs, exist only in the parent
        origin_ = {};
        jobs_ = nullptr;
        started_ = 0;
      }
      missing = job.most_helpers - started_;
      started_ = std::max(started_, job.most_helpers);
      job.after = jobs_;
      jobs_ = &job;
    }
    int refused = 0;
    for (int i = 0; i < missing; ++i) refused += start_worker() ? 0 : 1;
    if (refused == 0) return true;
    bool any = false;
    {
      const os::Lock lock(mutex_);
      started_ -= refused;
      any = started_ != 0;
    }
    if (!any) dismiss(job);
    return any;
  }

  // Removes the job from the list and waits for the workers that still run it.
  void dismiss(Job& job) noexcept {
    const os::Lock lock(mutex_);
    Job** link = &jobs_;
    while (*link != &job) link = &(*link)->after;
    *link = job.after;
    while (job.helpers != 0) left_.wait(mutex_);
  }

  bool start_worker() noexcept {
    try {
      std::thread([this] { help(); }).detach();
      return true;
    } catch (const std::system_error&) {  // the caller works alone
    } catch (const std::bad_alloc&) {
    }
    return false;
  }

  void help() noexcept {
    const FloatMode mode;  // a thread inherits the mode of the thread that started it
    for (;;) {
      Job* const job = take();
      {
        const os::BusGuard::OnThread under(job->guard);
        job->work();
      }
      bool last = false;
      {
        const os::Lock lock(mutex_);
        last = --job->helpers == 0;
      }
      if (last) left_.notify_all();
    }
  }

  Job* take() noexcept {
    const os::Lock lock(mutex_);
    for (;;) {
      for (Job* job = jobs_; job != nullptr; job = job->after) {
        if (job->helpers < job->most_helpers && job->has_items()) {
          ++job->helpers;
          return job;
        }
      }
      wanted_.wait(mutex_);
    }
  }

  os::Mutex mutex_;
  os::Condition wanted_;  // there is a new job
  os::Condition left_;    // the last helper of a job has left it
  Job* jobs_ BERTH_GUARDED_BY(mutex_) = nullptr;
  int started_ BERTH_GUARDED_BY(mutex_) = 0;
  os::Origin origin_ BERTH_GUARDED_BY(mutex_);  // of the jobs and the workers
};

// Never destroyed: its workers outlive main.
Crew& crew() {
  static auto* const made = new Crew;
  return *made;
}

// Made when the library is loaded, so that no copy can fail on this allocation.
[[maybe_unused]] const Crew& g_crew_at_load = crew();

int threads_from_environment() {
  const auto value = os::environment("BERTH_THREADS");
  if (!value) return std::clamp(os::cpu_count(), 1, kMostByDefault);
  int threads = 0;
  const char* const end = value->data() + value->size();
  const auto [rest, error] = std::from_chars(value->data(), end, threads);
  if (error != std::errc() || rest != end || threads < 1 || threads > kMostCopyThreads) {
    throw ArgumentError(ErrorCode::invalid_argument,
                        {text::join("the environment variable BERTH_THREADS=", text::printable(*value)), "it is not a number of threads",
                         text::join("use a number from 1 to ", kMostCopyThreads)},
                        {{"name", "BERTH_THREADS"}, {"value", text::printable(*value)}});
  }
  return threads;
}

std::atomic<int> g_threads{0};  // 0: not determined yet

}  // namespace

namespace workers {

void run(std::size_t items, int threads, Run run, void* context) noexcept {
  const std::size_t useful = std::min(items, static_cast<std::size_t>(threads));
  Job job{run, context, items, useful == 0 ? 0 : static_cast<int>(useful) - 1};
  if (useful <= 1) return job.work();
  crew().run(job);
}

}  // namespace workers

}  // namespace berth::internal::copy

namespace berth {

using namespace internal;
using namespace internal::copy;

int copy_threads() {
  const int known = g_threads.load(std::memory_order_relaxed);  // relaxed: no other data depends on it
  if (known != 0) [[likely]]
    return known;
  int unset = 0;
  const int read = threads_from_environment();
  return g_threads.compare_exchange_strong(unset, read, std::memory_order_relaxed) ? read : unset;
}

void set_copy_threads(int threads) {
  if (threads < 1 || threads > kMostCopyThreads) {
    throw ArgumentError(ErrorCode::limit_exceeded,
                        {text::join("copies by ", threads, " threads"), text::join("the number must be from 1 to ", kMostCopyThreads),
                         "use a number of processors of this machine"},
                        {{"threads", threads}, {"limit", kMostCopyThreads}});
  }
  g_threads.store(threads, std::memory_order_relaxed);
}

}  // namespace berth
