// SPDX-License-Identifier: Apache-2.0
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "os/system.h"
#include "share/segment.h"
#include "share/share_support.h"
#include "support/errors.h"
#include "support/everything.h"
#include "support/failing_calls.h"

// Peers of a channel that do not play by the rules: what they send, what they do not read, and what they do to the
// socket. No call takes longer than it was given, and nothing is imported that was not shared.
namespace berth::testing {

namespace os = internal::os;
using namespace internal;
using namespace internal::share;
namespace {

using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;

constexpr auto kNoHang = 3s;  // for calls that are given less than half a second

// The header of a message, as it is on the wire.
struct RawHead {
  std::uint32_t magic = 0x3168'6362;
  std::uint16_t kind = 2;
  std::uint8_t leases = 0;
  std::uint8_t pieces = 0;
  std::uint32_t length = 0;
  std::uint32_t lease = 0;
  std::uint64_t tag = 0;
};
constexpr std::uint16_t kStorageKind = 1;
constexpr std::uint16_t kBytesKind = 2;
constexpr std::uint16_t kForgetKind = 4;

std::vector<char> message(RawHead head, std::span<const std::byte> body = {}) {
  head.length = static_cast<std::uint32_t>(body.size());
  std::vector<char> bytes(sizeof head + body.size());
  std::memcpy(bytes.data(), &head, sizeof head);
  std::ranges::transform(body, bytes.begin() + sizeof head, [](std::byte byte) { return static_cast<char>(byte); });
  return bytes;
}

// A channel, and the bare socket of its peer.
class Hostile : public ::testing::Test {
 protected:
  Hostile() {
    int both[2];
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, both) != 0) std::abort();
    channel_.emplace(Channel::adopt(both[0]));
    peer_ = both[1];
  }
  ~Hostile() override {
    if (peer_ >= 0) close(peer_);
  }

  bool send_raw(const std::vector<char>& bytes) const {
    return ::send(peer_, bytes.data(), bytes.size(), MSG_NOSIGNAL | MSG_DONTWAIT) >= 0;
  }
  bool send_good() const { return send_raw(message({.kind = kBytesKind, .tag = 5})); }
  void close_peer() { close(std::exchange(peer_, -1)); }
  // What the peer does not read stays in its buffer, until nothing more fits.
  void fill_towards_peer() {
    for (;;) {
      try {
        channel_->send_bytes(std::vector<std::byte>(1000), 0, 0ms);
      } catch (const DeviceError& error) {
        ASSERT_EQ(error.code(), ErrorCode::timeout) << error.what();
        return;
      }
    }
  }
  // A message with a ticket, and with descriptors.
  void send_ticket(const TicketContent& content, const std::vector<int>& files, RawHead head = {.kind = kStorageKind}) const {
    head.leases = static_cast<std::uint8_t>(std::min<std::size_t>(files.size(), 1));
    head.lease = kFirstLease;
    const std::vector<std::byte> body = ticket_bytes(content);
    const std::vector<char> bytes = message(head, body);
    if (files.empty())
      ASSERT_TRUE(send_raw(bytes));
    else
      send_with_descriptors(peer_, bytes, files);
  }

  std::optional<Channel> channel_;
  int peer_ = -1;
};

template <class Call>
Clock::duration time_of(Call call) {
  const auto start = Clock::now();
  call();
  return Clock::now() - start;
}

// ---- Time

TEST_F(Hostile, MessagesForTheChannelItselfDoNotHoldAReceiver) {
  std::atomic<bool> done{false};
  std::thread flood([&] {
    const std::vector<std::byte> nothing(sizeof(SegmentId));
    for (const auto end = Clock::now() + 6s; !done && Clock::now() < end;) (void)send_raw(message({.kind = kForgetKind}, nothing));
  });
  const auto took = time_of([&] { EXPECT_ERROR((void)channel_->receive(200ms), DeviceError, ErrorCode::timeout); });
  done = true;
  flood.join();
  EXPECT_LT(took, kNoHang);
}

TEST_F(Hostile, AMessageBehindOthersForTheChannelIsReceivedWithoutWaiting) {
  const std::vector<std::byte> nothing(sizeof(SegmentId));
  for (int i = 0; i < 5; ++i) ASSERT_TRUE(send_raw(message({.kind = kForgetKind}, nothing)));
  ASSERT_TRUE(send_good());
  EXPECT_EQ(channel_->receive(0ms).tag, 5U);
}

