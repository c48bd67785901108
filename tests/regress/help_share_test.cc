// SPDX-License-Identifier: Apache-2.0
// What errors of sharing say would help is done here, as a user would do it. What the system refuses is injected.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <string>
#include <vector>

#include "file/file_support.h"
#include "share/ticket_bytes.h"
#include "support/errors.h"
#include "support/everything.h"
#include "support/failing_calls.h"

namespace berth::testing {
namespace {

using namespace std::chrono_literals;

// A folder of the test's own for named storages.
class HelpOfSharing : public ::testing::Test {
 protected:
  HelpOfSharing() { setenv("BERTH_SHM_DIR", folder_.c_str(), 1); }
  ~HelpOfSharing() override {
    std::filesystem::remove_all(folder_);
    unsetenv("BERTH_SHM_DIR");
  }
  // A ticket for a segment that this process does not know.
  static Ticket for_another_segment(const Ticket& ticket) {
    internal::share::TicketContent content = *internal::share::read_ticket(ticket.bytes());
    content.segment.high ^= 1;
    return Ticket::from_bytes(internal::share::ticket_bytes(content));
  }

  const std::string folder_ = "/dev/shm/berth-help-" + std::to_string(getpid());
  const Storage shared_ = zeros({64}, DType::u8, "shared");
};

TEST_F(HelpOfSharing, OfNames) {
  const auto create = [] { (void)create_shared("weights", {64}, DType::u8); };
  const Storage held = create_shared("held", {64}, DType::u8);
  follow({
      {"use 1 to 200 bytes of UTF-8 without '/' and control characters, and no leading dot",
       [] { (void)create_shared("a/b", {64}, DType::u8); }, create},
      {"choose another name, or open the one that is there", [] { (void)create_shared("held", {64}, DType::u8); },
       [&] {
         create();
         EXPECT_EQ(open_shared("held").num_elements(), 64U);
       }},
      {"berth shm ls lists the names; memory without one comes with a storage, through a Channel", [] { (void)open_shared("nobody"); },
       [] {
         ASSERT_EQ(list_shared().size(), 1U);
         (void)open_shared(list_shared()[0].name);
       }},
      {"take descriptors and names only from processes that you trust; berth shm ls shows what is wrong with a name",
       [&] {
         std::ofstream(folder_ + "/open") << "anyone may write here";
         ASSERT_EQ(chmod((folder_ + "/open").c_str(), 0666), 0);
         (void)open_shared("open");
       },
       [&] {
         for (const NamedShared& one : list_shared()) EXPECT_EQ(one.problem.empty(), one.name == "held") << one.name;
         (void)open_shared("held");
       }},
      {"use one build of berth on both sides",
       [&] {
         const int file = open((folder_ + "/held").c_str(), O_RDWR | O_CLOEXEC);
         const char other = 99;  // in place of the version
         char own = 0;
         EXPECT_EQ(pread(file, &own, 1, 8), 1);
         EXPECT_EQ(pwrite(file, &other, 1, 8), 1);
         const std::string help = help_of([] { (void)open_shared("held"); });
         EXPECT_EQ(pwrite(file, &own, 1, 8), 1);
         close(file);
         throw FormatError(ErrorCode::version_mismatch, {"", "", help});
       },
       [] { (void)open_shared("held"); }},
  });
}

TEST_F(HelpOfSharing, OfWhatTheSystemRefuses) {
  const auto create = [] { (void)create_shared("weights", {1 << 20}, DType::u8); };
  const auto pair = [] { (void)Channel::make_pair(); };
  follow({
      {"raise the limit with ulimit -n, or close what is not needed", refused("socketpair", EMFILE, pair), pair},
      {"free memory, or raise the limit: of the control group, of the file system for what has a name, of addresses (ulimit -v) or of "
       "mappings (vm.max_map_count)",
       refused("fallocate", ENOSPC, create), create},
      {"run both sides as the same user", refused("tmpfile", EACCES, create), create},
      {"mount /proc, and a tmpfs at /dev/shm, or name a folder of your own on a tmpfs with BERTH_SHM_DIR",
       [&] {
         setenv("BERTH_SHM_DIR", "/nowhere/at/all", 1);
         create();
       },
       [&] {
         setenv("BERTH_SHM_DIR", folder_.c_str(), 1);
         create();
       }},
      {"the system refused a call that sharing needs: berth doctor shows what this machine has and lacks", refused("socketpair", EIO, pair),
       pair},
  });
}

TEST_F(HelpOfSharing, OfTickets) {
  const Folder files;
  save_npy(files / "a.npy", zeros({8}, DType::f32, "cpu"));
  const Storage mapped = map_npy(files / "a.npy");
  const Storage alone = zeros({8}, DType::f32, "cpu");
  const auto imported = [&] { (void)import_ticket(export_ticket(shared_)); };
  auto [near, far] = Channel::make_pair();
  follow({
      {"share(storage) first", [&] { (void)export_ticket(alone); },
       [&] {
         share(alone);
         (void)import_ticket(export_ticket(alone));
       }},
      {"share a clone() of it, or of a storage on another device a copy made with to(\"cpu\")", [&] { (void)export_ticket(mapped); },
       [&] {
         const Storage copy = mapped.clone();
         share(copy);
         (void)import_ticket(export_ticket(copy));
       }},
      {"export the storage again: a ticket is good for one import, or for as many as ExportOptions::imports says",
       [&] {
         const Ticket ticket = export_ticket(shared_);
         (void)import_ticket(ticket);
         (void)import_ticket(ticket);
       },
       imported},
      {"send it again: the other side is at fault, or the bytes were damaged on the way",
       [&] { (void)import_ticket(Ticket::from_bytes(std::vector<std::byte>(40))); }, imported},
      {"ask for 1 or more", [&] { (void)export_ticket(shared_, {.imports = 0}); }, imported},
      {"export it several times, or give it a name with create_shared",
       [&] { (void)export_ticket(shared_, {.imports = ExportOptions::kMostImports + 1}); },
       [&] {
         for (int i = 0; i < 2; ++i) {
           const Ticket ticket = export_ticket(shared_, {.imports = ExportOptions::kMostImports});
           (void)import_ticket(ticket);
           EXPECT_TRUE(refuse_ticket(ticket));
         }
       }},
      {"receive it through a Channel, or pass a descriptor of the segment to import_ticket",
       [&] { (void)import_ticket(for_another_segment(export_ticket(shared_))); },
       [&, &a = near, &b = far] {
         a.send(shared_);
         (void)b.receive().storage.value();
         (void)import_ticket(export_ticket(shared_), shared_location(shared_).descriptor);
       }},
      {"send it from the process that exported it, or from one that holds a storage of its segment",
       [&, &a = near] { a.send(for_another_segment(export_ticket(shared_))); },
       [&, &a = near, &b = far] {
         a.send(export_ticket(shared_));
         (void)b.receive().storage.value();
       }},
  });
}

TEST_F(HelpOfSharing, OfChannels) {
  const std::string name = "help-" + std::to_string(getpid());
  const auto meet = [&] {
    Listener listener(name);
    Channel one = Channel::connect(name);
    Channel other = listener.accept();
    one.send_bytes({});
    (void)other.receive();
  };
  follow({
      {"start the process whose Listener has that name first", [&] { (void)Channel::connect(name); }, meet},
      {"choose another name, or reach the process that listens there with Channel::connect",
       [&] {
         const Listener first(name);
         const Listener second(name);
       },
       [&] {
         meet();
         const Listener first(name);
         const Listener second(name + "-2");
       }},
      {"pass a socket of AF_UNIX and SOCK_SEQPACKET, or let Channel::make_pair make both ends",
       [] {
         int stream[2];
         ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, stream), 0);
         close(stream[1]);
         (void)Channel::adopt(stream[0]);
       },
       [] {
         int packets[2];
         ASSERT_EQ(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, packets), 0);
         (void)Channel::adopt(packets[0]);
         (void)Channel::adopt(packets[1]);
         (void)Channel::make_pair();
       }},
      {"pass a connected socket, such as one of socketpair(AF_UNIX, SOCK_SEQPACKET, 0, …)",
       [] { (void)Channel::adopt(socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0)); },
       [] {
         int both[2];
         ASSERT_EQ(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, both), 0);
         (void)Channel::adopt(both[0]);
         (void)Channel::adopt(both[1]);
       }},
      {"make a new channel",
       [] {
         auto [one, other] = Channel::make_pair();
         one.close();
         one.send_bytes({});
       },
       [] { Channel::make_pair().first.send_bytes({}); }},
      {"the other process is stopped or busy: wait longer, or end it",
       [] {
         auto [one, other] = Channel::make_pair();
         (void)one.receive(1ms);
       },
       [] {
         auto [one, other] = Channel::make_pair();
         other.send_bytes({});
         (void)one.receive(10s);
       }},
      {"start the other process again, and make a new channel",
       [] {
         auto [one, other] = Channel::make_pair();
         other.close();
         one.send_bytes({});
       },
       [] {
         auto [one, other] = Channel::make_pair();
         one.send_bytes({});
       }},
  });
}

