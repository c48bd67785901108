// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <string>
#include <unordered_set>
#include <variant>
#include <vector>

#include "share/claims.h"
#include "support/scale.h"

// A model checker: runs the library's own operations on entries in every interleaving of the steps of two and
// three processes, with the death of any of them before any step. In every state the invariants hold that the
// users of a segment rely on; from every final state one reap leaves nothing.
namespace berth::testing {
namespace {

using namespace internal::share;

constexpr std::size_t kMostProcesses = 3;
constexpr std::size_t kChannels = 2;
constexpr std::uint8_t kNobody = 0xff;

struct Memory {
  std::array<Word, 24> words{};

  Word load(std::uint32_t i) const noexcept { return words[i]; }
  void store(std::uint32_t i, Word value) noexcept { words[i] = value; }
  bool exchange_if(std::uint32_t i, Word expected, Word value) noexcept {
    if (words[i] != expected) return false;
    words[i] = value;
    return true;
  }
  void set_bits(std::uint32_t i, Word bits) noexcept { words[i] |= bits; }
  void clear_bits(std::uint32_t i, Word bits) noexcept { words[i] &= ~bits; }
  void add(std::uint32_t i, Word value) noexcept { words[i] += value; }
};

// The actions of a process, in order. Numbers are channels.
struct Action {
  enum Kind : std::uint8_t { publish, export_to, send, receive, import, import_again, release, retire, reap, close } kind;
  std::uint8_t channel = 0;
};
using Script = std::vector<Action>;

// A message with a ticket, and the open file description that is its lease.
struct Flight {
  bool exported = false;
  bool sent = false;
  bool received = false;
  bool sender_closed = false;
  bool receiver_closed = false;
  std::uint32_t ticket = 0;
  std::uint32_t generation = 0;
  std::uint64_t entry_generation = 0;
};

using Operation = std::variant<std::monostate, Publish, Export, Import, Release, Retire, Reap>;

struct Process {
  bool alive = true;
  std::uint8_t at = 0;
  bool claims = false;             // it may use the bytes
  std::uint64_t claimed = 0;       // their generation
  std::uint8_t reaping = kNobody;  // whose lock it holds: a row, or 16 + channel
  Operation operation;
};

struct World {
  Memory memory;
  std::array<Process, kMostProcesses> process;
  std::array<Flight, kChannels> flight;
  bool freed = false;  // the memory of the storage is back in the pool, or without an owner
};

void put(std::string& out, std::uint64_t value) { out.append(reinterpret_cast<const char*>(&value), sizeof value); }
void put_op(std::string&, const std::monostate&) {}
void put_op(std::string& out, const Publish& o) {
  put(out, std::uint64_t{o.at} << 8 | static_cast<unsigned>(o.outcome)), put(out, o.generation);
}
void put_op(std::string& out, const Export& o) {
  put(out, std::uint64_t{o.at} << 48 | std::uint64_t{o.looked} << 24 | o.ticket), put(out, o.seen), put(out, o.seen_used),
      put(out, o.generation);
}
void put_op(std::string& out, const Import& o) { put(out, std::uint64_t{o.at} << 32 | o.ticket), put(out, o.seen), put(out, o.entry_gen); }
void put_op(std::string& out, const Retire& o) {
  put(out, std::uint64_t{o.at} << 40 | std::uint64_t{o.index} << 8 | static_cast<unsigned>(o.outcome));
  put(out, o.state), put(out, o.version), put(out, o.tickets_used);
}
void put_drops(std::string& out, const Drops& o) { put(out, std::uint64_t{o.at} << 8 | o.retired), put_op(out, o.retire); }
void put_op(std::string& out, const Release& o) { put_drops(out, o); }
void put_op(std::string& out, const Reap& o) {
  put(out, std::uint64_t{o.at} << 40 | std::uint64_t{o.index} << 16 | o.holder), put(out, o.used), put(out, o.freed_any);
  put_drops(out, o.release), put_drops(out, o.revoke), put(out, o.revoke.expected), put(out, o.revoke.ticket), put_op(out, o.retire);
}

std::string key_of(const World& world, std::size_t processes) {
  std::string out;
  for (const Word word : world.memory.words) put(out, word);
  for (std::size_t i = 0; i < processes; ++i) {
    const Process& p = world.process[i];
    put(out, std::uint64_t{p.alive} << 32 | std::uint64_t{p.claims} << 24 | std::uint64_t{p.reaping} << 16 | std::uint64_t{p.at} << 8 |
                 p.operation.index());
    std::visit([&](const auto& operation) { put_op(out, operation); }, p.operation);
  }
  for (const Flight& f : world.flight)
    put(out, std::uint64_t{f.exported} << 4 | std::uint64_t{f.sent} << 3 | std::uint64_t{f.received} << 2 |
                 std::uint64_t{f.sender_closed} << 1 | std::uint64_t{f.receiver_closed});
  put(out, world.freed);
  return out;
}

class Explorer {
 public:
  // The scripts determine the sender and the receiver of each channel.
  Explorer(std::vector<Script> scripts, std::uint32_t tickets) : scripts_(std::move(scripts)), layout_{1, tickets, 1} {
    for (std::size_t i = 0; i < scripts_.size(); ++i) {
      for (const Action& action : scripts_[i]) {
        if (action.kind == Action::send) sender_[action.channel] = i;
        if (action.kind == Action::receive) receiver_[action.channel] = i;
      }
    }
  }

