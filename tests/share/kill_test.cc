// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <functional>
#include <memory>
#include <numeric>
#include <set>

#include "share/share_support.h"
#include "share/traced.h"
#include "support/errors.h"
#include "support/everything.h"
#include "support/scale.h"

// Every party of sharing is killed at every entry and exit of every system call, and after every instruction of
// its operations on the words of a segment. Whatever it leaves behind: no process waits, none sees a wrong
// byte, a bystander keeps its own storages, and one reap removes everything.
namespace berth::testing {
namespace {

using namespace std::chrono_literals;

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

// Everything that a helper has sent, until its end is closed.
std::vector<Channel::Message> receive_all(Channel& channel) {
  std::vector<Channel::Message> all;
  for (;;) {
    try {
      all.push_back(channel.receive(1000ms));
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::peer_dead) << error.what();
      return all;
    }
  }
}

// Files of shared memory that this process has mapped.
std::set<std::string> mapped_files() {
  std::set<std::string> inodes;
  std::ifstream maps("/proc/self/maps");
  for (std::string line; std::getline(maps, line);) {
    std::istringstream words(line);
    std::string range, rights, offset, device, inode, path;
    words >> range >> rights >> offset >> device >> inode >> path;
    if (path.find("memfd:berth") != std::string::npos) inodes.insert(inode);
  }
  return inodes;
}

// A party in a situation. `prepare` runs before the helper continues, `verify` when it is dead; between the two
// the helper is killed at some point.
struct Scenario {
  const char* role;
  const char* situation;
  const char* helper;
  std::function<void(Helper&)> prepare = [](Helper&) {};
  std::function<void(Helper&)> verify = [](Helper&) {};
};

class Kill : public ::testing::Test {
 protected:
  Kill() {
    folder_ = "/dev/shm/berth-kill-" + std::to_string(getpid());
    setenv("BERTH_SHM_DIR", folder_.c_str(), 1);
    warm_up();
    descriptors_ = open_descriptors();
    files_ = mapped_files();
  }
  ~Kill() override {
    bystander_ = {};
    named_bystander_ = {};
    std::filesystem::remove_all(folder_);
    unsetenv("BERTH_SHM_DIR");
  }

  // Opens once what stays open for good.
  void warm_up() {
    auto [one, other] = Channel::make_pair();
    bystander_ = pattern(1000);
    named_bystander_ = create_shared("bystander", {1000}, DType::i32);
    named_bystander_.copy_from(bystander_);
    one.send(bystander_);
    (void)other.receive();
    one.close();
    other.close();
    reap_shared();
  }

  void check_that_nothing_is_left(const std::string& when) {
    EXPECT_TRUE(is_pattern(bystander_) && is_pattern(named_bystander_)) << when << ": a bystander's bytes changed";
    // The kernel closes what was in flight to a dead process a moment later.
    const bool clean = comes_true([&] {
      reap_shared();
      return default_allocator("shared")->stats().live_blocks == 1 && open_descriptors() == descriptors_;
    });
    EXPECT_TRUE(clean) << when << ": " << default_allocator("shared")->stats().live_blocks - 1 << " blocks and "
                       << open_descriptors() - descriptors_ << " descriptors are left";
    EXPECT_EQ(mapped_files(), files_) << when;
    (void)reap_named();
    EXPECT_EQ(list_shared().size(), 1U) << when << ": a name is left";
    EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder_), {}), 1) << when << ": a file is left";
  }

  std::vector<Scenario> scenarios();
  std::vector<Scenario> stepped_scenarios();
  void of_a_dead_owner(Helper& helper, bool before_it_attaches);
  void with_a_dead_peer(Helper& helper, bool before_it_attaches);

  std::string folder_;
  Storage bystander_;
  Storage named_bystander_;
  std::size_t descriptors_ = 0;
  std::set<std::string> files_;
  std::vector<Storage> held_;  // by this process, in the scenario
  // The other processes of the scenario, dead. Their channels stay open until the helper is dead: a close reaps.
  std::vector<std::unique_ptr<Helper>> others_;
};

