// SPDX-License-Identifier: Apache-2.0
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstring>
#include <vector>

#include "base/random.h"
#include "share/device_memory.h"
#include "share/segment.h"
#include "share/ticket_bytes.h"
#include "support/everything.h"
#include "support/scale.h"

// Tickets and segments made by other processes. Whatever their contents, the result is a value or an error.
namespace berth::testing {

using namespace internal;
namespace {

using Bytes = std::vector<std::byte>;

void mutate(Random& random, Bytes& bytes) {
  for (std::uint64_t i = 0; i <= random.below(4); ++i) {
    const std::size_t at = random.below(bytes.size());
    switch (random.below(5)) {
      case 0: bytes[at] = static_cast<std::byte>(random.below(256)); break;
      case 1: bytes[at] = std::byte{0xff}; break;
      case 2: bytes[at] ^= static_cast<std::byte>(1U << random.below(8)); break;
      case 3:
        if (bytes.size() > 1) bytes.resize(at + 1);
        break;
      default: bytes.insert(bytes.begin() + static_cast<std::ptrdiff_t>(at), std::byte{0}); break;
    }
  }
}

// Corrects the checksum, so that the fields after it are parsed.
void mend(Bytes& ticket) {
  if (ticket.size() < 8) return;
  std::uint32_t sum = 2166136261U;
  for (std::size_t i = 0; i < ticket.size(); ++i) {
    if (i < 4 || i >= 8) sum = (sum ^ static_cast<std::uint32_t>(ticket[i])) * 16777619U;
  }
  std::memcpy(ticket.data() + 4, &sum, sizeof sum);
}

// Stubs, which describe memory of a GPU. Whatever is accepted is inside its pieces.
TEST(Fuzz, Stubs) {
  Random random(seed());
  const std::uint64_t runs = scaled(300'000, 2000);
  std::uint64_t read = 0;
  for (std::uint64_t i = 0; i < runs; ++i) {
    device::cuda::PieceRun good{.device = {1, 2}, .offset = random.below(2 << 20), .bytes = 1 + random.below(6 << 20)};
    for (std::uint64_t pieces = 4 + random.below(4); good.pieces.size() < pieces;) good.pieces.push_back({random.below(1000), 2 << 20});
    const std::vector<std::uint64_t> words = share::stub_words(good);
    const std::span<const std::byte> whole = std::as_bytes(std::span(words));
    Bytes bytes(whole.begin(), whole.end());
    ASSERT_TRUE(share::read_stub(bytes));
    mutate(random, bytes);
    const Result<device::cuda::PieceRun> run = share::read_stub(bytes);
    if (!run) continue;
    ++read;
    std::uint64_t total = 0;
    for (const device::cuda::PieceRun::Piece& piece : run->pieces) ASSERT_FALSE(__builtin_add_overflow(total, piece.bytes, &total));
    ASSERT_LE(run->offset, total);
    ASSERT_LE(run->bytes, total - run->offset);
    ASSERT_GT(run->bytes, 0U);
  }
  EXPECT_GT(read, runs / 100);
  EXPECT_LT(read, runs);
}

TEST(Fuzz, Tickets) {
  Random random(seed());
  const Storage x = zeros({4, 5, 6}, DType::f32, "shared");
  Ticket good = export_ticket(x.transpose(0, 1));
  const std::uint64_t runs = scaled(300'000, 2000);
  std::uint64_t read = 0;
  std::uint64_t imported = 0;
  for (std::uint64_t i = 0; i < runs; ++i) {
    Bytes bytes(good.bytes().begin(), good.bytes().end());
    mutate(random, bytes);
    if (!random.one_in(8)) mend(bytes);
    try {
      const Ticket ticket = Ticket::from_bytes(bytes);
      ++read;
      const Storage y = import_ticket(ticket);
      ++imported;
      (void)y.clone();  // every element it claims to have exists
    } catch (const Error& error) {
      ASSERT_NE(std::string(error.what()), "");
    }
    // The valid ticket may be consumed: then a new one replaces it.
    (void)refuse_ticket(good);
    good = export_ticket(x.transpose(0, 1));
  }
  did(std::to_string(runs) + " tickets, " + std::to_string(read) + " read, " + std::to_string(imported) + " imported");
}

TEST(Fuzz, SegmentHeaders) {
  using namespace internal::share;
  Random random(seed());
  constexpr std::uint64_t kBytes = device::kSharedDataOffset + (1 << 20);
  const int file = memfd_create("fuzz", MFD_CLOEXEC | MFD_ALLOW_SEALING);
  ASSERT_EQ(ftruncate(file, kBytes), 0);
  ASSERT_EQ(fcntl(file, F_ADD_SEALS, F_SEAL_SHRINK), 0);
  SegmentHeader good{.magic = SegmentHeader::kMagic,
                     .version = SegmentHeader::kVersion,
                     .layout_hash = layout_hash(),
                     .id = {1, 2},
                     .file_bytes = kBytes,
                     .data_offset = device::kSharedDataOffset,
                     .layout = {.entries = 16, .tickets = 16, .masks = 4}};
  const std::uint64_t runs = scaled(200'000, 1000);
  std::uint64_t attached = 0;
  for (std::uint64_t i = 0; i < runs; ++i) {
    Bytes header(72);
    std::memcpy(header.data(), &good, header.size());
    if (random.one_in(2)) mutate(random, header);
    header.resize(72);
    ASSERT_EQ(pwrite(file, header.data(), header.size(), 0), 72);
    // Words of any value: entries, claims, tickets and labels.
    std::vector<std::uint64_t> words(8 + 16 * 8 + 16 + 256);
    for (int k = 0; k < 12; ++k) words[random.below(words.size())] = random.one_in(3) ? random.next() : random.below(64);
    ASSERT_EQ(pwrite(file, words.data(), words.size() * 8, kWordsOffset), static_cast<ssize_t>(words.size() * 8));
    const Result<std::shared_ptr<Segment>> segment = Segment::attach(file);
    if (!segment) continue;
    ++attached;
    const TicketName name{static_cast<std::uint32_t>(random.below(20)), static_cast<std::uint32_t>(random.below(4)),
                          static_cast<std::uint32_t>(random.below(20)), random.below(4)};
    if (const Result<EntryBytes> found = (*segment)->import(name)) {
      const Result<void*> data = (*segment)->address_of(found->offset, found->bytes, os::Access::write);
      if (data && found->bytes > 0) static_cast<volatile char*>(*data)[found->bytes - 1] = 1;
      (void)(*segment)->make_ticket(found->entry);
      (*segment)->drop_handle(found->entry);
    }
    (void)(*segment)->revoke(name);
    (*segment)->reap();
  }
  close(file);
  did(std::to_string(runs) + " segments, " + std::to_string(attached) + " attached");
}

}  // namespace
}  // namespace berth::testing
