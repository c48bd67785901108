// SPDX-License-Identifier: Apache-2.0
#include <spawn.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <optional>
#include <string>
#include <vector>

#include "berth/berth.h"

// The round-trip time of sending a storage to a running process and receiving an answer: bench_share [--rounds
// N] [--megabytes N] [--device cuda:0]. It starts itself as the other process. Prints one JSON object, in
// microseconds; bench/share-peers compares it with other libraries.
namespace {

using namespace berth;
using Clock = std::chrono::steady_clock;

double us_since(Clock::time_point start) { return std::chrono::duration<double, std::micro>(Clock::now() - start).count(); }

struct Figures {
  double median = 0;
  double p99 = 0;
  double least = 0;
};

Figures figures(std::vector<double> times) {
  std::sort(times.begin(), times.end());
  return {times[times.size() / 2], times[times.size() * 99 / 100], times.front()};
}

// Receives storages on a GPU without reading them. With `keep` it keeps one of the same memory throughout, so
// that the memory stays mapped.
int answer_on_device(Channel& channel, bool keep) {
  std::optional<Storage> kept;
  for (;;) {
    const Channel::Message message = channel.receive(std::chrono::hours(1));
    if (!message.storage) return kept && kept->slice(0, 0, 1).to("cpu").item<std::uint8_t>({0}) != 1 ? 1 : 0;
    if (keep && !kept) kept = *message.storage;
    channel.send_bytes({}, message.storage->size_bytes());
  }
}

// The other process: a bare echo on descriptor 3, or a channel on it that reads one byte of each storage, and
// answers.
int answer(const std::string& how) {
  if (how == "bare") {
    char message[128];
    for (ssize_t got; (got = recv(3, message, sizeof message, 0)) > 0;) {
      if (send(3, message, static_cast<std::size_t>(got), MSG_NOSIGNAL) != got) return 1;
    }
    return 0;
  }
  Channel channel = Channel::adopt(3);
  if (how == "device-keep" || how == "device-drop") return answer_on_device(channel, how == "device-keep");
  for (;;) {
    const Channel::Message message = channel.receive(std::chrono::hours(1));
    if (!message.storage) return 0;
    const Storage& x = *message.storage;
    std::uint64_t sum = 0;
    if (how == "read") {  // every byte, like a real consumer
      const Storage words = x.reinterpret(DType::u64);
      for (const std::uint64_t word : words.elements<const std::uint64_t>()) sum += word;
    } else {
      sum = x.elements<const std::uint8_t>().back();
    }
    channel.send_bytes({}, sum);
  }
}

struct Other {
  int socket = -1;
  pid_t process = -1;

  explicit Other(const char* how) {
    int both[2];
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, both) != 0) std::abort();
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, both[1], 3);
    char self[] = "/proc/self/exe";
    char word[] = "--answer";
    std::string kind = how;
    char* arguments[] = {self, word, kind.data(), nullptr};
    if (posix_spawn(&process, self, &actions, nullptr, arguments, environ) != 0) std::abort();
    close(both[1]);
    socket = both[0];
  }
};

Figures bare(int rounds) {
  const Other other("bare");
  std::vector<double> times;
  char message[128] = {};
  for (int i = 0; i < rounds; ++i) {
    const auto start = Clock::now();
    if (send(other.socket, message, sizeof message, 0) < 0 || recv(other.socket, message, sizeof message, 0) < 0) std::abort();
    times.push_back(us_since(start));
  }
  close(other.socket);
  waitpid(other.process, nullptr, 0);
  return figures(times);
}

// With `fresh`, every round sends a new storage, written to; else the same one.
Figures exchange(int rounds, std::int64_t bytes, const char* how, bool fresh) {
  const Other other(how);
  Channel channel = Channel::adopt(other.socket);
  std::vector<double> times;
  Storage x = full({bytes}, 1, DType::u8, "shared");
  for (int i = 0; i < rounds + 10; ++i) {
    const auto start = Clock::now();
    if (fresh) {
      x = empty({bytes}, DType::u8, "shared");
      x.fill(i % 100);
    }
    channel.send(x);
    (void)channel.receive();
    if (i >= 10) times.push_back(us_since(start));
  }
  channel.send_bytes({});
  channel.close();
  waitpid(other.process, nullptr, 0);
  return figures(times);
}

// GPU memory. With `known` the same memory is sent every time; else memory that was never sent before,
// allocated in advance.
Figures exchange_on_device(int rounds, std::int64_t bytes, const Device& device, bool known) {
  const Other other(known ? "device-keep" : "device-drop");
  Channel channel = Channel::adopt(other.socket);
  std::vector<double> times;
  Storage x = full({bytes}, 1, DType::u8, device);
  for (int i = 0; i < rounds + 10; ++i) {
    if (!known) {
      x = {};
      reap_shared();
      default_allocator(device)->release_cached();
      x = full({bytes}, 1, DType::u8, device);
    }
    const auto start = Clock::now();
    channel.send(x);
    (void)channel.receive();
    if (i >= 10) times.push_back(us_since(start));
  }
  channel.send_bytes({});
  int status = 0;
  waitpid(other.process, &status, 0);
  if (status != 0) std::fprintf(stderr, "bench_share: the other process ended with status %d\n", status);
  return figures(times);
}

void print_one(const char* name, const Figures& f, bool last = false) {
  std::printf("  \"%s\": {\"median_us\": %.2f, \"p99_us\": %.2f, \"least_us\": %.2f}%s\n", name, f.median, f.p99, f.least, last ? "" : ",");
}

}  // namespace

int main(int argc, char** argv) {
  int rounds = 3000;
  std::int64_t megabytes = 4;
  std::string device;
  for (int i = 1; i + 1 < argc; i += 2) {
    const std::string word = argv[i];
    if (word == "--answer") return answer(argv[i + 1]);
    if (word == "--rounds") rounds = std::atoi(argv[i + 1]);
    if (word == "--megabytes") megabytes = std::atoll(argv[i + 1]);
    if (word == "--device") device = argv[i + 1];
  }
  const std::int64_t bytes = megabytes << 20;
  std::printf("{\n  \"rounds\": %d, \"bytes\": %lld,\n", rounds, static_cast<long long>(bytes));
  print_one("bare_ping_pong", bare(rounds));
  if (!device.empty()) {
    print_one("device_known", exchange_on_device(rounds, bytes, device, true));
    print_one("device_new", exchange_on_device(rounds / 10 + 1, bytes, device, false), true);
    std::printf("}\n");
    return 0;
  }
  print_one("again", exchange(rounds, bytes, "touch", false));
  print_one("fresh_written", exchange(rounds / 4 + 1, bytes, "touch", true));
  print_one("fresh_written_and_read", exchange(rounds / 4 + 1, bytes, "read", true), true);
  std::printf("}\n");
  return 0;
}
