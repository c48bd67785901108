// SPDX-License-Identifier: Apache-2.0
#include <fcntl.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>

// A library to preload into a program. When the program's libraries have been loaded, it installs a seccomp filter:
//
//     DENY_CALL=NUMBER:ERRNO        every call of that number fails with that errno
//     DENY_CALL=NUMBER:ERRNO:TIMES  so many do; the later ones are let through
//     DENY_CALL=record:FILE         all are let through, and byte NUMBER of the file, of kCalls bytes, becomes 1
//
// What counts or records is a thread that the filter does not apply to, which the kernel asks (SECCOMP_RET_USER_NOTIF).
// Without a filter the program exits with kNoFilter. The C library alone is used, before the filter is installed.
namespace {

constexpr unsigned kCalls = 4096;
constexpr int kNoFilter = 77;
constexpr unsigned kUserNotify = 0x7fc00000U;  // what older headers lack: SECCOMP_RET_USER_NOTIF, …
constexpr unsigned kNewListener = 1U << 3;     // … SECCOMP_FILTER_FLAG_NEW_LISTENER

std::atomic<int> g_listener{-1};
std::atomic<long> g_left{0};  // refusals
int g_error = 0;
char* g_recorded = nullptr;

// The kernel's structures, in the sizes of Linux 5.5 and later.
struct Notice {
  __u64 id;
  __u32 pid;
  __u32 flags;
  seccomp_data data;
};
struct Answer {
  __u64 id;
  __s64 value;
  __s32 error;
  __u32 flags;
};
constexpr unsigned long kReceive = _IOWR('!', 0, Notice);
constexpr unsigned long kSend = _IOWR('!', 1, Answer);

bool is_refused() noexcept {
  if (g_recorded != nullptr || g_left.load() <= 0) return false;
  g_left.fetch_sub(1);
  return true;
}

// Polls for the descriptor: to be woken it would need a call that is already asked about.
void* answer(void*) {
  while (g_listener.load() < 0) usleep(50);
  for (;;) {
    Notice notice{};
    if (ioctl(g_listener.load(), kReceive, &notice) != 0) continue;  // a signal, or the caller died
    const auto number = static_cast<unsigned>(notice.data.nr);
    if (g_recorded != nullptr && number < kCalls) g_recorded[number] = 1;
    Answer reply{notice.id, 0, 0, 1};  // SECCOMP_USER_NOTIF_FLAG_CONTINUE
    if (is_refused()) reply = {notice.id, 0, -g_error, 0};
    (void)ioctl(g_listener.load(), kSend, &reply);
  }
}

void require(bool right, const char* what) {
  if (right) return;
  dprintf(STDERR_FILENO, "no filter: %s\n", what);
  _exit(kNoFilter);
}

void start_answering() {
  sigset_t all;
  sigset_t before;
  sigfillset(&all);
  pthread_t thread;
  require(pthread_sigmask(SIG_SETMASK, &all, &before) == 0, "signals cannot be blocked");
  require(pthread_create(&thread, nullptr, answer, nullptr) == 0, "no thread");
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

int install(const sock_filter* rules, unsigned short count, unsigned flags) {
  const sock_fprog program{count, const_cast<sock_filter*>(rules)};
  require(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0, "PR_SET_NO_NEW_PRIVS is refused");
  const long made = syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, flags, &program);
  require(made >= 0, "seccomp is refused");
  return static_cast<int>(made);
}

void deny(unsigned number, unsigned verdict, unsigned flags) {
  const sock_filter rules[] = {BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
                               BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, number, 0, 1), BPF_STMT(BPF_RET | BPF_K, verdict),
                               BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)};
  const int made = install(rules, 4, flags);
  if (flags != 0) g_listener.store(made);
}

void record(const char* path) {
  const int file = open(path, O_RDWR | O_CLOEXEC);
  require(file >= 0, "the file for the calls cannot be opened");
  void* const bytes = mmap(nullptr, kCalls, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  require(bytes != MAP_FAILED, "the file for the calls cannot be mapped");
  close(file);
  g_recorded = static_cast<char*>(bytes);
  start_answering();
  const sock_filter all[] = {BPF_STMT(BPF_RET | BPF_K, kUserNotify)};
  g_listener.store(install(all, 1, kNewListener));
}

[[gnu::constructor]] void install_at_load() {
  const char* const asked = getenv("DENY_CALL");
  if (asked == nullptr) return;
  unsetenv("LD_PRELOAD");  // not for the programs that this one starts: they inherit the filter
  char path[512] = "";
  unsigned number = 0;
  unsigned error = 0;
  long times = 0;
  if (sscanf(asked, "record:%511s", path) == 1) return record(path);
  const int given = sscanf(asked, "%u:%u:%ld", &number, &error, &times);
  require(given >= 2, "DENY_CALL is neither record:FILE nor NUMBER:ERRNO");
  if (given == 2) return deny(number, SECCOMP_RET_ERRNO | error, 0);
  g_error = static_cast<int>(error);
  g_left.store(times);
  start_answering();
  deny(number, kUserNotify, kNewListener);
}

}  // namespace