// Leaves claims of a dead process on storages of this one.
void Kill::with_a_dead_peer(Helper& helper, bool before_it_attaches) {
  Helper& victim = *others_.emplace_back(std::make_unique<Helper>("stay"));
  for (int i = 0; i < 3; ++i) victim.channel().send(pattern(100 + i));
  victim.channel().send_bytes({});
  EXPECT_EQ(victim.channel().receive().tag, 3U);
  held_ = {pattern(5000)};
  helper.channel().send(held_[0]);
  if (!before_it_attaches) {
    EXPECT_TRUE(helper.run_to_mark());
  }
  victim.kill();
}

// Storages of a dead owner: the helper gets two of them, and this process keeps all three.
void Kill::of_a_dead_owner(Helper& helper, bool before_it_attaches) {
  Helper& owner = *others_.emplace_back(std::make_unique<Helper>("own-and-stay"));
  for (;;) {
    Channel::Message message = owner.channel().receive();
    if (!message.storage) break;
    held_.push_back(*message.storage);
  }
  helper.channel().send(held_[0]);
  helper.channel().send(held_[2]);
  if (!before_it_attaches) {
    EXPECT_TRUE(helper.run_to_mark());
  }
  owner.kill();
}

// Scenarios for the sections that are single-stepped. The helper waits at its first mark while the others die.
std::vector<Scenario> Kill::stepped_scenarios() {
  const auto tickets = std::make_shared<std::vector<Ticket>>();
  const auto look = [this, tickets](Helper&) {
    for (const Storage& x : held_) EXPECT_TRUE(is_pattern(x)) << "what another process also had";
    for (const Ticket& ticket : *tickets) (void)refuse_ticket(ticket);
    tickets->clear();
    held_.clear();
    others_.clear();
  };
  const auto a_ticket = [this, tickets](Helper& helper) {
    held_ = {pattern(5000), pattern(300)};
    helper.channel().send(held_[0]);
    tickets->push_back(export_ticket(held_[1]));
    helper.channel().send_bytes(tickets->back().bytes());
    EXPECT_TRUE(helper.run_to_mark());
  };
  const auto a_ticket_of_a_dead_owner = [this, tickets](Helper& helper) {
    Helper& owner = *others_.emplace_back(std::make_unique<Helper>("own-and-stay"));
    for (;;) {
      Channel::Message message = owner.channel().receive();
      if (!message.storage) break;
      held_.push_back(*message.storage);
    }
    helper.channel().send(held_[0]);
    tickets->push_back(export_ticket(held_[2]));
    helper.channel().send_bytes(tickets->back().bytes());
    EXPECT_TRUE(helper.run_to_mark());
    owner.kill();
    held_.pop_back();  // the helper, if it is alive, is the last process that has it
  };
  return {
      {"owner", "publishes, exports, lets go, revokes", "step-owner", [](Helper& helper) { EXPECT_TRUE(helper.run_to_mark()); }, look},
      {"peer", "imports, exports, lets go, revokes", "step-peer", a_ticket, look},
      {"peer", "the same of a dead owner", "step-peer", a_ticket_of_a_dead_owner, look},
      {"reaper", "of a dead peer", "step-reaper", [this](Helper& helper) { with_a_dead_peer(helper, false); }, look},
      {"reaper", "of a dead owner", "step-reaper", [this](Helper& helper) { of_a_dead_owner(helper, false); }, look},
  };
}

