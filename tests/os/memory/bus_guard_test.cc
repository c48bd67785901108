// SPDX-License-Identifier: Apache-2.0
#include "os/memory/bus_guard.h"

#include <gtest/gtest.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cfenv>
#include <cstring>
#include <optional>
#include <thread>

#include "base/float_mode.h"
#include "base/sanitizers.h"
#include "os/inject.h"
#include "os/memory/memory.h"
#include "support/scale.h"

namespace berth::internal::os {
namespace {

constexpr std::size_t kPages = 4;

// A mapped file of some pages, which can be cut.
class CutFile {
 public:
  CutFile() : file_(memfd_create("cut", MFD_CLOEXEC)), bytes_(kPages * page_bytes()) {
    EXPECT_EQ(ftruncate(file_, static_cast<off_t>(bytes_)), 0);
    data_ = static_cast<char*>(mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_SHARED, file_, 0));
    std::memset(data_, 7, bytes_);
  }
  ~CutFile() {
    munmap(data_, bytes_);
    close(file_);
  }
  CutFile(const CutFile&) = delete;
  CutFile& operator=(const CutFile&) = delete;

  void cut() const { EXPECT_EQ(ftruncate(file_, static_cast<off_t>(page_bytes())), 0); }
  volatile char* data() const { return data_; }
  TouchedRange range() const { return {data_, bytes_}; }
  // Touches every page.
  int sum() const {
    int sum = 0;
    for (std::size_t i = 0; i < kPages; ++i) sum += data()[i * page_bytes()];
    return sum;
  }