// A socket whose buffer is small: it grows as far as net.core.wmem_max lets it.
TEST_F(HelpOfSharing, OfLongMessages) {
  const std::vector<std::byte> bytes(60'000);
  const auto send = [&] {
    int both[2];
    ASSERT_EQ(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, both), 0);
    const int small = 4096;
    ASSERT_EQ(setsockopt(both[0], SOL_SOCKET, SO_SNDBUF, &small, sizeof small), 0);
    Channel one = Channel::adopt(both[0]);
    const Channel other = Channel::adopt(both[1]);
    one.send_bytes(bytes);
  };
  const auto send_a_storage = [&](std::size_t size) {
    auto [one, other] = Channel::make_pair();
    const Storage held = zeros({static_cast<std::int64_t>(size)}, DType::u8, "shared");
    one.send(held);
    EXPECT_EQ(other.receive().storage.value().num_elements(), size);
  };
  const std::vector<std::byte> too_long(Channel::kMostBytes + 1);
  follow({
      {"put them into a storage, and send that; or raise net.core.wmem_max", refused("setsockopt", EPERM, send),
       refused("setsockopt", EPERM, [&] { send_a_storage(bytes.size()); })},
      {"put them into a storage, and send that; or raise net.core.wmem_max", refused("setsockopt", EPERM, send), send},
      {"put them into a storage, and send that", [&] { Channel::make_pair().first.send_bytes(too_long); },
       [&] { send_a_storage(too_long.size()); }},
  });
}