  // Returns what is wrong, or an empty string.
  std::string explore() {
    std::vector<World> open{World{}};
    seen_.insert(key_of(open.back(), scripts_.size()));
    while (!open.empty() && wrong_.empty()) {
      const World world = open.back();
      open.pop_back();
      bool moved = false;
      for (std::size_t i = 0; i < scripts_.size(); ++i) {
        if (!world.process[i].alive) continue;
        World next = world;
        if (step(next, i)) {
          moved = true;
          visit(next, open);
        }
        if (!is_done(world, i)) {  // or it dies here
          World dead = world;
          die(dead, i);
          visit(dead, open);
        }
      }
      if (!moved) check_end(world);
    }
    return wrong_;
  }

  std::size_t states() const { return seen_.size(); }
  std::size_t ends() const { return ends_; }

 private:
  bool is_done(const World& world, std::size_t i) const {
    const Process& p = world.process[i];
    return p.at >= scripts_[i].size() && std::holds_alternative<std::monostate>(p.operation);
  }

  void visit(const World& world, std::vector<World>& open) {
    check(world);
    if (seen_.insert(key_of(world, scripts_.size())).second) open.push_back(world);
  }

  // The kernel releases everything it held.
  static void die(World& world, std::size_t i) {
    world.process[i] = Process{};
    world.process[i].alive = false;
  }

  // Whether the file description of a channel is open anywhere: at its ends, or in flight.
  bool lease_lives(const World& world, std::size_t channel) const {
    const Flight& f = world.flight[channel];
    const bool receiver = world.process[receiver_[channel]].alive && !f.receiver_closed;
    const bool at_sender = world.process[sender_[channel]].alive && !f.sender_closed;
    return at_sender || (f.sent && receiver);  // unread in the receiver's socket, or received
  }
  bool is_dead(const World& world, std::uint8_t holder) const {
    return holder >= 16 ? !lease_lives(world, holder - 16U) : !world.process[holder].alive;
  }
  bool is_locked(const World& world, std::uint8_t holder) const {
    return std::ranges::any_of(world.process, [&](const Process& p) { return p.alive && p.reaping == holder; });
  }

  // One step of a process: one access of its operation, or the start of its next action. False when it has to
  // wait, or is done.
  bool step(World& world, std::size_t i) {
    Process& p = world.process[i];
    if (!std::holds_alternative<std::monostate>(p.operation)) {
      advance(world, i);
      return true;
    }
    if (p.at >= scripts_[i].size()) return false;
    return begin(world, i, scripts_[i][p.at]);
  }

