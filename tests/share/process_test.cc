// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <numeric>
#include <optional>

#include "base/random.h"
#include "os/file/shared_file.h"
#include "os/system.h"
#include "share/segment.h"
#include "share/share_support.h"
#include "share/traced.h"
#include "support/errors.h"
#include "support/everything.h"
#include "support/process.h"
#include "support/scale.h"

namespace berth::testing {

using namespace internal;
using namespace internal::share;
namespace {

using namespace std::chrono_literals;

class SharedProcess : public ::testing::Test {
 protected:
  SharedProcess() {
    folder_ = "/dev/shm/berth-process-" + std::to_string(getpid());
    setenv("BERTH_SHM_DIR", folder_.c_str(), 1);
  }
  ~SharedProcess() override {
    std::filesystem::remove_all(folder_);
    unsetenv("BERTH_SHM_DIR");
  }
  static Storage pattern(std::int64_t count) {
    std::vector<std::int32_t> values(static_cast<std::size_t>(count));
    std::iota(values.begin(), values.end(), 17);
    return from_data(values, {count}, "shared");
  }
  static bool is_pattern(const Storage& x) {
    std::int32_t expected = 17;
    for (const std::int32_t value : x.elements<const std::int32_t>()) {
      if (value != expected++) return false;
    }
    return true;
  }
  static std::uint64_t live() { return default_allocator("shared")->stats().live_blocks; }
  static bool none_is_left() {
    return comes_true([] {
      reap_shared();
      return live() == 0;
    });
  }
  std::string folder_;
};

TEST_F(SharedProcess, TenThousandStoragesTakeAFewDescriptors) {
  const std::uint64_t count = scaled(10'000, 500);
  std::uint64_t theirs = 0;
  {
    Helper peer("hold-many");
    std::vector<Storage> all;
    for (std::uint64_t i = 0; i < count; ++i) {
      all.push_back(full({64}, static_cast<std::int32_t>(i), DType::i32, "shared"));
      peer.channel().send(all.back());
    }
    peer.channel().send_bytes({});
    theirs = peer.channel().receive().tag;
    EXPECT_LT(theirs, 100U);
    EXPECT_LT(open_descriptors(), 100U);
    all.clear();
    EXPECT_EQ(live(), count) << "the peer holds them";
    did(std::to_string(count) + " storages: " + std::to_string(open_descriptors()) + " descriptors here, " + std::to_string(theirs) +
        " there");
  }
  EXPECT_TRUE(none_is_left()) << live();
}

TEST_F(SharedProcess, AForkedWorkerAllocatesOnAPoolOfItsOwn) {
  Helper loader("fork-loaders");
  EXPECT_EQ(loader.wait_for_end(), 0);
}

TEST_F(SharedProcess, SeveralProcessesShareTheImportsOfATicket) {
  constexpr std::uint32_t kImports = 1000;
  std::optional<Storage> x = pattern(5000);
  const Ticket ticket = export_ticket(*x, {.imports = kImports});
  {
    std::vector<std::unique_ptr<Helper>> helpers;
    for (int i = 0; i < 4; ++i) helpers.push_back(std::make_unique<Helper>("import-some"));
    for (auto& helper : helpers) {
      helper->channel().send(*x);
      helper->channel().send_bytes(ticket.bytes());
    }
    x.reset();
    std::uint64_t got = 0;
    for (auto& helper : helpers) got += helper->channel().receive().tag;
    EXPECT_EQ(got, kImports) << "none is lost, and none is given twice";
    EXPECT_EQ(imports_left(ticket), 0U);
    EXPECT_EQ(live(), 1U);
  }
  EXPECT_TRUE(none_is_left()) << live();
}

// Killed at any moment, an importer has taken whole imports: the rest are for the others.
TEST_F(SharedProcess, ThatIsKilledWhileItImportsLeavesTheRestToOthers) {
  Random random(seed());
  const std::uint64_t rounds = scaled(200, 10);
  for (std::uint64_t i = 0; i < rounds; ++i) {
    constexpr std::uint32_t kImports = ExportOptions::kMostImports;
    std::optional<Storage> x = pattern(500);
    const Ticket ticket = export_ticket(*x, {.imports = kImports});
    {
      Helper helper("import-some");
      helper.channel().send(*x);
      helper.channel().send_bytes(ticket.bytes());
      if (random.one_in(4))
        usleep(static_cast<useconds_t>(random.below(3000)));
      else
        (void)comes_true([&, some = 1 + random.below(kImports / 4)] { return imports_left(ticket) <= kImports - some; });
      helper.kill();
    }
    reap_shared();
    const std::size_t left = imports_left(ticket);
    for (std::size_t k = 0; k < std::min<std::size_t>(left, 3); ++k) ASSERT_TRUE(is_pattern(import_ticket(ticket)));
    EXPECT_EQ(imports_left(ticket), left - std::min<std::size_t>(left, 3));
    EXPECT_EQ(refuse_ticket(ticket), left > 3);
    x.reset();
    ASSERT_TRUE(none_is_left()) << live();
  }
  did(std::to_string(rounds) + " importers killed");
}

TEST_F(SharedProcess, AnOwnersForkedChildDoesNotKeepItAlive) {
  Helper owner("fork-and-stay");
  const Storage x = *owner.channel().receive().storage;
  const auto child = static_cast<pid_t>(owner.channel().receive().tag);
  const auto content = internal::share::read_ticket(export_ticket(x).bytes());
  const auto segment = internal::share::Segment::find(content->segment);
  const auto used = [&] { return os::facts_of(segment->descriptor())->used_bytes; };
  EXPECT_GT(used(), 8U << 20);
  owner.kill();
  EXPECT_TRUE(comes_true([&] {
    reap_shared();
    return used() < 4U << 20;
  })) << "what only the dead owner had is gone, though its child has the segment mapped";
  EXPECT_TRUE(is_pattern(x)) << "and what is held here is not";
  ASSERT_EQ(list_shared().size(), 1U);
  EXPECT_FALSE(list_shared()[0].is_dead()) << "the child's own name lives with the child";
  kill(child, SIGKILL);
  EXPECT_TRUE(comes_true([] { return !list_shared().empty() && list_shared()[0].is_dead(); }));
  EXPECT_EQ(reap_named().size(), 1U);
  EXPECT_TRUE(list_shared().empty());
}

TEST_F(SharedProcess, AStoppedProcessIsNotDead) {
  Helper peer("stay");
  Storage x = pattern(1000);
  peer.channel().send(x);
  peer.channel().send_bytes({});
  EXPECT_EQ(peer.channel().receive().tag, 1U);
  kill(peer.process(), SIGSTOP);
  x = {};
  reap_shared();
  EXPECT_EQ(live(), 1U) << "it is stopped, and has its storage still";
  peer.kill();
  EXPECT_TRUE(none_is_left());
}

TEST_F(SharedProcess, AStoppedReaderOfANameIsWaitedForAMoment) {
  const Storage w = create_shared("gate", {10}, DType::u8);
  // Another file description that locks the gate, like that of a process that was stopped while opening.
  const int other = open((folder_ + "/gate").c_str(), O_RDWR | O_CLOEXEC);
  ASSERT_TRUE(*os::try_lock_byte(other, internal::share::kGateLock));
  EXPECT_ERROR((void)open_shared("gate"), DeviceError, ErrorCode::timeout);
  EXPECT_TRUE(reap_named().empty());
  close(other);
  EXPECT_EQ(open_shared("gate").num_elements(), 10U);
}

TEST_F(SharedProcess, AsManyProcessesAsThereAreRowsCanHoldASegment) {
  const Storage x = pattern(100);
  const int other = dup(shared_location(x).descriptor);
  const Result<os::Descriptor> locks = os::open_again(other);
  for (std::uint32_t row = 1; row < 256; ++row) ASSERT_TRUE(*os::try_lock_byte(locks->number(), internal::share::lock_of(row)));
  {
    Helper peer("peer");
    peer.channel().send(x);
    EXPECT_EQ(peer.wait_for_end(), -1 - SIGABRT) << "it is refused with limit_exceeded, which nothing catches";
  }
  os::unlock_byte(locks->number(), internal::share::lock_of(200));
  Helper peer("stay");
  peer.channel().send(x);
  peer.channel().send_bytes({});
  EXPECT_EQ(peer.channel().receive().tag, 1U) << "one row is enough for one more";
  close(other);
}

TEST_F(SharedProcess, NoProgramThatIsStartedInheritsADescriptor) {
  const Ran ran = run_command(std::string(BERTH_SHARE_HELPER) + " exec-lists plain listed 3</dev/null");
  EXPECT_EQ(ran.output.find("memfd"), std::string::npos) << ran.output;
  EXPECT_EQ(ran.output.find("socket"), std::string::npos) << ran.output;
  EXPECT_EQ(ran.output.find("listed"), std::string::npos) << ran.output;
  EXPECT_NE(ran.output.find("/proc"), std::string::npos) << ran.output;
  EXPECT_EQ(reap_named().size(), 1U) << "and what exec left behind is dead";
}

TEST_F(SharedProcess, LivenessDoesNotDependOnProcessIds) {
  // In a PID namespace of its own the helper has the process id 2, as some other process has here.
  const std::string command =
      std::string("unshare --user --map-root-user --pid --fork sh -c '") + BERTH_SHARE_HELPER + " leave-named plain spaced; true'";
  const bool spaces = run_command("unshare --user --map-root-user --pid --fork true").exit_code == 0;
  did(spaces ? "in another name space of process ids" : "no name spaces of process ids here: in this one");
  (void)run_command(spaces ? command : std::string(BERTH_SHARE_HELPER) + " leave-named plain spaced");
  ASSERT_EQ(list_shared().size(), 1U);
  EXPECT_TRUE(list_shared()[0].is_dead());
  if (spaces) {
    EXPECT_LE(list_shared()[0].holders[0].process, 2) << "a number that lives here, and means someone else";
  }
  EXPECT_EQ(reap_named().size(), 1U);
}

// Runs the helper as a user who has nothing else on the machine.
Ran run_as_nobody(const std::string& arguments) {
  return run_command(std::string("setpriv --reuid 65534 --regid 65534 --clear-groups ") + BERTH_SHARE_HELPER + " " + arguments);
}
bool can_be_nobody() { return geteuid() == 0 && run_command("setpriv --reuid 65534 --regid 65534 --clear-groups true").exit_code == 0; }

TEST_F(SharedProcess, AnotherUserReachesNeitherStoragesNorListeners) {
  if (!can_be_nobody()) GTEST_SKIP() << "only root can try to be someone else, with setpriv";
  const Storage w = create_shared("private", {10}, DType::u8);
  Listener listener("private");
  const Ran opened = run_as_nobody("open-named plain private");
  EXPECT_NE(opened.output.find("opening the shared storage 'private': "), std::string::npos) << opened.output;
  EXPECT_NE(opened.output.find("Permission denied"), std::string::npos) << opened.output;
  EXPECT_NE(opened.output.find("BERTH_SHM_DIR"), std::string::npos) << "what would help: " << opened.output;
  const Ran created = run_as_nobody("create-named plain own");
  EXPECT_NE(created.output.find("Permission denied"), std::string::npos) << created.output;
  const std::string path = folder_ + "/.listen-private";
  const Ran connected = run_as_nobody("connect-raw plain " + path);
  EXPECT_EQ(connected.output, "Permission denied\n");
  EXPECT_ERROR((void)listener.accept(1ms), DeviceError, ErrorCode::timeout);
  // If its owner lets others in, they are turned away one by one.
  ASSERT_EQ(chmod(folder_.c_str(), 0711), 0);
  ASSERT_EQ(chmod(path.c_str(), 0666), 0);
  EXPECT_EQ(run_as_nobody("connect-raw plain " + path).output, "connected\n");
  EXPECT_ERROR((void)listener.accept(), AccessError, ErrorCode::permission_denied);
  ASSERT_EQ(chmod(folder_.c_str(), 0700), 0);
  // A file of another user in our own folder.
  ASSERT_EQ(chown((folder_ + "/private").c_str(), 65534, 65534), 0);
  EXPECT_ERROR((void)open_shared("private"), AccessError, ErrorCode::untrusted);
  ASSERT_EQ(chown((folder_ + "/private").c_str(), 0, 0), 0);
}

// In /dev/shm anyone may make the folder of anyone.
TEST_F(SharedProcess, AFolderThatAnotherUserMadeFirstIsNotUsed) {
  if (!can_be_nobody()) GTEST_SKIP() << "only root can try to be someone else, with setpriv";
  std::filesystem::create_directory(folder_);
  for (const mode_t mode : {mode_t{0700}, mode_t{0777}}) {
    ASSERT_EQ(chmod(folder_.c_str(), mode), 0);
    ASSERT_EQ(chown(folder_.c_str(), 65534, 65534), 0);
    EXPECT_ERROR((void)create_shared("x", {1}, DType::u8), AccessError, ErrorCode::untrusted);
    EXPECT_ERROR(Listener{"x"}, AccessError, ErrorCode::untrusted);
    EXPECT_ERROR((void)Channel::connect("x"), AccessError, ErrorCode::untrusted);
    EXPECT_TRUE(std::filesystem::is_empty(folder_));
  }
}

// In the folder that everybody has by default, as a user that nobody else is.
TEST_F(SharedProcess, TheFolderGoesWithTheLastNameAndIsNotLeftByAFailure) {
  if (!can_be_nobody()) GTEST_SKIP() << "only root can be a user without a folder, with setpriv";
  const std::string user = std::to_string(1'000'000 + getpid());
  const std::string folder = "/dev/shm/berth-" + user;
  const auto run = [&](const std::string& before, const std::string& arguments) {
    return run_command("env -u BERTH_SHM_DIR setpriv --reuid " + user + " --regid " + user + " --clear-groups sh -c '" + before + " exec " +
                       BERTH_SHARE_HELPER + " " + arguments + "'");
  };
  EXPECT_EQ(run("", "create-named plain gone").exit_code, 0);
  EXPECT_FALSE(std::filesystem::exists(folder)) << "after its last name";
  const Ran failed = run("ulimit -f 0;", "create-named plain gone");
  EXPECT_NE(failed.output.find("ulimit -f"), std::string::npos) << failed.output;
  EXPECT_FALSE(std::filesystem::exists(folder)) << "after a failure";
  (void)run("", "leave-named plain gone");
  EXPECT_TRUE(std::filesystem::exists(folder)) << "what was killed is there";
  EXPECT_EQ(run("", "reap-names").exit_code, 0);
  EXPECT_FALSE(std::filesystem::exists(folder)) << "until somebody reaps";
  EXPECT_EQ(run("", "listen-once plain gone").exit_code, 0);
  EXPECT_FALSE(std::filesystem::exists(folder)) << "after its last listener";
  std::filesystem::remove_all(folder);
}

TEST_F(SharedProcess, TheNameOfAListenerThatWasKilledIsFree) {
  Helper helper("listen-and-stay", "plain", "killed");
  ASSERT_EQ(helper.channel().receive().tag, 1U);
  EXPECT_ERROR(Listener{"killed"}, AccessError, ErrorCode::already_exists);
  EXPECT_GE(Channel::connect("killed").descriptor(), 0);
  kill(helper.process(), SIGSTOP);
  EXPECT_GE(Channel::connect("killed").descriptor(), 0) << "who is stopped is connected to, and accepts later";
  helper.kill();
  EXPECT_TRUE(std::filesystem::exists(folder_ + "/.listen-killed"));
  { const Listener again("killed"); }
  EXPECT_FALSE(std::filesystem::exists(folder_ + "/.listen-killed"));
  Helper forks("fork-a-listener", "plain", "forked");
  EXPECT_EQ(forks.wait_for_end(), 0);
}

TEST_F(SharedProcess, ASoakOfProcessesThatDieLeavesEverythingFlat) {
  constexpr std::size_t kProcesses = 6;
  const std::uint64_t duration_ns = scaled(60'000, 800) * 1'000'000;
  Random random(seed());
  std::uint64_t kills = 0;
  std::uint64_t messages = 0;
  std::size_t most_descriptors = 0;
  std::uint64_t most_blocks = 0;
  std::size_t most_names = 0;
  {
    std::vector<std::unique_ptr<Helper>> helpers;
    for (std::size_t i = 0; i < kProcesses; ++i) helpers.push_back(std::make_unique<Helper>("churn"));
    std::vector<Storage> kept(16);
    const std::uint64_t start = os::steady_time_ns();
    while (os::steady_time_ns() - start < duration_ns) {
      std::unique_ptr<Helper>& helper = helpers[random.below(kProcesses)];
      // Ten times a second one is killed, wherever it is.
      if ((os::steady_time_ns() - start) / 100'000'000 > kills) {
        helper->kill();
        helper = std::make_unique<Helper>("churn");
        ++kills;
        (void)reap_named();
        reap_shared();
        most_descriptors = std::max(most_descriptors, open_descriptors());
        most_blocks = std::max(most_blocks, live());
        most_names = std::max(most_names, list_shared().size());
      }
      const Storage& any = kept[random.below(kept.size())];
      helper->channel().send(any.num_elements() > 0 && random.one_in(2) ? any
                                                                        : pattern(static_cast<std::int64_t>(1 + random.below(20'000))));
      Channel::Message back = helper->channel().receive();
      ASSERT_TRUE(back.storage && is_pattern(*back.storage));
      kept[random.below(kept.size())] = *back.storage;
      ASSERT_TRUE(any.num_elements() == 0 || is_pattern(any));
      ++messages;
    }
  }
  EXPECT_LT(most_descriptors, 150U) << "they do not grow with the dead";
  EXPECT_LT(most_blocks, 16U + kProcesses * 16) << "nor does memory";
  EXPECT_LE(most_names, kProcesses * 4) << "nor do names";
  EXPECT_TRUE(none_is_left()) << live();
  EXPECT_TRUE(comes_true([] {
    (void)reap_named();
    return list_shared().empty();
  }));
  did(std::to_string(messages) + " messages, " + std::to_string(kills) + " kills; at most " + std::to_string(most_descriptors) +
      " descriptors, " + std::to_string(most_blocks) + " blocks, " + std::to_string(most_names) + " names");
}

}  // namespace
}  // namespace berth::testing