std::vector<Scenario> Kill::scenarios() {
  const auto look_at_messages = [](Helper& helper) {
    const std::vector<Channel::Message> got = receive_all(helper.channel());
    for (const Channel::Message& message : got) {
      if (message.storage) {
        EXPECT_TRUE(is_pattern(*message.storage)) << "message " << message.tag;
      }
    }
    reap_shared();
    for (const Channel::Message& message : got) {
      if (message.storage) {
        EXPECT_TRUE(is_pattern(*message.storage)) << "message " << message.tag << ", after the reap";
      }
    }
  };
  const auto look_at_held = [this, look_at_messages](Helper& helper) {
    look_at_messages(helper);
    for (const Storage& x : held_) EXPECT_TRUE(is_pattern(x)) << "what another process also had";
    held_.clear();
    others_.clear();
  };
  const auto send_two = [this](Helper& helper) {
    held_ = {pattern(5000), pattern(300)};
    helper.channel().send(held_[0]);
    helper.channel().send(held_[1]);
    held_.pop_back();  // only the helper has that one
  };
  const auto dead_peer = [this](Helper& helper) { with_a_dead_peer(helper, true); };
  const auto dead_owner = [this](Helper& helper) { of_a_dead_owner(helper, true); };
  const auto a_name = [this](Helper&) {
    held_ = {create_shared("kill", {5000}, DType::i32)};
    held_[0].copy_from(pattern(5000, "cpu"));
  };
  const auto a_dead_name = [](Helper&) {
    Helper victim("leave-named", "", "kill");
    EXPECT_EQ(victim.wait_for_end(), -1 - SIGKILL);
  };
  const auto name_is_free = [](Helper&) { EXPECT_ERROR((void)open_shared("kill"), AccessError, ErrorCode::not_found); };
  const auto name_is_good = [look_at_held](Helper& helper) {
    EXPECT_TRUE(is_pattern(open_shared("kill")));
    look_at_held(helper);
  };
  return {
      {"creator", "memory without a name", "create"},
      {"creator", "a name", "create-named", [](Helper&) {}, name_is_free},
      {"owner", "sends to a peer", "own", [](Helper&) {}, look_at_messages},
      {"peer", "receives, returns and lets go", "peer", send_two, look_at_held},
      {"peer", "of a dead owner, with a bystander", "peer", dead_owner, look_at_held},
      {"peer", "opens a name", "open-named", a_name, name_is_good},
      {"reaper", "of a dead peer", "reap", dead_peer, look_at_held},
      {"reaper", "of a dead owner, with a bystander", "reap", dead_owner, look_at_held},
      {"reaper", "of a dead name", "collect-named", a_dead_name, name_is_free},
  };
}

// Runs a helper up to a stop. Returns whether it got there.
template <class Advance>
bool run_to(const Scenario& scenario, const char* how, std::size_t stop, Advance advance, std::size_t* stops) {
  Helper helper(scenario.helper, how, "kill");
  scenario.prepare(helper);
  const std::size_t reached = advance(helper, stop);
  if (stops != nullptr) *stops = reached;
  const bool there = helper.process() > 0;
  if (there)
    helper.kill();
  else
    EXPECT_EQ(helper.exit_code(), 0) << scenario.role << ", " << scenario.situation;
  scenario.verify(helper);
  return there;
}

// Runs to that entry or exit of a system call, or to the end. Returns how many there were.
std::size_t advance_calls(Helper& helper, std::size_t stop) {
  if (!helper.run_to_mark()) return 0;
  for (std::size_t calls = 0;; ++calls) {
    if (calls == stop || helper.next_call() == Helper::Stop::end) return calls;
  }
}