  bool begin(World& world, std::size_t i, const Action& action) {
    Process& p = world.process[i];
    Flight& f = world.flight[action.channel];
    const auto row = static_cast<std::uint32_t>(i);
    switch (action.kind) {
      case Action::publish:
        // The owner does not have it back yet.
        if (is_live(world.memory.load(layout_.entry(0)))) return skip(p);
        p.operation = Publish{.entry = 0, .offset = 4096, .bytes = 64};
        return true;
      case Action::export_to:
        if (!p.claims) return skip(p);
        p.operation = Export{.entry = 0, .holder = kFirstLease + action.channel};
        return true;
      case Action::send:
        if (!f.exported || f.sender_closed) return skip(p);
        f.sent = true;
        return skip(p);
      case Action::receive:
        if (f.sent) {
          f.received = true;
          return skip(p);
        }
        if (world.process[sender_[action.channel]].alive && !is_past(world, sender_[action.channel], action.channel)) return false;
        return skip(p);  // no message will come
      case Action::import:
      case Action::import_again:
        if (!f.received) return skip(p);
        p.operation = Import{.ticket = f.ticket, .generation = f.generation, .entry = 0, .entry_gen = f.entry_generation, .row = row};
        return true;
      case Action::release: {
        if (!p.claims) return skip(p);
        p.claims = false;
        Release release;
        release.row = row;
        p.operation = release;
        return true;
      }
      case Action::retire: p.operation = Retire{.entry = 0}; return true;
      case Action::close:
        if (sender_[action.channel] == i) f.sender_closed = true;
        if (receiver_[action.channel] == i) f.receiver_closed = true;
        return skip(p);
      case Action::reap: return begin_reap(world, i);
    }
    return false;
  }

  // Locks the first dead holder that is not being reaped. If there is none, the script continues.
  bool begin_reap(World& world, std::size_t i) {
    Process& p = world.process[i];
    for (std::uint8_t holder = 0; holder < 16 + kChannels; ++holder) {
      if (holder < 16 && holder >= scripts_.size()) continue;
      if (holder >= 16 && sender_[holder - 16U] == kNone) continue;
      if (!is_dead(world, holder) || is_locked(world, holder)) continue;
      if (reaped_already(world, holder)) continue;
      p.reaping = holder;
      p.operation = Reap{.holder = holder >= 16 ? kFirstLease + holder - 16U : holder};
      return true;
    }
    return skip(p);
  }

  // Only to reduce the number of states: a holder without claims need not be reaped again.
  bool reaped_already(const World& world, std::uint8_t holder) const {
    const HolderId id = holder >= 16 ? kFirstLease + holder - 16U : holder;
    if (holder == 0 && world.memory.load(Layout::kOrphan) == 0) return false;
    if (holder < 16 && (world.memory.load(layout_.mask(0, holder)) & bit_of(holder)) != 0) return false;
    for (std::uint32_t t = 0; t < layout_.tickets; ++t) {
      const TicketWord ticket = TicketWord::of(world.memory.load(layout_.ticket(t)));
      if (!ticket.is_free() && ticket.holder == id) return false;
    }
    return true;
  }

  static bool skip(Process& p) {
    ++p.at;
    return true;
  }
  bool is_past(const World& world, std::size_t i, std::uint8_t channel) const {
    const Script& script = scripts_[i];
    for (std::size_t at = world.process[i].at; at < script.size(); ++at) {
      if (script[at].kind == Action::send && script[at].channel == channel) return false;
    }
    return true;
  }

  void advance(World& world, std::size_t i) {
    Process& p = world.process[i];
    const Action action = p.at < scripts_[i].size() ? scripts_[i][p.at] : Action{};
    const bool done = std::visit(
        [&](auto& operation) {
          if constexpr (!std::is_same_v<std::decay_t<decltype(operation)>, std::monostate>) {
            operation.step(world.memory, layout_);
            if (operation.outcome == Outcome::running) return false;
            finish(world, i, action, operation);
          }
          return true;
        },
        p.operation);
    if (!done) return;
    p.operation = {};
    p.reaping = kNobody;
    ++p.at;
  }