// A folder in which anyone may put a name.
TEST_F(HelpOfSharing, OfTheFolderOfNames) {
  const std::string anyones = folder_ + "-of-anyone";
  const auto create = [] { (void)create_shared("weights", {64}, DType::u8); };
  const auto create_there = [&] {
    setenv("BERTH_SHM_DIR", anyones.c_str(), 1);
    std::filesystem::create_directory(anyones);
    std::filesystem::permissions(anyones, std::filesystem::perms::all);
    create();
  };
  const std::string help =
      "name a folder of your own with BERTH_SHM_DIR, such as $XDG_RUNTIME_DIR/berth, for all programs that share, or have … removed";
  follow({
      {help, create_there,
       [&] {
         setenv("BERTH_SHM_DIR", folder_.c_str(), 1);
         create();
       }},
      {help, create_there,
       [&] {
         std::filesystem::remove_all(anyones);
         create();
       }},
  });
  std::filesystem::remove_all(anyones);
}

TEST_F(HelpOfSharing, OfTooMany) {
  std::vector<Ticket> tickets;
  follow({{"drop storages, tickets or channels that are not needed, or share fewer, larger ones",
           [&] {
             for (;;) tickets.push_back(export_ticket(shared_));
           },
           [&] {
             for (const Ticket& ticket : tickets) (void)refuse_ticket(ticket);
             (void)import_ticket(export_ticket(shared_));
           }}});
}

}  // namespace
}  // namespace berth::testing