TEST_F(Kill, AtEverySystemCallNothingIsLeftAndNobodyWaits) {
  const std::vector<Scenario> all = scenarios();
  std::vector<std::size_t> stops(all.size());
  std::size_t total = 0;
  for (std::size_t i = 0; i < all.size(); ++i) {
    EXPECT_FALSE(run_to(all[i], "traced", SIZE_MAX, advance_calls, &stops[i])) << "it runs to its end";
    check_that_nothing_is_left(std::string(all[i].role) + ", " + all[i].situation + ", not killed");
    ++stops[i];  // the stop before the first call
    total += stops[i];
  }
  const std::size_t wanted = scaled(10'000, 60);
  const std::size_t stride = std::max<std::size_t>(1, total / wanted);
  const std::size_t passes = std::max<std::size_t>(1, (wanted + total - 1) / total);
  std::size_t kills = 0;
  for (std::size_t i = 0; i < all.size(); ++i) {
    std::set<std::size_t> killed;
    for (std::size_t pass = 0; pass < passes; ++pass) {
      for (std::size_t stop = seed() % stride; stop < stops[i]; stop += stride) {
        if (run_to(all[i], "traced", stop, advance_calls, nullptr)) {
          killed.insert(stop);
          ++kills;
        }
        check_that_nothing_is_left(std::string(all[i].role) + ", " + all[i].situation + ", stop " + std::to_string(stop));
        if (HasFailure()) return;
      }
    }
    if (stride == 1) {
      EXPECT_EQ(killed.size(), stops[i]) << "every stop was reached";
    }
    did(std::string(all[i].role) + ", " + all[i].situation + ": " + std::to_string(stops[i]) + " stops, " + std::to_string(killed.size()) +
        " of them killed at, " + std::to_string(passes) + " times");
  }
  did(std::to_string(kills) + " kills");
}

// Runs to the mark with that number; the helper is at the first already.
bool go_to_mark(Helper& helper, std::size_t number) {
  for (std::size_t at = 1; at < number; ++at) {
    if (!helper.run_to_mark()) return false;
  }
  return true;
}

TEST_F(Kill, AfterEveryInstructionOfACriticalSectionToo) {
  const std::vector<Scenario> all = stepped_scenarios();
  // From one mark to the next.
  struct Section {
    std::size_t scenario;
    std::size_t mark;
    std::size_t steps;
  };
  std::vector<Section> sections;
  std::size_t total = 0;
  for (std::size_t i = 0; i < all.size(); ++i) {
    for (std::size_t mark = 1;; mark += 2) {
      std::size_t steps = 0;
      const auto count = [&](Helper& helper, std::size_t) -> std::size_t {
        if (!go_to_mark(helper, mark)) return 0;
        while (helper.next_step() == Helper::Stop::step) ++steps;
        return steps;
      };
      (void)run_to(all[i], "stepped", SIZE_MAX, count, nullptr);
      check_that_nothing_is_left("counting the steps of " + std::string(all[i].helper));
      if (steps == 0) break;
      sections.push_back({i, mark, steps});
      total += steps;
    }
  }
  EXPECT_EQ(sections.size(), 15U);
  const std::size_t stride = 1000 / scaled(1000, 10);  // every one at full scale
  std::size_t kills = 0;
  for (const Section& section : sections) {
    std::size_t killed = 0;
    for (std::size_t stop = seed() % stride; stop < section.steps; stop += stride) {
      const auto advance = [&](Helper& helper, std::size_t wanted_steps) -> std::size_t {
        std::size_t steps = 0;
        if (!go_to_mark(helper, section.mark)) return 0;
        while (steps < wanted_steps && helper.next_step() == Helper::Stop::step) ++steps;
        return steps;
      };
      if (run_to(all[section.scenario], "stepped", stop, advance, nullptr)) ++killed;
      check_that_nothing_is_left(std::string(all[section.scenario].situation) + ", step " + std::to_string(stop));
      if (HasFailure()) return;
    }
    kills += killed;
    did(std::string(all[section.scenario].role) + ", " + all[section.scenario].situation + ", section " +
        std::to_string(section.mark / 2 + 1) + ": " + std::to_string(section.steps) + " instructions, killed after " +
        std::to_string(killed));
  }
  did(std::to_string(total) + " instructions, " + std::to_string(kills) + " kills");
}

}  // namespace
}  // namespace berth::testing