// The flags of a socket belong to everyone who has it: a parent that passed it on, or a child that inherited it.
TEST_F(Hostile, FlagsOfTheSocketDoNotChangeHowLongACallTakes) {
  const int shared = channel_->descriptor();
  const auto sends_later = [&] {
    return std::thread([&] {
      std::this_thread::sleep_for(100ms);
      (void)send_good();
    });
  };
  ASSERT_EQ(fcntl(shared, F_SETFL, O_NONBLOCK), 0);
  std::thread first = sends_later();
  EXPECT_NO_THROW(EXPECT_EQ(channel_->receive(10s).tag, 5U)) << "it waits";
  first.join();
  ASSERT_EQ(fcntl(shared, F_SETFL, 0), 0);
  EXPECT_ERROR((void)channel_->receive(200ms), DeviceError, ErrorCode::timeout);
  const timeval moment{0, 1000};
  ASSERT_EQ(setsockopt(shared, SOL_SOCKET, SO_RCVTIMEO, &moment, sizeof moment), 0);
  std::thread second = sends_later();
  EXPECT_NO_THROW(EXPECT_EQ(channel_->receive(200ms).tag, 5U));
  second.join();
  const timeval for_ever{0, 0};
  ASSERT_EQ(setsockopt(shared, SOL_SOCKET, SO_RCVTIMEO, &for_ever, sizeof for_ever), 0);
  const auto took = time_of([&] {
    alarm(20);
    EXPECT_ERROR((void)channel_->receive(200ms), DeviceError, ErrorCode::timeout);
    alarm(0);
  });
  EXPECT_LT(took, kNoHang);
}

TEST_F(Hostile, ARefusedStorageCostsNoTimeWhenThePeerDoesNotRead) {
  fill_towards_peer();
  const TicketContent ticket{.kind = TicketContent::Kind::host_segment, .segment = {1, 2}, .layout = {.shape = {4}, .strides = {1}}};
  const auto took = time_of([&] {
    for (int i = 0; i < 40; ++i) {
      send_ticket(ticket, {});
      EXPECT_ERROR((void)channel_->receive(0ms), FormatError, ErrorCode::format_error);
    }
  });
  EXPECT_LT(took, kNoHang);
}

// Like another thread, or a child with the same socket, that accepts just before.
int g_stolen_from = -1;
int steal(std::string_view call) noexcept {
  if (call == "accept" && g_stolen_from >= 0) close(accept4(std::exchange(g_stolen_from, -1), nullptr, nullptr, SOCK_CLOEXEC));
  return 0;
}

TEST_F(Hostile, AConnectionThatAnotherAcceptsFirstDoesNotHoldAListener) {
  const std::string folder = "/dev/shm/berth-hostile-" + std::to_string(getpid());
  setenv("BERTH_SHM_DIR", folder.c_str(), 1);
  Listener listener("both");
  const Channel one = Channel::connect("both");
  g_stolen_from = listener.descriptor();
  alarm(20);
  {
    const Injected steals(steal);
    EXPECT_ERROR((void)listener.accept(200ms), DeviceError, ErrorCode::timeout);
  }
  alarm(0);
  unsetenv("BERTH_SHM_DIR");
  std::filesystem::remove_all(folder);
}

TEST_F(Hostile, AFullQueueHoldsAConnectionNoLongerThanItWasGiven) {
  const std::string folder = "/dev/shm/berth-hostile-" + std::to_string(getpid());
  setenv("BERTH_SHM_DIR", folder.c_str(), 1);
  Listener listener("full");
  ASSERT_EQ(listen(listener.descriptor(), 0), 0);
  const Channel first = Channel::connect("full");
  alarm(20);
  const auto took = time_of([&] { EXPECT_ERROR((void)Channel::connect("full", 200ms), DeviceError, ErrorCode::timeout); });
  std::thread accepts([&] {
    std::this_thread::sleep_for(100ms);
    (void)listener.accept();
  });
  EXPECT_NO_THROW((void)Channel::connect("full", 10s)) << "it waits for its turn";
  accepts.join();
  alarm(0);
  EXPECT_LT(took, kNoHang);
  unsetenv("BERTH_SHM_DIR");
  std::filesystem::remove_all(folder);
}

