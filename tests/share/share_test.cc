// SPDX-License-Identifier: Apache-2.0
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstring>
#include <numeric>
#include <thread>
#include <vector>

#include "os/file/shared_file.h"
#include "share/segment.h"
#include "share/share_support.h"
#include "support/errors.h"
#include "support/everything.h"
#include "support/heap_faults.h"
#include "support/scale.h"

namespace berth::testing {

namespace os = internal::os;
using namespace internal::share;
namespace {

using namespace std::chrono_literals;

Storage numbers(std::int64_t count, const AllocatorRef& where) {
  std::vector<std::int32_t> values(static_cast<std::size_t>(count));
  std::iota(values.begin(), values.end(), 0);
  return from_data(values, {count}, where);
}

TEST(Shared, ANewOneGivesItsDescriptorOffsetAndSize) {
  const NewShared made = new_shared(100'000);
  EXPECT_EQ(made.storage.size_bytes(), 100'000U);
  EXPECT_EQ(made.storage.device(), Device("shared"));
  EXPECT_TRUE(made.storage.is_shared());
  EXPECT_EQ(made.location.size_bytes, 100'000U);
  made.storage.fill(7);
  // A process that maps the descriptor sees the bytes.
  const std::uint64_t page = static_cast<std::uint64_t>(sysconf(_SC_PAGESIZE));
  const std::uint64_t begin = made.location.offset / page * page;
  const std::size_t length = made.location.offset - begin + made.location.size_bytes;
  void* const seen = mmap(nullptr, length, PROT_READ, MAP_SHARED, made.location.descriptor, static_cast<off_t>(begin));
  ASSERT_NE(seen, MAP_FAILED);
  EXPECT_EQ(static_cast<const unsigned char*>(seen)[length - 1], 7);
  munmap(seen, length);
  EXPECT_NE(fcntl(made.location.descriptor, F_GETFD) & FD_CLOEXEC, 0);
  EXPECT_NE(fcntl(made.location.descriptor, F_GET_SEALS) & F_SEAL_SHRINK, 0);
  EXPECT_EQ(new_shared(0).location.descriptor, -1);
  EXPECT_ERROR((void)shared_location(zeros({4}, DType::f32, "cpu")), AccessError, ErrorCode::wrong_device);
}

TEST(Shared, ALiveStorageIsSharedInPlaceWithAllItsViews) {
  const Storage x = numbers(1000, "cpu");
  const Storage part = x.slice(0, 10, 20);
  const Storage even = x.slice(0, 0, {}, 2);
  const void* const before = x.data_ptr();
  const std::uint64_t live = default_allocator("cpu")->stats().live_blocks;
  berth::share(part);
  EXPECT_EQ(default_allocator("cpu")->stats().live_blocks, live - 1) << "the old block is free";
  for (const Storage& view : {x, part, even}) {
    EXPECT_TRUE(view.is_shared());
    EXPECT_EQ(view.device(), Device("shared"));
  }
  EXPECT_NE(x.data_ptr(), before);
  EXPECT_EQ(part.item<std::int32_t>({3}), 13);
  x.fill(5);
  EXPECT_EQ(even.item<std::int32_t>({400}), 5) << "they are still views of one another";
  const void* const after = x.data_ptr();
  berth::share(x);
  EXPECT_EQ(x.data_ptr(), after) << "what is shared stays as it is";
  berth::share(Storage());
}

TEST(Shared, WhatIsPinnedMovesWithItsViews) {
  const auto memory = pool("pinned");
  const Storage x = numbers(1000, memory);
  const Storage view = x.slice(0, 990);
  const bool locked = x.is_pinned();
  berth::share(view);
  EXPECT_TRUE(x.is_shared() && view.is_shared());
  EXPECT_EQ(x.is_pinned(), locked) << "and is as pinned as it was";
  EXPECT_EQ(memory->stats().live_blocks, 0U);
  x.slice(0, 999).fill(-1);
  EXPECT_EQ(view.item<std::int32_t>({9}), -1);
  EXPECT_EQ(view.item<std::int32_t>({8}), 998);
  EXPECT_EQ(import_ticket(export_ticket(view)).item<std::int32_t>({8}), 998);
}

TEST(Shared, WhatIsAdoptedMovesAndIsGivenUp) {
  std::vector<std::int32_t> values(100);
  std::iota(values.begin(), values.end(), 0);
  int given_up = 0;
  const auto give_up = [&](void* data) { given_up += data == values.data() ? 1 : 100; };
  {
    const Storage x = from_blob(values.data(), {100}, DType::i32, "cpu", give_up);
    const Storage view = x.slice(0, {}, {}, -1);
    const Storage constant = x.read_only();
    berth::share(x);
    EXPECT_EQ(given_up, 1) << "nobody needs the old bytes";
    EXPECT_TRUE(view.is_shared());
    EXPECT_EQ(view.buffer().owner(), Owner::allocator);
    x.fill(5);
    EXPECT_EQ(view.item<std::int32_t>({99}), 5);
    EXPECT_TRUE(constant.is_read_only());
    EXPECT_EQ(values[0], 0);
  }
  EXPECT_EQ(given_up, 1);
  const Storage fixed = from_blob(static_cast<const void*>(values.data()), {100}, DType::i32, "cpu", give_up);
  berth::share(fixed);
  EXPECT_EQ(given_up, 2);
  EXPECT_ERROR(fixed.fill(1), AccessError, ErrorCode::read_only);
  EXPECT_EQ(fixed.item<std::int32_t>({7}), 7);
}

TEST(Shared, WhatIsBorrowedMovesOnRequest) {
  std::vector<std::int32_t> values = {1, 2, 3};
  const Storage x = from_blob(values.data(), {3}, DType::i32, "cpu");
  EXPECT_ERROR(berth::share(x), AccessError, ErrorCode::busy);
  EXPECT_EQ(x.data_ptr(), values.data());
  berth::share(x, {.borrowed = true});
  x.fill(9);
  EXPECT_TRUE(x.is_shared());
  EXPECT_EQ(values, (std::vector<std::int32_t>{1, 2, 3})) << "the lender keeps what it had";
  const Storage imported = from_dlpack(to_dlpack(numbers(4, "cpu")));
  EXPECT_ERROR(berth::share(imported, {.borrowed = true}), AccessError, ErrorCode::busy);
  const Storage elsewhere = from_blob(values.data(), {3}, DType::i32, "sim:0");
  EXPECT_ERROR(berth::share(elsewhere, {.borrowed = true}), DeviceError, ErrorCode::unsupported);
}

TEST(Shared, SharingInPlaceIsRefusedWhileSomeoneHasTheAddress) {
  std::vector<float> values(10, 1.0F);
  const Storage outside = from_blob(values.data(), {10}, DType::f32, "cpu");
  EXPECT_ERROR(berth::share(outside), AccessError, ErrorCode::busy);
  const Storage x = numbers(10, "cpu");
  {
    const DlpackTensor exported = to_dlpack(x);
    EXPECT_ERROR(berth::share(x), AccessError, ErrorCode::busy);
    EXPECT_FALSE(x.is_shared());
  }
  {
    const StridedSpan span = x.span();
    EXPECT_ERROR(berth::share(x), AccessError, ErrorCode::busy);
  }
  {
    const Stream stream = make_stream("cpu");
    std::atomic<bool> go{false};
    stream.enqueue([&] {
      while (!go) std::this_thread::yield();
    });
    const Storage target = empty({10}, DType::i32, "cpu");
    target.copy_from(x, {.stream = stream, .non_blocking = true});
    EXPECT_ERROR(berth::share(x), AccessError, ErrorCode::busy);
    EXPECT_ERROR(berth::share(target), AccessError, ErrorCode::busy);
    go = true;
    stream.synchronize();
  }
  EXPECT_EQ(x.device(), Device("cpu")) << "nothing has changed";
  EXPECT_ERROR(berth::share(zeros({4}, DType::f32, "sim:0")), DeviceError, ErrorCode::unsupported);
  berth::share(x);
  EXPECT_TRUE(x.is_shared()) << "and afterwards it can be";
  EXPECT_EQ(x.item<std::int32_t>({9}), 9);
}

TEST(Shared, DlpackSeesHostMemory) {
  const DlpackTensor tensor = to_dlpack(zeros({4}, DType::f32, "shared"));
  EXPECT_EQ(tensor.get()->dl_tensor.device.type, dlpack::kCpu);
}

TEST(Ticket, CarriesTheLayoutAndComesHomeOnce) {
  const Storage x = numbers(60, "shared").reshape({3, 4, 5});
  const Storage view = x.transpose(0, 2).slice(0, 1, {}, 2);
  const Ticket ticket = export_ticket(view);
  const Storage again = import_ticket(Ticket::from_bytes(ticket.bytes()));
  EXPECT_TRUE(equal(again, view));
  EXPECT_EQ(again.strides(), view.strides());
  EXPECT_EQ(again.data_ptr(), view.data_ptr()) << "in the process that made it, they are the same bytes";
  EXPECT_ERROR((void)import_ticket(ticket), AccessError, ErrorCode::already_consumed);
  EXPECT_FALSE(refuse_ticket(ticket));
  const Ticket refused = export_ticket(x.read_only());
  EXPECT_TRUE(refuse_ticket(refused));
  EXPECT_ERROR((void)import_ticket(refused), AccessError, ErrorCode::already_consumed);
  EXPECT_TRUE(import_ticket(export_ticket(x.read_only())).is_read_only());
  EXPECT_EQ(import_ticket(export_ticket(zeros({0, 3}, DType::f32, "shared"))).shape(), Shape({0, 3}));
  EXPECT_ERROR((void)export_ticket(numbers(3, "cpu")), AccessError, ErrorCode::wrong_device);
}

TEST(Ticket, HoldsItsBytesUntilItIsImportedOrRefused) {
  const auto live = [] { return default_allocator("shared")->stats().live_blocks; };
  const std::uint64_t before = live();
  std::optional<Storage> x = numbers(1000, "shared");
  const Ticket kept = export_ticket(*x);
  const Ticket refused = export_ticket(*x);
  x.reset();
  EXPECT_EQ(live(), before + 1) << "two tickets hold it";
  EXPECT_TRUE(refuse_ticket(refused));
  reap_shared();
  EXPECT_EQ(live(), before + 1) << "one still does";
  x = import_ticket(kept);
  EXPECT_EQ(x->item<std::int32_t>({999}), 999);
  x.reset();
  EXPECT_EQ(live(), before);
}

TEST(Ticket, WhatWasLetGoElsewhereComesBackBeforeARequestIsRefused) {
  const auto memory = pool("shared", {.limit_bytes = 16_MiB});
  std::optional<Storage> x = zeros({10 << 20}, DType::u8, memory);
  const Ticket refused = export_ticket(*x);
  x.reset();
  EXPECT_FALSE(memory->try_allocate({.bytes = 10_MiB})) << "the ticket holds it";
  EXPECT_TRUE(refuse_ticket(refused));
  EXPECT_EQ(memory->stats().live_blocks, 1U) << "nobody has looked yet";
  const auto block = memory->try_allocate({.bytes = 10_MiB});
  ASSERT_TRUE(block);
  memory->deallocate(*block);
}

// The pool that has the memory back caches it, and releases it for an allocator of another kind of host memory.
TEST(Ticket, WhatWasLetGoElsewhereComesBackUnderALimitOfTheProcess) {
  const auto shared = pool("shared");
  std::optional<Storage> x = zeros({48 << 20}, DType::u8, shared);
  const Ticket refused = export_ticket(*x);
  x.reset();
  const auto other = direct("cpu");
  set_process_limit("cpu", process_memory("cpu").committed_bytes + 16_MiB);
  const auto without = other->try_allocate({.bytes = 40_MiB});
  EXPECT_TRUE(refuse_ticket(refused));
  const auto block = other->try_allocate({.bytes = 40_MiB});
  set_process_limit("cpu", SIZE_MAX);
  EXPECT_FALSE(without) << "the ticket held it";
  ASSERT_TRUE(block);
  other->deallocate(*block);
  EXPECT_EQ(shared->stats().live_blocks, 0U);
}

TEST(Ticket, ThatIsDamagedOrForgedIsRefused) {
  const Storage x = numbers(100, "shared");
  const Ticket ticket = export_ticket(x);
  std::vector<std::byte> bytes(ticket.bytes().begin(), ticket.bytes().end());
  bytes[30] ^= std::byte{1};
  EXPECT_ERROR((void)Ticket::from_bytes(bytes), FormatError, ErrorCode::format_error);
  EXPECT_ERROR((void)Ticket::from_bytes(ticket.bytes().first(20)), FormatError, ErrorCode::format_error);
  // Well-formed, but with other numbers than were exported.
  const auto forged = [&](auto change) {
    internal::share::TicketContent content = *internal::share::read_ticket(ticket.bytes());
    change(content);
    return Ticket::from_bytes(internal::share::ticket_bytes(content));
  };
  EXPECT_ERROR((void)import_ticket(forged([](auto& c) { c.name.entry = 1 << 23; })), FormatError, ErrorCode::format_error);
  EXPECT_ERROR((void)import_ticket(forged([](auto& c) { c.name.ticket = 1 << 30; })), FormatError, ErrorCode::format_error);
  EXPECT_ERROR((void)import_ticket(forged([](auto& c) { c.name.generation += 1; })), AccessError, ErrorCode::already_consumed);
  EXPECT_ERROR((void)import_ticket(forged([](auto& c) { c.name.entry_generation += 1; })), AccessError, ErrorCode::already_consumed);
  EXPECT_ERROR((void)import_ticket(forged([](auto& c) { c.layout.offset = 1; })), FormatError, ErrorCode::format_error);
  EXPECT_ERROR((void)import_ticket(forged([](auto& c) { c.segment.low += 1; })), AccessError, ErrorCode::not_found);
  EXPECT_EQ(import_ticket(ticket).item<std::int32_t>({99}), 99) << "the true one is still good";
}

TEST(Ticket, IsGoodForAsManyImportsAsItsExporterSays) {
  const Storage x = numbers(100, "shared");
  const Ticket ticket = export_ticket(x, {.imports = 3});
  const Ticket copy = Ticket::from_bytes(ticket.bytes());
  EXPECT_EQ(imports_left(ticket), 3U);
  std::vector<Storage> imported;
  for (std::size_t left = 3; left-- > 0;) {
    imported.push_back(import_ticket(left == 1 ? copy : ticket));
    EXPECT_EQ(imports_left(copy), left);
    EXPECT_TRUE(equal(imported.back(), x));
  }
  EXPECT_ERROR((void)import_ticket(ticket), AccessError, ErrorCode::already_consumed);
  EXPECT_FALSE(refuse_ticket(ticket)) << "nothing is left";
  const Ticket once = export_ticket(x);
  EXPECT_EQ(imports_left(once), 1U);
  EXPECT_EQ(once.bytes().size() + 2 * 8, ticket.bytes().size()) << "eight bytes for each further import";
  EXPECT_TRUE(refuse_ticket(once));
  EXPECT_EQ(imports_left(once), 0U);
  EXPECT_EQ(imports_left(export_ticket(zeros({0}, DType::f32, "shared"), {.imports = 2})), SIZE_MAX);
}

TEST(Ticket, ForSeveralImportsIsRevokedAtOnceAndKeepsWhatWasImported) {
  const std::shared_ptr<Allocator> shared = default_allocator("shared");
  const std::uint64_t before = shared->stats().live_blocks;
  std::optional<Storage> x = numbers(100, "shared");
  const Ticket ticket = export_ticket(*x, {.imports = 8});
  x.reset();
  EXPECT_EQ(shared->stats().live_blocks, before + 1) << "the ticket holds the bytes";
  std::optional<Storage> y = import_ticket(ticket, {.read_only = true});
  EXPECT_EQ(imports_left(ticket), 7U);
  EXPECT_TRUE(refuse_ticket(ticket));
  EXPECT_EQ(imports_left(ticket), 0U);
  EXPECT_FALSE(refuse_ticket(ticket));
  EXPECT_ERROR((void)import_ticket(ticket), AccessError, ErrorCode::already_consumed);
  EXPECT_EQ(y->item<std::int32_t>({99}), 99);
  y.reset();
  EXPECT_EQ(shared->stats().live_blocks, before);
}

TEST(Ticket, ForMoreImportsThanThereIsRoomForTakesNone) {
  const Storage x = numbers(100, "shared");
  EXPECT_ERROR((void)export_ticket(x, {.imports = 0}), ArgumentError, ErrorCode::invalid_argument);
  EXPECT_ERROR((void)export_ticket(x, {.imports = ExportOptions::kMostImports + 1}), ArgumentError, ErrorCode::limit_exceeded);
  // Other tests of this process may have tickets in flight too.
  const Ticket ten = export_ticket(x, {.imports = 10});
  std::vector<Ticket> all;
  for (std::uint32_t imports = ExportOptions::kMostImports; imports != 0;) {
    try {
      all.push_back(export_ticket(x, {.imports = imports}));
    } catch (const ArgumentError& error) {
      ASSERT_EQ(error.code(), ErrorCode::limit_exceeded) << error.what();
      imports /= 2;
    }
  }
  ASSERT_GT(all.size(), 2U);
  ASSERT_TRUE(refuse_ticket(ten));
  EXPECT_ERROR((void)export_ticket(x, {.imports = 11}), ArgumentError, ErrorCode::limit_exceeded);
  all.push_back(export_ticket(x, {.imports = 10}));
  EXPECT_EQ(imports_left(all.back()), 10U) << "what was refused took nothing";
  EXPECT_EQ(import_ticket(all[1]).item<std::int32_t>({99}), 99);
  EXPECT_EQ(imports_left(all[1]), ExportOptions::kMostImports - 1);
  for (const Ticket& ticket : all) EXPECT_TRUE(refuse_ticket(ticket));
}

TEST(Ticket, ThatIsNotMadeForWantOfHeapHoldsNothing) {
  const auto memory = pool("shared");
  std::uint64_t refused = 0;
  for (std::uint64_t nth = 1;; ++nth) {
    bool happened = false;
    {
      const Storage x = numbers(100, memory);
      const FailNthNew failing(nth);
      try {
        refuse_ticket(export_ticket(x, {.imports = 5}));
      } catch (const std::exception&) {
        ++refused;
      }
      happened = failing.happened();
    }
    ASSERT_EQ(memory->stats().live_blocks, 0U) << "with allocation " << nth << " refused";
    if (!happened) break;
  }
  EXPECT_GT(refused, 1U);
}

TEST(Ticket, ForSeveralImportsThatIsForgedTakesNothingOfOthers) {
  const Storage x = numbers(100, "shared");
  const Storage other = numbers(7, "shared");
  const Ticket ticket = export_ticket(x, {.imports = 2});
  const Ticket others = export_ticket(other);
  const TicketContent of_others = *read_ticket(others.bytes());
  TicketContent forged = *read_ticket(ticket.bytes());
  forged.further[0] = {of_others.name.ticket, of_others.name.generation};
  const Ticket mixed = Ticket::from_bytes(ticket_bytes(forged));
  EXPECT_TRUE(equal(import_ticket(mixed), x));
  EXPECT_ERROR((void)import_ticket(mixed), AccessError, ErrorCode::already_consumed);
  EXPECT_FALSE(refuse_ticket(mixed));
  EXPECT_TRUE(equal(import_ticket(others), other));
  forged.further.assign(ExportOptions::kMostImports, {});
  EXPECT_ERROR((void)Ticket::from_bytes(ticket_bytes(forged)), FormatError, ErrorCode::format_error);
  forged.further = {{.ticket = 1U << 30, .generation = 0}};
  EXPECT_ERROR((void)import_ticket(Ticket::from_bytes(ticket_bytes(forged))), AccessError, ErrorCode::already_consumed);
  EXPECT_EQ(imports_left(ticket), 1U);
  EXPECT_TRUE(refuse_ticket(ticket));
}

// What one receiver cannot import is not taken from the others.
TEST(Channel, CarriesATicketForSeveralImportsToEachOfThem) {
  auto [one, other] = Channel::make_pair();
  const Storage x = numbers(1000, "shared");
  const Ticket ticket = export_ticket(x, {.imports = 2});
  one.send(ticket, 1);
  one.send(ticket, 2);
  one.send(ticket, 3);
  EXPECT_TRUE(equal(other.receive().storage.value(), x));
  EXPECT_TRUE(equal(other.receive().storage.value(), x));
  EXPECT_ERROR((void)other.receive(), AccessError, ErrorCode::already_consumed);
  const Ticket more = export_ticket(x, {.imports = 2});
  TicketContent wrong = *read_ticket(more.bytes());
  wrong.layout.offset = 1;  // its elements would lie outside
  one.send(Ticket::from_bytes(ticket_bytes(wrong)));
  EXPECT_ERROR((void)other.receive(), FormatError, ErrorCode::format_error);
  EXPECT_EQ(imports_left(more), 2U);
  EXPECT_TRUE(refuse_ticket(more));
}

TEST(Channel, CarriesStoragesAndBytesInOrder) {
  auto [one, other] = Channel::make_pair();
  const Storage x = numbers(1000, "shared");
  one.send(x, 7);
  one.send_bytes(std::as_bytes(std::span("hello", 5)), 8);
  one.send(zeros({0}, DType::f32, "shared"), 9);
  Channel::Message first = other.receive();
  EXPECT_EQ(first.tag, 7U);
  EXPECT_TRUE(equal(first.storage.value(), x));
  const Channel::Message second = other.receive();
  EXPECT_EQ(second.tag, 8U);
  EXPECT_EQ(second.bytes.size(), 5U);
  EXPECT_EQ(other.receive().storage.value().num_elements(), 0U);
  EXPECT_ERROR((void)other.receive(10ms), DeviceError, ErrorCode::timeout);
  EXPECT_ERROR(one.send_bytes(std::vector<std::byte>(Channel::kMostBytes + 1)), ArgumentError, ErrorCode::limit_exceeded);
  one.close();
  EXPECT_ERROR((void)other.receive(), DeviceError, ErrorCode::peer_dead);
  EXPECT_ERROR(other.send(x), DeviceError, ErrorCode::peer_dead);
}

TEST(Channel, WhatNobodyReceivedIsFreedWithTheChannel) {
  const auto live = [] { return default_allocator("shared")->stats().live_blocks; };
  const std::uint64_t before = live();
  {
    auto [one, other] = Channel::make_pair();
    for (int i = 0; i < 5; ++i) one.send(numbers(100, "shared"));
    EXPECT_EQ(live(), before + 5);
    (void)other.receive();
  }
  EXPECT_TRUE(comes_true([&] { return live() == before; })) << live() - before;
}

TEST(Channel, MessagesThatBreakTheRulesAreRefused) {
  int both[2];
  ASSERT_EQ(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, both), 0);
  Channel channel = Channel::adopt(both[0]);
  const std::size_t files = open_descriptors();
  ASSERT_EQ(send(both[1], "short", 5, 0), 5);
  EXPECT_ERROR((void)channel.receive(), FormatError, ErrorCode::format_error);
  const std::vector<char> noise(300, 'x');
  ASSERT_EQ(send(both[1], noise.data(), noise.size(), 0), 300);
  EXPECT_ERROR((void)channel.receive(), FormatError, ErrorCode::format_error);
  // Unexpected descriptors are closed.
  send_with_descriptors(both[1], noise, {0, 1, 2});
  EXPECT_ERROR((void)channel.receive(), FormatError, ErrorCode::format_error);
  send_with_descriptors(both[1], noise, std::vector<int>(40, 0));
  EXPECT_ERROR((void)channel.receive(), FormatError, ErrorCode::format_error);
  EXPECT_EQ(open_descriptors(), files);
  close(both[1]);
  int stream[2];
  ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, stream), 0);
  EXPECT_ERROR((void)Channel::adopt(stream[0]), DeviceError, ErrorCode::unsupported);
  close(stream[1]);
}

TEST(Channel, ALostDescriptorIsNoticedAndSentAgain) {
  const auto live = [] { return default_allocator("shared")->stats().live_blocks; };
  const std::uint64_t before = live();
  {
    auto [one, other] = Channel::make_pair();
    const Storage x = numbers(10, "shared");
    one.send(x, 1);
    rlimit limit{};
    ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &limit), 0);
    const rlimit none{3, limit.rlim_max};
    ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &none), 0);  // no further descriptor
    EXPECT_ERROR((void)other.receive(), DeviceError, ErrorCode::too_many_descriptors);
    ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &limit), 0);
    EXPECT_ERROR((void)one.receive(1ms), DeviceError, ErrorCode::timeout);  // learns of it
    one.send(x, 2);
    EXPECT_EQ(other.receive().tag, 2U);
  }
  EXPECT_TRUE(comes_true([&] { return live() == before; })) << "also what was lost is free";
}

