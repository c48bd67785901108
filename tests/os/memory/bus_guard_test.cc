// SPDX-License-Identifier: Apache-2.0
#include "os/memory/bus_guard.h"

#include <gtest/gtest.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cfenv>
#include <cstring>
#include <thread>

#include "base/float_mode.h"
#include "base/sanitizers.h"
#include "os/inject.h"
#include "os/memory/memory.h"

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

TEST_F(OsBusGuard, PutsBackWhatTheProgramDid) {
  struct sigaction own = action_of(note_and_leave, SA_ONSTACK | SA_NODEFER);
  sigaction(SIGBUS, &own, nullptr);
  {
    const BusGuard guard({});
    EXPECT_NE(installed().sa_sigaction, note_and_leave);
  }
  EXPECT_EQ(installed().sa_sigaction, note_and_leave);
  EXPECT_EQ(installed().sa_flags & (SA_SIGINFO | SA_ONSTACK | SA_NODEFER), SA_SIGINFO | SA_ONSTACK | SA_NODEFER);
  const struct sigaction found = installed();
  EXPECT_EQ(sigismember(&found.sa_mask, SIGUSR2), 1);
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