  void finish(World& world, std::size_t i, const Action&, const Publish& made) {
    world.process[i].claims = true;
    world.process[i].claimed = made.generation;
    world.freed = false;
  }
  void finish(World& world, std::size_t, const Action& action, const Export& made) {
    Flight& f = world.flight[action.channel];
    f.exported = made.outcome == Outcome::done;
    f.ticket = made.ticket;
    f.generation = made.generation;
    f.entry_generation = entry_generation(world.memory.load(layout_.entry(0)));
  }
  void finish(World& world, std::size_t i, const Action& action, const Import& import) {
    if (import.outcome != Outcome::done) return;
    if (action.kind == Action::import_again) wrong_ = "a ticket was imported twice";
    world.process[i].claims = true;
    world.process[i].claimed = import.entry_gen;
  }
  void finish(World& world, std::size_t, const Action&, const Release& release) {
    if (release.retired) free_memory(world);
  }
  void finish(World& world, std::size_t, const Action&, const Retire& retire) {
    if (retire.outcome == Outcome::done) free_memory(world);
  }
  void finish(World& world, std::size_t, const Action&, const Reap& reap) {
    if (reap.freed_any) free_memory(world);
  }
  void free_memory(World& world) { world.freed = true; }

  // Invariants of every state: a process that may use the bytes has them; a ticket in flight can be imported.
  void check(const World& world) {
    const Word entry = world.memory.load(layout_.entry(0));
    for (std::size_t i = 0; i < scripts_.size(); ++i) {
      const Process& p = world.process[i];
      if (p.alive && p.claims && entry != live_entry(p.claimed)) wrong_ = "the slot was freed under process " + std::to_string(i);
    }
    for (std::size_t c = 0; c < kChannels; ++c) {
      const Flight& f = world.flight[c];
      if (!f.sent || f.received || !lease_lives(world, c) || !world.process[receiver_[c]].alive) continue;
      const TicketWord there = TicketWord::of(world.memory.load(layout_.ticket(f.ticket)));
      if (there.state != TicketState::held || there.generation != f.generation) wrong_ = "a ticket on its way was dropped";
      if (entry != live_entry(f.entry_generation)) wrong_ = "the slot was freed under a ticket on its way";
    }
  }

  // No process can take a step, and every live one has released everything. One reap follows, and the owner, if
  // it is alive, looks for entries that linger.
  void check_end(const World& at_the_end) {
    ++ends_;
    World world = at_the_end;
    for (std::uint8_t holder = 0; holder < scripts_.size(); ++holder) {
      if (!world.process[holder].alive) run_reap(world, holder);
    }
    for (std::uint8_t c = 0; c < kChannels; ++c) {
      if (sender_[c] != kNone && !lease_lives(world, c)) run_reap(world, kFirstLease + c);
    }
    if (world.process[0].alive) (void)run(Retire{.entry = 0}, world.memory, layout_);
    if (is_live(world.memory.load(layout_.entry(0)))) wrong_ = "the slot is still live after one reap";
    if (world.memory.load(layout_.mask(0, 0)) != 0) wrong_ = "a claim is left after one reap";
    for (std::uint32_t t = 0; t < layout_.tickets; ++t) {
      if (!TicketWord::of(world.memory.load(layout_.ticket(t))).is_free()) wrong_ = "a ticket is left after one reap";
    }
  }
  void run_reap(World& world, HolderId holder) { (void)run(Reap{.holder = holder}, world.memory, layout_); }

