// SPDX-License-Identifier: Apache-2.0
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <map>
#include <numeric>
#include <string>
#include <vector>

#include "berth/berth.h"

// The program that the tests of sharing start, and kill: helper SCENARIO [traced] [NAME]. Descriptor 3 is its end of a channel. Traced, it
// stops where the interesting part begins, and marks the parts that are to be stepped through one instruction at a time.
namespace {

using namespace berth;

bool g_traced = false;
bool g_stepped = false;
std::string g_name;

void require(bool right, const char* claim) {
  if (right) return;
  std::fprintf(stderr, "not so: %s\n", claim);
  std::_Exit(1);
}

// From here on a tracer counts.
void begin() {
  if (g_traced && !g_stepped) raise(SIGSTOP);
}
// Around what is stepped through.
void mark() {
  if (g_stepped) raise(SIGSTOP);
}

Storage pattern(std::int64_t count, const Place& place = "shared") {
  std::vector<std::int32_t> values(static_cast<std::size_t>(count));
  std::iota(values.begin(), values.end(), 17);
  return from_data(values, {count}, place);
}

bool is_pattern(const Storage& x) {
  std::int32_t expected = 17;
  for (const std::int32_t value : x.elements<const std::int32_t>()) {
    if (value != expected++) return false;
  }
  return true;
}

Channel channel() { return Channel::adopt(3); }

// The creator: makes shared memory, and shares what it has in place.
void create() {
  begin();
  const Storage a = pattern(5000);
  const Storage b = pattern(5000, "cpu");
  mark();
  share(b);
  mark();
  require(is_pattern(a) && is_pattern(b), "both have their bytes");
  const Ticket ticket = export_ticket(a);
  require(is_pattern(import_ticket(ticket)), "the ticket too");
}

// The creator of a name.
void create_named() {
  begin();
  mark();
  Storage w = create_shared(g_name, {5000}, DType::i32);
  mark();
  w.copy_from(pattern(5000, "cpu"));
  close_shared(w);
}

// The owner: sends two storages, and lets go of them. With `stay` it waits to be killed.
void own(bool stay) {
  Channel peer = channel();
  const Storage first = pattern(5000);
  Storage second = pattern(300'000);
  begin();
  mark();
  peer.send(first, 1);
  mark();
  peer.send(second, 2);
  second = {};
  peer.send(pattern(100), 3);
  if (stay) {
    peer.send_bytes({}, 4);
    for (;;) pause();
  }
}

// The peer: receives, looks, sends back what it got, and lets go.
void receive_and_return() {
  Channel owner = channel();
  begin();
  mark();
  Storage x = *owner.receive().storage;
  mark();
  require(is_pattern(x), "what came is right");
  owner.send(x, 1);
  Storage y = *owner.receive().storage;
  require(is_pattern(y), "what came next is right");
  mark();
  x = {};
  mark();
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

// The reaper: comes to a segment where others have died.
void reap() {
  Channel owner = channel();
  begin();
  Storage x = *owner.receive().storage;
  mark();
  reap_shared();
  mark();
  require(is_pattern(x), "what came is right");
  x = {};
  reap_shared();
}

void open_named() {
  begin();
  mark();
  Storage w = open_shared(g_name);
  mark();
  require(is_pattern(w), "the bytes are right");
  close_shared(w);
}

void leave_named() {
  const Storage w = create_shared(g_name, {5000}, DType::i32);
  const Storage v = open_shared(g_name);
  raise(SIGKILL);
}

void collect_named() {
  begin();
  mark();
  (void)collect_shared();
  mark();
  const Storage w = create_shared(g_name, {100}, DType::i32);
}

const std::map<std::string, std::function<void()>> kScenarios = {
    {"create", create},         {"create-named", create_named}, {"own", [] { own(false); }}, {"own-and-stay", [] { own(true); }},
    {"peer", receive_and_return}, {"stay", receive_and_stay},   {"reap", reap},              {"open-named", open_named},
    {"leave-named", leave_named}, {"collect-named", collect_named},
};

}  // namespace

int main(int argc, char** argv) {
  const std::string scenario = argc > 1 ? argv[1] : "";
  const std::string how = argc > 2 ? argv[2] : "";
  g_name = argc > 3 ? argv[3] : "";
  g_traced = how == "traced" || how == "stepped";
  g_stepped = how == "stepped";
  alarm(60);  // should it ever wait for good
  if (g_traced) require(ptrace(PTRACE_TRACEME, 0, nullptr, nullptr) == 0, "it can be traced");
  const auto found = kScenarios.find(scenario);
  if (found == kScenarios.end()) return 2;
  found->second();
  return 0;
}