TEST(Channel, ListensUnderANameThatGoesWithIt) {
  const std::string name = "test-" + std::to_string(getpid());
  EXPECT_ERROR((void)Channel::connect(name), AccessError, ErrorCode::not_found);
  {
    Listener listener(name);
    EXPECT_ERROR(Listener{name}, AccessError, ErrorCode::already_exists);
    Channel one = Channel::connect(name);
    Channel other = listener.accept();
    one.send(numbers(10, "shared"));
    EXPECT_EQ(other.receive().storage->item<std::int32_t>({9}), 9);
    EXPECT_ERROR((void)listener.accept(1ms), DeviceError, ErrorCode::timeout);
  }
  EXPECT_ERROR((void)Channel::connect(name), AccessError, ErrorCode::not_found);
  EXPECT_ERROR(Listener{"a/b"}, ArgumentError, ErrorCode::invalid_name);
}

TEST(Segment, IsRefusedUnlessNobodyCanCutIt) {
  const Storage x = numbers(100, "shared");
  const Ticket ticket = export_ticket(x);
  const int unsealed = memfd_create("unsealed", MFD_CLOEXEC);
  ASSERT_EQ(ftruncate(unsealed, 8 << 20), 0);
  const auto reason = [](const Result<std::shared_ptr<internal::share::Segment>>& result) {
    return result.ok() ? ErrorCode::busy : result.failure().code;
  };
  EXPECT_EQ(reason(internal::share::Segment::attach(unsealed)), ErrorCode::untrusted);
  EXPECT_EQ(reason(internal::share::Segment::attach(0)), ErrorCode::untrusted);
  close(unsealed);
  const int empty_file = memfd_create("empty", MFD_CLOEXEC | MFD_ALLOW_SEALING);
  ASSERT_EQ(ftruncate(empty_file, 8 << 20), 0);
  ASSERT_EQ(fcntl(empty_file, F_ADD_SEALS, F_SEAL_SHRINK), 0);
  EXPECT_EQ(reason(internal::share::Segment::attach(empty_file)), ErrorCode::format_error) << "whole, but not a segment";
  close(empty_file);
  EXPECT_EQ(import_ticket(ticket, -1).num_elements(), 100U) << "a segment that is known needs no descriptor";
}

TEST(Segment, KeepsItsLockWhenADescriptorOfItsFileIsClosed) {
  const NewShared made = new_shared(100);
  const Ticket ticket = export_ticket(made.storage);
  const Result<os::Descriptor> looks = os::open_again(made.location.descriptor);
  EXPECT_TRUE(*os::is_byte_locked(looks->number(), internal::share::lock_of(0)));
  close(dup(made.location.descriptor));
  (void)os::open_again(made.location.descriptor);  // opened once more, and closed
  EXPECT_TRUE(*os::is_byte_locked(looks->number(), internal::share::lock_of(0))) << "the owner is still known to live";
  EXPECT_FALSE(*os::is_byte_locked(looks->number(), internal::share::lock_of(77)));
}

}  // namespace
}  // namespace berth::testing