  static constexpr std::size_t kNone = SIZE_MAX;
  std::vector<Script> scripts_;
  Layout layout_;
  std::array<std::size_t, kChannels> sender_{kNone, kNone};
  std::array<std::size_t, kChannels> receiver_{kNone, kNone};
  std::unordered_set<std::string> seen_;
  std::size_t ends_ = 0;
  std::string wrong_;
};

void explore(const char* what, std::vector<Script> scripts, std::uint32_t tickets = 1) {
  Explorer explorer(std::move(scripts), tickets);
  EXPECT_EQ(explorer.explore(), "") << what;
  did(std::string(what) + ": " + std::to_string(explorer.states()) + " states, " + std::to_string(explorer.ends()) + " ends");
}

using A = Action;

const Script kOwner{{A::publish}, {A::export_to, 0}, {A::send, 0}, {A::release}, {A::retire}, {A::close, 0}, {A::retire}};
const Script kPeer{{A::receive, 0}, {A::import, 0}, {A::import_again, 0}, {A::release}, {A::close, 0}};

TEST(EntryExplorer, AnOwnerAndAPeerWithADeathAtAnyStep) { explore("an owner and a peer", {kOwner, kPeer}); }

TEST(EntryExplorer, AnOwnerAndAPeerThatReap) {
  Script owner = kOwner;
  owner.insert(owner.end(), {{A::reap}, {A::reap}, {A::retire}});
  Script peer = kPeer;
  peer.insert(peer.end(), {{A::reap}, {A::reap}});
  explore("an owner and a peer that reap", {owner, peer});
}

TEST(EntryExplorer, AnOwnerWhoseStorageComesBackAndIsUsedAgain) {
  // The ticket is sent there and back, and the entry is then used a second time while the first ticket's bytes
  // still exist.
  const Script owner{{A::publish}, {A::export_to, 0}, {A::send, 0}, {A::release}, {A::receive, 1}, {A::import, 1}, {A::release},
                     {A::retire},  {A::publish},      {A::release}, {A::retire},  {A::close, 0},   {A::close, 1}};
  const Script peer{{A::receive, 0}, {A::import, 0},       {A::export_to, 1}, {A::send, 1},
                    {A::release},    {A::import_again, 0}, {A::close, 0},     {A::close, 1}};
  explore("there and back, and used again", {owner, peer}, 2);
}

TEST(EntryExplorer, ThreeProcessesInAChain) {
  const Script middle{{A::receive, 0}, {A::import, 0}, {A::export_to, 1}, {A::send, 1}, {A::release}, {A::close, 0}, {A::close, 1}};
  const Script last{{A::receive, 1}, {A::import, 1}, {A::release}, {A::close, 1}};
  const Script owner{{A::publish}, {A::export_to, 0}, {A::send, 0}, {A::release}, {A::retire}, {A::close, 0}};
  explore("three in a chain", {owner, middle, last}, 2);
}

TEST(EntryExplorer, TwoReapersAndOneOfThemDies) {
  const Script owner{{A::publish}, {A::export_to, 0}, {A::send, 0}, {A::release}, {A::close, 0}};
  const Script peer{{A::receive, 0}, {A::import, 0}, {A::release}, {A::close, 0}, {A::reap}, {A::reap}};
  const Script reaper{{A::reap}, {A::reap}, {A::reap}};
  explore("an owner, a peer and a reaper", {owner, peer, reaper});
}

TEST(EntryExplorer, TwoPeersOfOneOwnerThatReapEachOther) {
  const Script owner{{A::publish}, {A::export_to, 0}, {A::send, 0},  {A::export_to, 1}, {A::send, 1},
                     {A::release}, {A::retire},       {A::close, 0}, {A::close, 1}};
  const auto peer = [](std::uint8_t channel) {
    return Script{{A::receive, channel}, {A::import, channel}, {A::release}, {A::close, channel}, {A::reap}, {A::reap}};
  };
  explore("two peers that reap", {owner, peer(0), peer(1)}, 2);
}

TEST(EntryExplorer, AChainWhoseEndsReap) {
  const Script owner{{A::publish}, {A::export_to, 0}, {A::send, 0}, {A::release}, {A::retire}, {A::close, 0}, {A::reap}, {A::retire}};
  const Script middle{{A::receive, 0}, {A::import, 0}, {A::export_to, 1}, {A::send, 1},
                      {A::release},    {A::close, 0},  {A::close, 1},     {A::reap}};
  const Script last{{A::receive, 1}, {A::import, 1}, {A::import_again, 1}, {A::release}, {A::close, 1}, {A::reap}, {A::reap}};
  explore("a chain whose ends reap", {owner, middle, last}, 2);
}

}  // namespace
}  // namespace berth::testing