// ---- Packets

TEST_F(Hostile, AnEmptyPacketIsNotTheEnd) {
  ASSERT_TRUE(send_raw({}));
  ASSERT_TRUE(send_good());
  EXPECT_ERROR((void)channel_->receive(), FormatError, ErrorCode::format_error);
  EXPECT_EQ(channel_->receive().tag, 5U);
  ASSERT_TRUE(send_raw({}));
  EXPECT_ERROR((void)channel_->receive(), FormatError, ErrorCode::format_error);
  ASSERT_TRUE(send_raw({}));
  ASSERT_TRUE(send_good());
  close_peer();
  EXPECT_ERROR((void)channel_->receive(), FormatError, ErrorCode::format_error);  // although the peer is gone
  EXPECT_EQ(channel_->receive().tag, 5U);
  EXPECT_ERROR((void)channel_->receive(), DeviceError, ErrorCode::peer_dead);
}

// The kernel tells that what the peer has not read is lost, and that before what it has sent.
TEST_F(Hostile, WhatADeadPeerHadSentIsReceivedThoughItDidNotRead) {
  channel_->send_bytes({}, 1);
  ASSERT_TRUE(send_good());
  close_peer();
  EXPECT_NO_THROW(EXPECT_EQ(channel_->receive().tag, 5U));
  EXPECT_ERROR((void)channel_->receive(), DeviceError, ErrorCode::peer_dead);
}