 private:
  int file_;
  std::size_t bytes_;
  char* data_;
};

// What the program itself does with SIGBUS: notes it, and leaves to where it was set.
sigjmp_buf g_place;
volatile int g_seen = 0;
volatile int g_code = 0;

void note_and_leave(int, siginfo_t* info, void*) {
  g_seen = g_seen + 1;
  g_code = info->si_code;
  siglongjmp(g_place, 1);
}

// Puts a page there.
void note_and_mend(int, siginfo_t* info, void*) {
  g_seen = g_seen + 1;
  g_code = info->si_code;
  const auto page = reinterpret_cast<std::uintptr_t>(info->si_addr) & ~(page_bytes() - 1);
  mmap(reinterpret_cast<void*>(page), page_bytes(), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
}

struct sigaction action_of(void (*function)(int, siginfo_t*, void*), int flags = 0) {
  struct sigaction action {};
  action.sa_sigaction = function;
  action.sa_flags = SA_SIGINFO | flags;
  sigaddset(&action.sa_mask, SIGUSR2);
  return action;
}

class OsBusGuard : public ::testing::Test {
 protected:
  void SetUp() override {
    sigaction(SIGBUS, nullptr, &before_);
    g_seen = 0;
  }
  void TearDown() override {
    set_injector(nullptr);
    sigaction(SIGBUS, &before_, nullptr);
  }
  static struct sigaction installed() {
    struct sigaction found {};
    sigaction(SIGBUS, nullptr, &found);
    return found;
  }
  struct sigaction before_ {};
};

TEST_F(OsBusGuard, AbandonsTheWorkThatTouchesWhatIsGone) {
  const CutFile file;
  const TouchedRange range = file.range();
  const BusGuard guard({&range, 1});
  int sum = 0;
  BusGuard::touch([&] { sum = file.sum(); });
  EXPECT_EQ(sum, 7 * static_cast<int>(kPages));
  EXPECT_EQ(guard.lost_at(), nullptr);
  file.cut();
  bool ended = false;
  BusGuard::touch([&] {
    sum = file.sum();
    ended = true;
  });
  EXPECT_FALSE(ended);
  EXPECT_EQ(guard.lost_at(), static_cast<const char*>(range.begin) + page_bytes());
  BusGuard::touch([&] { ended = true; });
  EXPECT_FALSE(ended) << "nothing runs once something is lost";
}

TEST_F(OsBusGuard, WorksOnceMoreAndInsideAnother) {
  const CutFile file;
  file.cut();
  const TouchedRange range = file.range();
  for (int i = 0; i < 100; ++i) {
    const BusGuard outer({});
    {
      const BusGuard guard({&range, 1});
      BusGuard::touch([&] { (void)file.sum(); });
      EXPECT_NE(guard.lost_at(), nullptr);
    }
    bool ran = false;
    BusGuard::touch([&] { BusGuard::touch([&] { ran = true; }); });
    EXPECT_TRUE(ran);
  }
}

TEST_F(OsBusGuard, StaysAndStandsForWhatTheProgramDid) {
  for (const int flags : {0, SA_ONSTACK | SA_NODEFER, SA_RESTART}) {
    struct sigaction own = action_of(note_and_leave, flags);
    sigaction(SIGBUS, &own, nullptr);
    { const BusGuard guard({}); }
    EXPECT_NE(installed().sa_sigaction, note_and_leave);
    const auto kept = static_cast<unsigned>(SA_ONSTACK | SA_NODEFER | SA_RESTART | SA_RESETHAND);
    EXPECT_EQ(static_cast<unsigned>(installed().sa_flags) & kept, static_cast<unsigned>(flags));
    const struct sigaction found = installed();
    EXPECT_EQ(sigismember(&found.sa_mask, SIGUSR2), 1);
    g_seen = 0;
    if (sigsetjmp(g_place, 1) == 0) raise(SIGBUS);
    EXPECT_EQ(g_seen, 1);
  }
  struct sigaction own = action_of(note_and_leave);
  sigaction(SIGBUS, &own, nullptr);
  { const BusGuard guard({}); }
  const auto ours = installed().sa_sigaction;
  { const BusGuard guard({}); }
  EXPECT_EQ(installed().sa_sigaction, ours);
  signal(SIGBUS, SIG_DFL);
  { const BusGuard guard({}); }
  EXPECT_NE(installed().sa_sigaction, ours) << "that one stands for what was there before";
}

TEST_F(OsBusGuard, WhatItDoesNotCoverIsTheProgramsOwn) {
  struct sigaction own = action_of(note_and_mend);
  sigaction(SIGBUS, &own, nullptr);
  const CutFile file;
  const CutFile other;
  file.cut();
  const TouchedRange range = other.range();
  const BusGuard guard({&range, 1});
  int sum = 0;
  BusGuard::touch([&] { sum = file.sum(); });
  EXPECT_EQ(sum, 7) << "what that handler put there";
  EXPECT_EQ(g_seen, static_cast<int>(kPages) - 1) << "another range";
  EXPECT_EQ(g_code, BUS_ADRERR);
  own = action_of(note_and_leave);
  g_seen = 0;
  {
    sigaction(SIGBUS, &own, nullptr);
    const BusGuard inner({&range, 1});
    other.cut();
    for (int i = 1; i < 4; ++i) {
      if (sigsetjmp(g_place, 1) == 0) (void)other.sum();
      EXPECT_EQ(g_seen, i) << "no work of berth's";
    }
  }
  if (sigsetjmp(g_place, 1) == 0) raise(SIGBUS);
  EXPECT_EQ(g_seen, 4) << "sent by somebody";
  EXPECT_EQ(guard.lost_at(), nullptr);
}

TEST_F(OsBusGuard, AHandlerOfAProgramSeesItsOwnMask) {
  struct sigaction own = action_of([](int, siginfo_t*, void*) {
    sigset_t mask;
    pthread_sigmask(SIG_SETMASK, nullptr, &mask);
    g_seen = sigismember(&mask, SIGUSR2) + 2 * sigismember(&mask, SIGBUS);
  });
  sigaction(SIGBUS, &own, nullptr);
  const BusGuard guard({});
  raise(SIGBUS);
  EXPECT_EQ(g_seen, 3);
  sigset_t mask;
  pthread_sigmask(SIG_SETMASK, nullptr, &mask);
  EXPECT_EQ(sigismember(&mask, SIGUSR2), 0);
}

// The program installs a handler while ours is there, and passes on to what it took to be the one before.
struct sigaction g_below {};
void note_and_pass_on(int number, siginfo_t* info, void* context) {
  g_seen = g_seen + 1;
  if ((g_below.sa_flags & SA_SIGINFO) != 0) g_below.sa_sigaction(number, info, context);
}
void note_ten(int, siginfo_t*, void*) { g_seen = g_seen + 10; }

TEST_F(OsBusGuard, AHandlerThatReplacesItStaysAndMayPassOn) {
  const CutFile file;
  const TouchedRange range = file.range();
  struct sigaction first = action_of(note_ten);
  struct sigaction second = action_of(note_and_pass_on);
  sigaction(SIGBUS, &first, nullptr);
  {
    const BusGuard guard({&range, 1});
    sigaction(SIGBUS, &second, &g_below);
    file.cut();
    BusGuard::touch([&] { (void)file.sum(); });
    EXPECT_NE(guard.lost_at(), nullptr) << "it passes on to ours";
    EXPECT_EQ(g_seen, 1);
  }
  EXPECT_EQ(installed().sa_sigaction, note_and_pass_on);
  g_seen = 0;
  raise(SIGBUS);
  EXPECT_EQ(g_seen, 11) << "to the first one, through ours";
  const BusGuard again({&range, 1});
  g_seen = 0;
  raise(SIGBUS);
  EXPECT_EQ(g_seen, 11) << "and no round trips while ours is above it";
  BusGuard::touch([&] { (void)file.sum(); });
  EXPECT_NE(again.lost_at(), nullptr);
}

// A handler that is installed by another thread at any instant is there afterwards.
void note_one(int, siginfo_t*, void*) { g_seen = 1; }
void note_two(int, siginfo_t*, void*) { g_seen = 2; }

TEST_F(OsBusGuard, LosesNoHandlerThatIsInstalledMeanwhile) {
  const auto rounds = berth::testing::scaled(2000, 200);
  for (std::uint64_t round = 0; round < rounds; ++round) {
    std::atomic<bool> go{false};
    std::atomic<bool> done{false};
    std::thread guards([&] {
      go = true;
      while (!done) const BusGuard guard({});
      const BusGuard guard({});
    });
    while (!go) {
    }
    int last = 0;
    for (std::uint64_t i = 0; i < 1 + round % 5; ++i) {
      last = 1 + static_cast<int>((round + i) % 2);
      struct sigaction own = action_of(last == 1 ? note_one : note_two);
      sigaction(SIGBUS, &own, nullptr);
    }
    done = true;
    guards.join();
    g_seen = 0;
    raise(SIGBUS);
    ASSERT_EQ(g_seen, last) << "round " << round;
  }
}

// As Python's faulthandler, breakpad and others do: what was there before is put back, and has the signal.
template <int kWhich>
struct Reporter {
  static inline struct sigaction before {};
  static inline int reports = 0;
  static void report(int number, siginfo_t* info, void*) {
    if (++reports > 1) _exit(4);
    sigaction(number, &before, nullptr);
    if (kWhich == 0 || info->si_code <= 0) raise(number);
  }
  static void enable(int flags) {
    struct sigaction own = action_of(report, flags);
    sigaction(SIGBUS, &own, &before);
  }
};

TEST_F(OsBusGuard, AHandlerThatPutsBackWhatWasBeforeIsCalledOnce) {
  if (kAddressSanitizer || kThreadSanitizer) GTEST_SKIP() << "a sanitizer handles the signal";
  ::testing::GTEST_FLAG(death_test_style) = "threadsafe";
  const CutFile file;
  file.cut();
  const auto report = [&](const auto& reporter, bool send, bool guarded) {
    signal(SIGBUS, SIG_DFL);
    {
      const BusGuard guard({});
      reporter.enable(SA_NODEFER | SA_ONSTACK);
    }
    std::optional<BusGuard> guard;
    { const BusGuard again({}); }
    if (guarded) guard.emplace(std::span<const TouchedRange>());
    send ? static_cast<void>(raise(SIGBUS)) : BusGuard::touch([&] { (void)file.sum(); });
    _exit(3);
  };
  for (const bool guarded : {false, true}) {
    for (const bool send : {false, true}) {
      EXPECT_EXIT(report(Reporter<0>(), send, guarded), ::testing::KilledBySignal(SIGBUS), "");
      EXPECT_EXIT(report(Reporter<1>(), send, guarded), ::testing::KilledBySignal(SIGBUS), "");
    }
  }
}

// It is taken away, and installed again, between the system calls that put ours above it.
TEST_F(OsBusGuard, AHandlerThatComesAndGoesMeanwhileIsCalledOnce) {
  if (kAddressSanitizer || kThreadSanitizer) GTEST_SKIP() << "a sanitizer handles the signal";
  ::testing::GTEST_FLAG(death_test_style) = "threadsafe";
  using OnOff = Reporter<0>;
  const auto report = [] {
    signal(SIGBUS, SIG_DFL);
    { const BusGuard guard({}); }
    OnOff::enable(SA_NODEFER);
    static int calls;
    calls = 0;
    set_injector([](std::string_view call) noexcept {
      if (call != "sigaction") return 0;
      if (++calls == 2) sigaction(SIGBUS, &OnOff::before, nullptr);
      if (calls == 3) OnOff::enable(SA_NODEFER);
      return 0;
    });
    { const BusGuard guard({}); }
    set_injector(nullptr);
    if (calls < 3) _exit(5);
    raise(SIGBUS);
    _exit(3);
  };
  EXPECT_EXIT(report(), ::testing::KilledBySignal(SIGBUS), "");
}

TEST_F(OsBusGuard, AHandlerForOneSignalIsCalledOnce) {
  if (kAddressSanitizer || kThreadSanitizer) GTEST_SKIP() << "a sanitizer handles the signal";
  ::testing::GTEST_FLAG(death_test_style) = "threadsafe";
  const auto send_two = [] {
    struct sigaction own = action_of(note_ten, static_cast<int>(SA_RESETHAND));
    sigaction(SIGBUS, &own, nullptr);
    const BusGuard guard({});
    raise(SIGBUS);
    if (g_seen != 10) _exit(3);
    raise(SIGBUS);
    _exit(4);
  };
  EXPECT_EXIT(send_two(), ::testing::KilledBySignal(SIGBUS), "");
}

// Each mask is another action.
TEST_F(OsBusGuard, AProgramWithEndlesslyManyActionsKeepsItsOwn) {
  ::testing::GTEST_FLAG(death_test_style) = "threadsafe";
  const auto install_many = [] {
    for (unsigned i = 0; i < 100; ++i) {
      struct sigaction own = action_of(note_ten);
      for (int bit = 0; bit < 7; ++bit) {
        if ((i >> bit & 1U) != 0) sigaddset(&own.sa_mask, SIGRTMIN + bit);
      }
      sigaction(SIGBUS, &own, nullptr);
      const BusGuard guard({});
      g_seen = 0;
      raise(SIGBUS);
      if (g_seen != 10) _exit(3);
    }
    _exit(installed().sa_sigaction == note_ten ? 0 : 4);
  };
  EXPECT_EXIT(install_many(), ::testing::ExitedWithCode(0), "");
}

// As the kernel tells that memory has failed; a process may send that to itself.
void send_failed(int code, const void* at, short bits) {
  siginfo_t info{};
  info.si_signo = SIGBUS;
  info.si_code = code;
  info.si_addr = const_cast<void*>(at);
  info.si_addr_lsb = bits;
  EXPECT_EQ(syscall(SYS_rt_tgsigqueueinfo, getpid(), gettid(), SIGBUS, &info), 0);
}

TEST_F(OsBusGuard, MemoryThatFailsIsLostByWhatTouchesIt) {
  struct sigaction own = action_of(note_ten);
  sigaction(SIGBUS, &own, nullptr);
  const CutFile file;
  const TouchedRange range = file.range();
  const BusGuard guard({&range, 1});
  bool ended = false;
  BusGuard::touch([&] {
    send_failed(BUS_MCEERR_AO, range.begin, 12);
    ended = true;
  });
  EXPECT_TRUE(ended) << "nobody touches it";
  EXPECT_EQ(g_seen, 10);
  EXPECT_EQ(guard.lost_at(), nullptr);
  const auto huge = reinterpret_cast<std::uintptr_t>(range.begin) & ~((std::uintptr_t{1} << 30) - 1);
  BusGuard::touch([&] { send_failed(BUS_MCEERR_AR, reinterpret_cast<const void*>(huge), 30); });
  EXPECT_EQ(guard.lost_at(), range.begin) << "the huge page that the range is in";
  EXPECT_EQ(g_seen, 10);
}

TEST_F(OsBusGuard, ThreadsThatBlockTheSignalAreCoveredToo) {
  const CutFile file;
  file.cut();
  const TouchedRange range = file.range();
  BusGuard guard({&range, 1});
  std::thread([&] {
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, nullptr);
    {
      const BusGuard::OnThread under(&guard);
      BusGuard::touch([&] { (void)file.sum(); });
    }
    sigset_t mask;
    pthread_sigmask(SIG_SETMASK, nullptr, &mask);
    EXPECT_EQ(sigismember(&mask, SIGBUS), 1);
    EXPECT_EQ(BusGuard::current(), nullptr);
  }).join();
  EXPECT_NE(guard.lost_at(), nullptr);
}

TEST_F(OsBusGuard, LeavesMaskStackAndFloatingPointModeAsTheyWere) {
  const CutFile file;
  file.cut();
  const TouchedRange range = file.range();
  static char room[1 << 16];
  stack_t before{};
  const stack_t own{.ss_sp = room, .ss_flags = static_cast<int>(1U << 31), .ss_size = sizeof room};  // SS_AUTODISARM
  ASSERT_EQ(sigaltstack(&own, &before), 0);
  std::fesetround(FE_UPWARD);
  for (int i = 0; i < 3; ++i) {
    const BusGuard guard({&range, 1});
    BusGuard::touch([&] {
      const base::FloatMode mode;
      (void)file.sum();
    });
    EXPECT_NE(guard.lost_at(), nullptr);
    volatile float one = 1;
    EXPECT_GT(one / 3.0F * 3.0F, 1.0F) << "rounds upwards again";
  }
  std::fesetround(FE_TONEAREST);
  sigset_t mask;
  pthread_sigmask(SIG_SETMASK, nullptr, &mask);
  EXPECT_EQ(sigismember(&mask, SIGBUS), 0);
  stack_t now{};
  ASSERT_EQ(sigaltstack(&before, &now), 0);
  EXPECT_EQ(now.ss_sp, room) << "the alternate stack is armed again";
}

TEST_F(OsBusGuard, WithoutAHandlerTheWorkStillRuns) {
  set_injector([](std::string_view call) noexcept { return call == "sigaction" ? EPERM : 0; });
  struct sigaction own = action_of(note_and_leave);
  sigaction(SIGBUS, &own, nullptr);
  const CutFile file;
  {
    const BusGuard guard({});
    EXPECT_EQ(installed().sa_sigaction, note_and_leave);
    int sum = 0;
    BusGuard::touch([&] { sum = file.sum(); });
    EXPECT_EQ(sum, 7 * static_cast<int>(kPages));
  }
  EXPECT_EQ(installed().sa_sigaction, note_and_leave);
}

TEST_F(OsBusGuard, WithoutAHandlerOfTheProgramASignalEndsItAsEver) {
  if (kAddressSanitizer || kThreadSanitizer) GTEST_SKIP() << "a sanitizer handles the signal";
  ::testing::GTEST_FLAG(death_test_style) = "threadsafe";
  const CutFile file;
  file.cut();
  const auto touch_own = [&](void (*disposition)(int)) {
    signal(SIGBUS, disposition);
    const BusGuard guard({});
    BusGuard::touch([&] { (void)file.sum(); });
  };
  EXPECT_EXIT(touch_own(SIG_DFL), ::testing::KilledBySignal(SIGBUS), "");
  EXPECT_EXIT(touch_own(SIG_IGN), ::testing::KilledBySignal(SIGBUS), "");
  const auto send = [&](void (*disposition)(int)) {
    signal(SIGBUS, disposition);
    const BusGuard guard({});
    raise(SIGBUS);
    _exit(3);
  };
  EXPECT_EXIT(send(SIG_DFL), ::testing::KilledBySignal(SIGBUS), "");
  EXPECT_EXIT(send(SIG_IGN), ::testing::ExitedWithCode(3), "");
}

}  // namespace
}  // namespace berth::internal::os
