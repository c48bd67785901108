// SPDX-License-Identifier: Apache-2.0
#include <dirent.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <map>
#include <memory>
#include <numeric>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "berth/berth.h"
#include "berth/extend.h"
#include "berth/observe.h"
#include "share/exchange.h"
#include "share/segment.h"
#include "share/ticket_bytes.h"
#include "support/descriptors.h"

// The program that the tests of sharing start, and kill: helper SCENARIO [traced] [NAME]. Descriptor 3 is its
// end of a channel. When traced, it stops where the tested part begins, and marks the sections that the tracer
// single-steps.
namespace {

using namespace berth;
using namespace berth::internal::share;

bool g_traced = false;
bool g_stepped = false;
std::string g_name;

void require(bool right, const char* claim) {
  if (right) return;
  std::fprintf(stderr, "not so: %s\n", claim);
  std::_Exit(1);
}

// The tracer counts from here on.
void begin() {
  if (g_traced && !g_stepped) raise(SIGSTOP);
}
// Around a section that is single-stepped.
void mark() {
  if (g_stepped) raise(SIGSTOP);
}

Storage pattern(std::int64_t count, const AllocatorRef& where = "shared") {
  std::vector<std::int32_t> values(static_cast<std::size_t>(count));
  std::iota(values.begin(), values.end(), 17);
  return from_data(values, {count}, where);
}

bool is_pattern(const Storage& x) {
  std::int32_t expected = 17;
  for (const std::int32_t value : x.elements<const std::int32_t>()) {
    if (value != expected++) return false;
  }
  return true;
}

Channel channel() { return Channel::adopt(3); }

// The creator: makes shared memory, and shares its own storages in place.
void create() {
  begin();
  const Storage a = pattern(5000);
  const Storage b = pattern(5000, "cpu");
  share(b);
  require(is_pattern(a) && is_pattern(b), "both have their bytes");
  const Ticket ticket = export_ticket(a);
  require(is_pattern(import_ticket(ticket)), "the ticket too");
}

// The creator of a name.
void create_named() {
  begin();
  Storage w = create_shared(g_name, {5000}, DType::i32);
  w.copy_from(pattern(5000, "cpu"));
  w.close();
}

// The owner: sends two storages, and releases them. With `stay` it waits to be killed.
void own(bool stay) {
  Channel peer = channel();
  const Storage first = pattern(5000);
  Storage second = pattern(300'000);
  begin();
  peer.send(first, 1);
  peer.send(second, 2);
  second = {};
  peer.send(pattern(100), 3);
  if (stay) {
    peer.send_bytes({}, 4);
    for (;;) pause();
  }
}

// The peer: receives, reads, sends back what it received, and releases it.
void receive_and_return() {
  Channel owner = channel();
  begin();
  Storage x = *owner.receive().storage;
  require(is_pattern(x), "what came is right");
  owner.send(x, 1);
  Storage y = *owner.receive().storage;
  require(is_pattern(y), "what came next is right");
  x = {};
  y = {};
  owner.close();
}

void receive_and_stay() {
  Channel owner = channel();
  std::vector<Storage> kept;
  for (;;) {
    Channel::Message message = owner.receive();
    if (!message.storage) break;
    kept.push_back(*message.storage);
  }
  owner.send_bytes({}, kept.size());
  for (;;) pause();
}

// The reaper: attaches to a segment in which other processes have died.
void reap() {
  Channel owner = channel();
  begin();
  Storage x = *owner.receive().storage;
  reap_shared();
  require(is_pattern(x), "what came is right");
  x = {};
  reap_shared();
}

// ---- The operations of each party on the words of a segment, each between two marks.

void step_owner() {
  const Storage x = pattern(5000);
  const Storage y = pattern(5000);
  const internal::share::Exported held = *internal::share::exported(x);
  const SharedLocation where = shared_location(y);
  mark();
  const std::uint32_t entry = *held.segment->publish(where.offset, where.size_bytes);
  mark();
  mark();
  const internal::share::TicketName kept = *held.segment->make_ticket(entry);
  mark();
  mark();
  held.segment->drop_handle(entry);
  mark();
  mark();
  held.segment->revoke(kept);
  mark();
  mark();
  held.segment->tidy();
  mark();
}

void step_peer() {
  Channel owner = channel();
  const Storage x = *owner.receive().storage;
  const internal::share::Exported held = *internal::share::exported(x);
  const internal::share::TicketContent content = *internal::share::read_ticket(owner.receive().bytes);
  mark();
  (void)held.segment->import(content.name);
  mark();
  mark();
  const internal::share::TicketName returned = *held.segment->make_ticket(content.name.entry);
  mark();
  mark();
  held.segment->drop_handle(content.name.entry);
  mark();
  mark();
  held.segment->revoke(returned);
  mark();
}

void step_reaper() {
  Channel owner = channel();
  const Storage x = *owner.receive().storage;
  const internal::share::Exported held = *internal::share::exported(x);
  mark();
  held.segment->reap();
  mark();
}

void open_named() {
  begin();
  Storage w = open_shared(g_name);
  require(is_pattern(w), "the bytes are right");
  w.close();
}

void leave_named() {
  const Storage w = create_shared(g_name, {5000}, DType::i32);
  const Storage v = open_shared(g_name);
  raise(SIGKILL);
}

void collect_named() {
  begin();
  (void)reap_named();
  const Storage w = create_shared(g_name, {100}, DType::i32);
}

// Holds everything that arrives, and reports how many descriptors that takes.
void hold_many() {
  Channel owner = channel();
  std::vector<Storage> kept;
  for (;;) {
    Channel::Message message = owner.receive();
    if (!message.storage) break;
    kept.push_back(*message.storage);
  }
  bool right = true;
  for (std::size_t i = 0; i < kept.size(); ++i) right = right && kept[i].item<std::int32_t>({0}) == static_cast<std::int32_t>(i);
  require(right, "each has its own bytes");
  owner.send_bytes({}, testing::open_descriptors());
  (void)owner.receive();
}

// Forks, and goes on in a child that does not exec. The child's inherited handles have no effect; what it
// shares itself is its own.
void fork_and_stay() {
  Channel peer = channel();
  Storage x = pattern(5000);
  const Storage large = zeros({8 << 20}, DType::u8, "shared");
  peer.send(x, 1);
  int ready[2];
  require(pipe(ready) == 0, "there is a pipe");
  const pid_t child = fork();
  if (child == 0) {
    require(is_pattern(x), "a child can read what it inherited");
    require(peer.descriptor() == -1, "and has no channel");
    x = {};
    const Storage own = new_shared(1000).storage;
    own.fill(3);
    const Storage again = import_ticket(export_ticket(own));
    require(again.item<std::uint8_t>({999}) == 3, "and can share its own");
    const Storage named = create_shared("of-a-child", {10}, DType::u8);
    require(write(ready[1], "x", 1) == 1, "it says so");
    alarm(20);
    for (;;) pause();
  }
  char said = 0;
  require(read(ready[0], &said, 1) == 1, "the child is there");
  peer.send_bytes({}, static_cast<std::uint64_t>(child));
  for (;;) pause();
}

// Data loaders: workers that are forked without exec, allocate batches on `shared` by name, and send them to their parent.
// One of them is killed. The parent's pool serves nobody but the parent.
void fork_loaders() {
  constexpr std::size_t kWorkers = 4;
  constexpr std::uint64_t kBatches = 50;
  const Storage inherited = pattern(5000);
  const std::shared_ptr<Allocator> mine = default_allocator("shared");
  const std::uint64_t committed = mine->stats().committed_bytes;
  std::vector<std::pair<pid_t, Channel>> workers;
  for (std::size_t i = 0; i < kWorkers; ++i) {
    int both[2];
    require(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, both) == 0, "there is a pair of sockets");
    const pid_t child = fork();
    if (child == 0) {
      Channel parent = Channel::adopt(both[1]);
      require(default_allocator("shared") != mine, "a worker has a pool of its own");
      require(default_allocator("shared") == default_allocator("shared"), "and one only");
      require(is_pattern(inherited), "it reads what it inherited");
      bool refused = false;
      try {
        (void)zeros({100}, DType::f32, mine);
      } catch (const DeviceError& error) {
        refused = error.code() == ErrorCode::fork_unsafe;
      }
      require(refused, "and allocates nothing there");
      std::vector<std::thread> decoders;  // each may be the first to allocate
      for (int k = 0; k < 4; ++k) decoders.emplace_back([] { require(is_pattern(pattern(100)), "threads of a worker allocate"); });
      for (std::thread& decoder : decoders) decoder.join();
      for (std::uint64_t k = 0; k < kBatches; ++k) parent.send(full({1000}, static_cast<std::int32_t>(k), DType::i32, "shared"), k);
      parent.send_bytes({});
      for (;;) pause();
    }
    close(both[1]);
    workers.emplace_back(child, Channel::adopt(both[0]));
  }
  std::vector<Storage> kept;
  for (auto& [process, worker] : workers) {
    for (std::uint64_t k = 0; k < kBatches; ++k) {
      const Channel::Message batch = worker.receive();
      require(batch.tag == k && batch.storage->item<std::int32_t>({999}) == static_cast<std::int32_t>(k), "batches are right");
      if (k % 10 == 0) kept.push_back(*batch.storage);
    }
    (void)worker.receive();
    ::kill(process, SIGKILL);
    require(waitpid(process, nullptr, 0) == process, "the worker ends");
  }
  for (const Storage& batch : kept)
    require(batch.item<std::int32_t>({0}) == batch.item<std::int32_t>({999}), "batches outlive their worker");
  require(default_allocator("shared") == mine && mine->stats().live_blocks == 1, "the parent's pool is the parent's alone");
  require(mine->stats().committed_bytes == committed && mine->audit().empty(), "and as it was");
}

// Takes one import of the ticket that it is sent, again and again, until none is left; says how many it got.
void import_some() {
  Channel owner = channel();
  const Storage first = *owner.receive().storage;  // brings the descriptor
  const Ticket ticket = Ticket::from_bytes(owner.receive().bytes);
  std::vector<Storage> got;
  begin();
  try {
    for (;;) {
      got.push_back(import_ticket(ticket));
      require(is_pattern(got.back()), "each import is whole");
    }
  } catch (const AccessError& error) {
    require(error.code() == ErrorCode::already_consumed, "then none is left");
  }
  owner.send_bytes({}, got.size());
  (void)owner.receive();
}

// Starts a program that lists its descriptors.
void exec_lists() {
  const Storage x = pattern(5000);
  const Storage w = create_shared(g_name, {10}, DType::u8);
  auto [one, other] = Channel::make_pair();
  one.send(x);
  const Storage y = *other.receive().storage;
  Listener listener("exec-" + std::to_string(getpid()));
  close(3);
  execlp("ls", "ls", "-l", "/proc/self/fd", nullptr);
}

// One of many that share without end. Received storages are checked and kept for a while; own storages are
// sent, and names come and go.
void churn() {
  Channel center = channel();
  std::vector<Storage> kept(8);
  std::vector<Storage> names(4);
  std::uint64_t random = static_cast<std::uint64_t>(getpid());
  const auto next = [&](std::uint64_t bound) {
    random = random * 6364136223846793005ULL + 1442695040888963407ULL;
    return (random >> 33) % bound;
  };
  alarm(600);
  for (;;) {
    Channel::Message message = center.receive(std::chrono::seconds(60));
    require(message.storage.has_value() && is_pattern(*message.storage), "what came is right");
    kept[next(kept.size())] = *message.storage;
    const Storage& any = kept[next(kept.size())];
    require(any.num_elements() == 0 || is_pattern(any), "what was kept is right");
    if (next(2) == 0 && any.num_elements() > 0)
      center.send(any);
    else
      center.send(pattern(static_cast<std::int64_t>(1 + next(20'000))));
    if (next(4) == 0) names[next(names.size())] = create_shared("", {1000}, DType::u8);
  }
}

// ---- Memory of a GPU.

bool is_pattern_there(const Storage& x) { return is_pattern(x.to("cpu")); }

// Checks what arrives, writes to it, and reports that; keeps it until the next one arrives.
void device_peer() {
  Channel owner = channel();
  Storage kept;
  for (std::uint64_t count = 0;; ++count) {
    Channel::Message message = owner.receive();
    if (!message.storage) return;
    require(message.storage->device() == Device("cuda:0") && message.storage->is_shared(), "it is on the GPU, and shared");
    require(is_pattern_there(*message.storage), "what came is right");
    kept = *message.storage;
    kept.fill(5);
    owner.send_bytes({}, count);
  }
}

// Sends storages on the GPU, and waits to be killed.
void device_owner() {
  Channel peer = channel();
  peer.send(pattern(1'500'000, "cuda:0"), 1);
  peer.send(pattern(1000, "cuda:0"), 2);
  for (;;) pause();
}

// Like a program that knows the path of another user's listener. Says the errno of the connection.
void connect_raw() {
  const int socket_made = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  require(g_name.size() < sizeof address.sun_path, "the path is short");
  std::memcpy(address.sun_path, g_name.data(), g_name.size());
  const bool connects = connect(socket_made, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0;
  std::printf("%s\n", connects ? "connected" : std::strerror(errno));
}

void listen_and_stay() {
  Channel starter = channel();
  const Listener listener(g_name);
  starter.send_bytes({}, 1);
  for (;;) pause();
}

void listen_once() { const Listener listener(g_name); }

void reap_names() {
  require(!reap_named().empty(), "there was a name");
  (void)reap_listeners();
}

// A forked child has the listener's objects, and nothing of the listener.
void fork_a_listener() {
  Channel starter = channel();
  auto listener = std::make_unique<Listener>(g_name);
  const pid_t child = fork();
  if (child == 0) {
    require(listener->descriptor() == -1, "a child has no descriptor of it");
    try {
      (void)listener->accept(std::chrono::milliseconds(10));
      require(false, "nor accepts");
    } catch (const DeviceError& error) {
      require(error.code() == ErrorCode::fork_unsafe, "and is told why");
    }
    listener.reset();
    std::_Exit(0);
  }
  int status = 0;
  require(waitpid(child, &status, 0) == child && status == 0, "the child was right");
  require(Channel::connect(g_name).descriptor() >= 0, "the name is still there");
}

const std::map<std::string, std::function<void()>> kScenarios = {
    {"create", create},
    {"create-named", create_named},
    {"own", [] { own(false); }},
    {"own-and-stay", [] { own(true); }},
    {"peer", receive_and_return},
    {"stay", receive_and_stay},
    {"reap", reap},
    {"open-named", open_named},
    {"leave-named", leave_named},
    {"collect-named", collect_named},
    {"hold-many", hold_many},
    {"fork-and-stay", fork_and_stay},
    {"fork-loaders", fork_loaders},
    {"import-some", import_some},
    {"exec-lists", exec_lists},
    {"churn", churn},
    {"step-owner", step_owner},
    {"step-peer", step_peer},
    {"step-reaper", step_reaper},
    {"connect-raw", connect_raw},
    {"listen-and-stay", listen_and_stay},
    {"listen-once", listen_once},
    {"reap-names", reap_names},
    {"fork-a-listener", fork_a_listener},
    {"device-peer", device_peer},
    {"device-owner", device_owner},
};

}  // namespace

int main(int argc, char** argv) {
  const std::string scenario = argc > 1 ? argv[1] : "";
  const std::string how = argc > 2 ? argv[2] : "";
  g_name = argc > 3 ? argv[3] : "";
  g_traced = how == "traced" || how == "stepped";
  g_stepped = how == "stepped";
  alarm(60);  // ends a helper that hangs
  if (g_traced) require(ptrace(PTRACE_TRACEME, 0, nullptr, nullptr) == 0, "it can be traced");
  const auto found = kScenarios.find(scenario);
  if (found == kScenarios.end()) return 2;
  found->second();
  return 0;
}