TEST_F(Hostile, AMessageLongerThanTheSocketTakesIsSentOrRefusedWithTheCause) {
  const int least = 1;  // the kernel takes its own least
  ASSERT_EQ(setsockopt(channel_->descriptor(), SOL_SOCKET, SO_SNDBUF, &least, sizeof least), 0);
  {
    const Injected refused([](std::string_view call) noexcept { return call == "setsockopt" ? EPERM : 0; });
    EXPECT_ERROR(channel_->send_bytes(std::vector<std::byte>(60'000), 0, 100ms), ArgumentError, ErrorCode::limit_exceeded);
    EXPECT_NO_THROW(channel_->send(zeros({4}, DType::f32, "shared"))) << "a ticket is short enough for any socket";
  }
  EXPECT_NO_THROW(channel_->send_bytes(std::vector<std::byte>(60'000), 0, 100ms)) << "the buffer grows";
}

TEST_F(Hostile, ADescriptorThatIsNoConnectionIsToldFromAnotherUser) {
  const int bare = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
  EXPECT_ERROR((void)Channel::adopt(bare), ArgumentError, ErrorCode::invalid_argument);
}

TEST_F(Hostile, AClosedChannelSaysSo) {
  channel_->close();
  EXPECT_ERROR(channel_->send_bytes({}), DeviceError, ErrorCode::peer_dead);
  EXPECT_ERROR((void)channel_->receive(), DeviceError, ErrorCode::peer_dead);
  EXPECT_ERROR(channel_->send(zeros({4}, DType::f32, "shared")), DeviceError, ErrorCode::peer_dead);
}

// ---- Tickets

// Bytes of the heap and of pools that this process has taken.
std::uint64_t taken() { return process_memory("cpu").committed_bytes; }

TEST_F(Hostile, ATicketWithoutBytesHasNoElements) {
  // What this process had in shared memory before must not come back.
  { const Storage old = full({1 << 20}, 77, DType::u8, "shared"); }
  const std::uint64_t before = taken();
  const TicketContent forged{.layout = {.dtype = DType::u8, .shape = {3'000'000'000}, .strides = {1}}};
  EXPECT_ERROR((void)Ticket::from_bytes(ticket_bytes(forged)), FormatError, ErrorCode::format_error);
  send_ticket(forged, {});
  EXPECT_ERROR((void)channel_->receive(), FormatError, ErrorCode::format_error);
  const TicketContent scalar{.layout = {.dtype = DType::u8, .shape = {}, .strides = {}}};
  EXPECT_ERROR((void)Ticket::from_bytes(ticket_bytes(scalar)), FormatError, ErrorCode::format_error);
  EXPECT_EQ(taken(), before);
  TicketContent named{.layout = {.dtype = DType::u8, .shape = {0}, .strides = {1}}};
  EXPECT_EQ(import_ticket(Ticket::from_bytes(ticket_bytes(named))).num_elements(), 0U);
  named.name.entry = 1;  // of no bytes, and of an entry
  EXPECT_ERROR((void)Ticket::from_bytes(ticket_bytes(named)), FormatError, ErrorCode::format_error);
}

TEST_F(Hostile, DescriptorsThatATicketDoesNotNeedAreRefused) {
  const Storage x = zeros({4}, DType::f32, "shared");
  const TicketContent host = *read_ticket(export_ticket(x).bytes());
  const std::size_t files = open_descriptors();
  const TicketContent none{.layout = {.dtype = DType::u8, .shape = {0}, .strides = {1}}};
  send_ticket(none, {0});
  EXPECT_ERROR((void)channel_->receive(), FormatError, ErrorCode::format_error);
  send_ticket(host, {shared_location(x).descriptor, 0}, {.kind = kStorageKind, .pieces = 1});
  EXPECT_ERROR((void)channel_->receive(), FormatError, ErrorCode::format_error);
  EXPECT_EQ(open_descriptors(), files);
}

// A segment that a hostile peer made by hand.
class ForgedSegment {
 public:
  static constexpr Layout kLayout{.entries = 16384, .tickets = 16384, .masks = 4};

  explicit ForgedSegment(std::uint64_t bytes, SegmentId id = {11, 22}, bool whole = false) {
    file_ = memfd_create("forged", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    const std::uint64_t total = device::kSharedDataOffset + bytes;
    if (ftruncate(file_, static_cast<off_t>(total)) != 0) std::abort();
    if (whole && fallocate(file_, 0, 0, static_cast<off_t>(total)) != 0) std::abort();
    SegmentHeader header = *make_header(kLayout, total, device::kSharedDataOffset);
    header.id = id;
    if (pwrite(file_, &header, sizeof header, 0) != static_cast<ssize_t>(sizeof header)) std::abort();
    set(Layout::kRowsUsed, 1);
    set(kLayout.row_label(0), 1);
    if (fcntl(file_, F_ADD_SEALS, F_SEAL_SHRINK) != 0) std::abort();
    lock_ = os::open_again(file_)->take();
    if (!*os::try_lock_byte(lock_, lock_of(kOwnerRow)) || !*os::try_lock_byte(lock_, lock_of(kFirstLease))) std::abort();
  }
  ~ForgedSegment() {
    close(file_);
    close(lock_);
  }
  ForgedSegment(const ForgedSegment&) = delete;
  ForgedSegment& operator=(const ForgedSegment&) = delete;

  void set(std::uint32_t word, Word value) const {
    if (pwrite(file_, &value, sizeof value, static_cast<off_t>(kWordsOffset + word * sizeof value)) != sizeof value) std::abort();
  }
  void add_entry(std::uint32_t entry, std::uint64_t offset, std::uint64_t bytes) const {
    set(Layout::kEntriesUsed, entry + 1);
    set(kLayout.offset(entry), device::kSharedDataOffset + offset);
    set(kLayout.bytes(entry), bytes);
    set(kLayout.entry(entry), live_entry(0));
  }
  TicketContent ticket(std::uint32_t number, std::uint32_t entry, std::int64_t elements, HolderId holder = kFirstLease) const {
    set(Layout::kTicketsUsed, number + 1);
    set(kLayout.ticket(number), TicketWord{0, TicketState::held, holder, entry}.pack());
    return {.kind = TicketContent::Kind::host_segment,
            .segment = {11, 22},
            .name = {.ticket = number, .generation = 0, .entry = entry, .entry_generation = 0},
            .layout = {.dtype = DType::u8, .shape = {elements}, .strides = {1}}};
  }
  int file() const { return file_; }
  int lock() const { return lock_; }

 private:
  int file_ = -1;
  int lock_ = -1;
};

TEST_F(Hostile, AnImportIsNoLargerThanWhatTheSenderHasMemoryFor) {
  {
    constexpr std::int64_t kClaimed = std::int64_t{8} << 30;
    const ForgedSegment sparse(kClaimed);
    sparse.add_entry(0, 0, kClaimed);
    send_ticket(sparse.ticket(0, 0, kClaimed), {sparse.file()});
    EXPECT_ERROR((void)channel_->receive(), AccessError, ErrorCode::untrusted);
  }
  const ForgedSegment whole(1 << 20, {11, 22}, true);
  whole.add_entry(0, 0, 1 << 20);
  send_ticket(whole.ticket(0, 0, 1 << 20), {whole.file()});
  EXPECT_EQ(channel_->receive().storage->num_elements(), 1U << 20);
}

TEST_F(Hostile, ARefusedImportKeepsNothing) {
  const std::size_t files = open_descriptors();
  const std::size_t mappings = shared_mappings();
  for (std::uint64_t i = 0; i < 50; ++i) {
    const ForgedSegment forged(1 << 20, {11, 100 + i}, true);
    TicketContent content = forged.ticket(0, 0, 1 << 20);  // of an entry that is not live
    content.segment.low = 100 + i;
    send_ticket(content, {forged.file()});
    EXPECT_ERROR((void)channel_->receive(), AccessError, ErrorCode::already_consumed);
  }
  EXPECT_EQ(open_descriptors(), files);
  EXPECT_EQ(shared_mappings(), mappings);
}

// A peer that knows the id of another's segment cannot put its own in its place.
TEST_F(Hostile, ASegmentWithTheIdOfAnotherIsRefused) {
  const ForgedSegment first(1 << 20, {11, 22}, true);
  first.add_entry(0, 0, 100);
  send_ticket(first.ticket(0, 0, 100), {first.file()});
  const Storage kept = *channel_->receive().storage;
  const ForgedSegment second(1 << 20, {11, 22}, true);
  second.add_entry(0, 0, 100);
  first.ticket(1, 0, 100);
  send_ticket(second.ticket(1, 0, 100), {second.file()});
  EXPECT_ERROR((void)channel_->receive(), AccessError, ErrorCode::untrusted);
}

TEST_F(Hostile, AFileThatCannotBeWrittenIsNotTakenForAnotherUsers) {
  const ForgedSegment forged(1 << 20, {11, 22}, true);
  ASSERT_EQ(fcntl(forged.file(), F_ADD_SEALS, F_SEAL_FUTURE_WRITE), 0);
  EXPECT_EQ(Segment::attach(forged.file()).failure().code, ErrorCode::untrusted);
}

// Opening a file under a lease of another process waits for it, 45 seconds by default.
TEST_F(Hostile, ALeaseOnTheFileDoesNotHoldAReceiver) {
  const int file = memfd_create("leased", MFD_CLOEXEC | MFD_ALLOW_SEALING);
  ASSERT_EQ(ftruncate(file, 8 << 20), 0);
  ASSERT_EQ(fcntl(file, F_ADD_SEALS, F_SEAL_SHRINK), 0);
  const int read_only = open(("/proc/self/fd/" + std::to_string(file)).c_str(), O_RDONLY | O_CLOEXEC);
  close(file);
  if (fcntl(read_only, F_SETLEASE, F_RDLCK) != 0) GTEST_SKIP() << "no leases here";
  (void)signal(SIGIO, SIG_IGN);
  const auto took = time_of([&] { EXPECT_FALSE(Segment::attach(read_only)); });
  close(read_only);
  EXPECT_LT(took, kNoHang);
}

// A dead owner and thousands of dead leases, each with claims on storages of its own: one pass over the tables for
// each of them takes minutes.
TEST_F(Hostile, TablesThatAreMadeToBeSlowDoNotHoldAReceiver) {
  const ForgedSegment forged(64 << 20, {11, 22}, true);
  static constexpr std::uint32_t kEntries = ForgedSegment::kLayout.entries;
  for (std::uint32_t i = 0; i < kEntries; ++i) forged.add_entry(i, i * 4096ULL, 4096);
  for (std::uint32_t i = 1; i < kEntries; ++i) (void)forged.ticket(i, i, 4096, kFirstLease + 1 + i % (kMostLeases - 1));
  forged.set(Layout::kOrphan, kOrphaned);
  send_ticket(forged.ticket(0, 0, 4096), {forged.file()});
  forged.set(Layout::kTicketsUsed, kEntries);
  alarm(60);
  const auto took = time_of([&] { (void)channel_->receive(200ms); });
  alarm(0);
  EXPECT_LT(took, 10s);
}

}  // namespace
}  // namespace berth::testing
