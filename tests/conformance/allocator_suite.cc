// SPDX-License-Identifier: Apache-2.0
#include "conformance/allocator_suite.h"

#include <algorithm>
#include <atomic>
#include <map>
#include <set>
#include <thread>
#include <vector>

#include "base/random.h"
#include "base/text.h"
#include "support/misuse_log.h"

namespace berth::testing {

using namespace internal;

namespace {

std::uintptr_t address(const Block& block) { return reinterpret_cast<std::uintptr_t>(block.data); }

// Writes and reads through the device, so that the same check works for memory that the host must not access.
void write(const Block& block, unsigned char value) { fill_bytes(block.data, block.device, value, block.bytes); }

bool holds(const Block& block, unsigned char value) {
  std::vector<unsigned char> bytes(block.bytes);
  copy_bytes(bytes.data(), "cpu", block.data, block.device, block.bytes);
  return std::ranges::all_of(bytes, [&](unsigned char b) { return b == value; });
}

// Tables are made when they are first needed.
Stats without_tables(Stats stats) {
  stats.table_bytes = 0;
  return stats;
}

void expect_sound(const Allocator& allocator, Report& report) {
  const Stats s = allocator.stats();
  report.expect(s.in_use_bytes + s.cached_bytes == s.committed_bytes, "in use + cached == committed");
  report.expect(s.in_use_bytes <= s.peak_in_use_bytes && s.committed_bytes <= s.peak_committed_bytes, "peaks are not below what is held");
  report.expect(s.allocations == s.frees + s.live_blocks, "allocations == frees + live blocks");
  const std::string audit = allocator.audit();
  report.expect(audit.empty(), "the audit finds nothing, not: " + audit);
}

void aligns_blocks(const AllocatorSubject& subject, Report& report) {
  const auto allocator = subject.make();
  const std::size_t usual = allocator->backend().properties().alignment;
  for (std::size_t alignment = 1; alignment <= 65536; alignment *= 2) {
    const Block odd = allocator->allocate({.bytes = 3});  // so that the next address is aligned only if the
                                                          // allocator aligns it
    const Block block = allocator->allocate({.bytes = 100, .alignment = alignment});
    report.expect(address(block) % alignment == 0, text::join("a block asked for alignment ", alignment, " has it"));
    report.expect(address(odd) % usual == 0, "a block that asks for none has the device's");
    allocator->deallocate(block);
    allocator->deallocate(odd);
  }
}

void refuses_bad_alignment(const AllocatorSubject& subject, Report& report) {
  const auto allocator = subject.make();
  for (const std::size_t alignment : {std::size_t{3}, std::size_t{48}, std::size_t{1} << 50, SIZE_MAX}) {
    bool refused = false;
    try {
      allocator->allocate({.bytes = 16, .alignment = alignment});
    } catch (const ArgumentError& error) {
      refused = error.code() == ErrorCode::invalid_alignment;
    }
    report.expect(refused, text::join("alignment ", alignment, " is refused as invalid_alignment"));
  }
  expect_sound(*allocator, report);
}

void carries_the_request(const AllocatorSubject& subject, Report& report) {
  const auto allocator = subject.make();
  const Stream stream = make_stream(allocator->device());
  const Block block = allocator->allocate({.bytes = 1000, .alignment = 256, .stream = stream, .tag = "conformance"});
  report.expect(block.bytes == 1000 && block.alignment == 256, "bytes and alignment are those of the request");
  report.expect(block.tag == Tag("conformance"), "the tag is that of the request");
  report.expect(block.stream_id == stream.id(), "the stream is that of the request");
  report.expect(block.device == allocator->device() && block.allocator_id == allocator->id(), "device and allocator are its own");
  allocator->deallocate(block);
  const TagScope scope("scoped");
  const Block scoped = allocator->allocate({.bytes = 8});
  report.expect(scoped.tag == Tag("scoped"), "without a tag, that of the scope counts");
  allocator->deallocate(scoped);
}

void keeps_blocks_apart(const AllocatorSubject& subject, Report& report) {
  const auto allocator = subject.make();
  Random random(7);
  std::vector<std::pair<Block, unsigned char>> live;
  for (int i = 0; i < 60; ++i) {
    const auto value = static_cast<unsigned char>(i + 1);
    live.emplace_back(allocator->allocate({.bytes = 1 + random.below(5000)}), value);
    write(live.back().first, value);
    if (random.one_in(3)) {
      const std::size_t at = random.below(live.size());
      report.expect(holds(live[at].first, live[at].second), "a block holds what was written to it");
      allocator->deallocate(live[at].first);
      live.erase(live.begin() + static_cast<std::ptrdiff_t>(at));
    }
  }
  std::map<std::uintptr_t, std::uintptr_t> ranges;
  for (const auto& [block, value] : live) {
    report.expect(holds(block, value), "a block holds what was written to it");
    ranges[address(block)] = address(block) + block.bytes;
  }
  std::uintptr_t end = 0;
  for (const auto& [first, last] : ranges) {
    report.expect(first >= end, "no two live blocks overlap");
    end = last;
  }
  for (const auto& [block, value] : live) allocator->deallocate(block);
  expect_sound(*allocator, report);
}

void has_its_blocks_in_its_range(const AllocatorSubject& subject, Report& report) {
  const auto allocator = subject.make();
  for (const std::size_t bytes : {std::size_t{1}, std::size_t{5000}, std::size_t{70'000}}) {
    const Block block = allocator->allocate({.bytes = bytes});
    const std::span<const std::byte> range = allocator->range();
    const std::uintptr_t offset = address(block) - reinterpret_cast<std::uintptr_t>(range.data());
    report.expect(range.empty() || (offset < range.size() && range.size() - offset >= bytes), "a block lies in the allocator's range");
    allocator->deallocate(block);
    report.expect(allocator->range().data() == range.data() && allocator->range().size() == range.size(), "the range stays");
  }
}

void treats_zero_bytes_as_nothing(const AllocatorSubject& subject, Report& report) {
  const auto allocator = subject.make();
  const Stats before = allocator->stats();
  const Block none = allocator->allocate({.bytes = 0});
  report.expect(none.data == nullptr && none.bytes == 0, "zero bytes have a null address");
  const MisuseLog log;
  allocator->deallocate(none);
  allocator->deallocate(none);
  allocator->deallocate(Block());
  report.expect(log.reported().empty() && allocator->stats() == before, "freeing nothing does nothing");
}

void counts_what_it_holds(const AllocatorSubject& subject, Report& report) {
  const auto allocator = subject.make();
  std::size_t sum = 0;
  std::vector<Block> live;
  for (std::size_t i = 1; i <= 20; ++i) {
    live.push_back(allocator->allocate({.bytes = 100 * i}));
    sum += 100 * i;
    report.expect(allocator->stats().in_use_bytes == sum && allocator->stats().live_blocks == i, "in use is the sum of the live blocks");
    expect_sound(*allocator, report);
  }
  for (const Block& block : live) {
    allocator->deallocate(block);
    expect_sound(*allocator, report);
  }
  const Stats end = allocator->stats();
  report.expect(end.in_use_bytes == 0 && end.live_blocks == 0 && end.peak_in_use_bytes == sum,
                "nothing is in use at the end, and the peak is remembered");
  report.expect(end.allocations == 20 && end.frees == 20, "twenty allocations, twenty frees");
}

void refuses_too_much_and_goes_on(const AllocatorSubject& subject, Report& report) {
  const auto allocator = subject.make();
  const Stats before = allocator->stats();
  for (const std::size_t bytes : {std::size_t{1} << 60, SIZE_MAX, SIZE_MAX - 63}) {
    report.expect(!allocator->try_allocate({.bytes = bytes}).has_value(), "try_allocate of too much gives nothing");
    bool reported = false;
    try {
      allocator->allocate({.bytes = bytes, .tag = "greedy"});
    } catch (const OutOfMemory& error) {
      const OutOfMemoryReport& r = error.report();
      reported = r.requested_bytes == bytes && r.device == allocator->device() && r.tag == Tag("greedy") && !r.refused_by.empty() &&
                 !r.allocator.empty();
    }
    report.expect(reported, "allocate of too much throws OutOfMemory with a full report");
  }
  Stats after = allocator->stats();
  after.failures = before.failures;
  report.expect(without_tables(after) == without_tables(before), "a refused request changes nothing but the count of failures");
  allocator->deallocate(allocator->allocate({.bytes = 64}));
  expect_sound(*allocator, report);
}

void survives_a_double_free(const AllocatorSubject& subject, Report& report) {
  const auto allocator = subject.make();
  const MisuseLog log;
  const Block kept = allocator->allocate({.bytes = 64});
  const Block block = allocator->allocate({.bytes = 64});
  write(kept, 7);
  allocator->deallocate(block);
  const Stats before = allocator->stats();
  allocator->deallocate(block);
  allocator->deallocate_now(block);
  report.expect(log.reported() == std::vector{MisuseKind::double_free, MisuseKind::double_free},
                "each second free is reported as a double free");
  report.expect(allocator->stats() == before && holds(kept, 7), "a double free changes nothing");
  // The address may belong to another block by then; the stale handle must not free that one.
  std::vector<Block> reused;
  for (int i = 0; i < 8; ++i) reused.push_back(allocator->allocate({.bytes = 64}));
  const Stats filled = allocator->stats();
  allocator->deallocate(block);
  report.expect(log.reported().size() == 3 && allocator->stats() == filled,
                "a stale handle does not free the block that has its address now");
  for (const Block& b : reused) allocator->deallocate(b);
  allocator->deallocate(kept);
  expect_sound(*allocator, report);
}

void survives_foreign_frees(const AllocatorSubject& subject, Report& report) {
  const auto allocator = subject.make();
  const auto other = subject.make();
  const Block block = allocator->allocate({.bytes = 4096});
  const Stats before = allocator->stats();
  int local = 0;
  Block from_stack = block;
  from_stack.data = &local;
  Block inside = block;
  inside.data = static_cast<std::byte*>(block.data) + 64;
  Block high_bits = block;
  high_bits.data = reinterpret_cast<void*>(address(block) | 0xff00000000000000ULL);
  Block never = allocator->block_at(static_cast<std::byte*>(block.data) + 1, 1);
  Block resized = block;
  resized.bytes = 4095;
  const MisuseLog log;
  for (const Block& wrong : {from_stack, inside, high_bits, never, resized}) {
    const std::size_t reports = log.reported().size();
    allocator->deallocate(wrong);
    report.expect(log.reported().size() == reports + 1, "a free of what was never handed out is reported");
  }
  other->deallocate(block);
  report.expect(log.reported().size() == 6 && log.reported().back() == MisuseKind::foreign_free,
                "another allocator's block is a foreign free");
  report.expect(without_tables(allocator->stats()) == without_tables(before) && other->stats().frees == 0, "foreign frees change nothing");
  allocator->deallocate(block);
  expect_sound(*allocator, report);
}

void frees_by_address(const AllocatorSubject& subject, Report& report) {
  const auto allocator = subject.make();
  const Block block = allocator->allocate({.bytes = 777});
  const MisuseLog log;
  allocator->deallocate(allocator->block_at(block.data, block.bytes));
  report.expect(log.reported().empty() && allocator->stats().in_use_bytes == 0, "a block is freed by its address and size");
  expect_sound(*allocator, report);
}

void finds_its_blocks_by_address(const AllocatorSubject& subject, Report& report) {
  const auto allocator = subject.make();
  const auto other = subject.make();
  const auto found_at = [&](const void* data) { return allocator->block_at(data); };
  int local = 0;
  std::vector<Block> blocks;
  for (const std::size_t bytes : {1U, 64U, 777U, 5000U, 70'000U, 200'000U, 1'500'000U}) {
    blocks.push_back(allocator->allocate({.bytes = bytes, .tag = "by address"}));
    const Block stranger = other->allocate({.bytes = bytes});
    report.expect(!found_at(stranger.data), "another allocator's block is not found");
    other->deallocate(stranger);
  }
  report.expect(!found_at(nullptr) && !found_at(&local) && !found_at(&blocks), "nor is what is no block");
  for (const Block& block : blocks) {
    const auto found = found_at(block.data);
    report.expect(found && found->data == block.data && found->bytes == block.bytes && found->serial == block.serial,
                  text::join("a block of ", block.bytes, " is found by its address"));
    report.expect(found && found->tag == Tag("by address") && found->device == block.device, "with its tag and device");
    auto* const begin = static_cast<std::byte*>(block.data);
    const bool inside = block.bytes > 1 && (found_at(begin + 1) || found_at(begin + block.bytes / 2) || found_at(begin + block.bytes - 1));
    report.expect(!inside, "and not by an address inside of it");
    const MisuseLog log;
    if (found) allocator->deallocate(*found);
    report.expect(log.reported().empty(), "what is found is freed like the original");
    report.expect(!found_at(block.data), "and is not found after that");
    if (found) allocator->deallocate(*found);
    report.expect(log.reported() == std::vector{MisuseKind::double_free}, "freeing it twice is a double free");
  }
  report.expect(allocator->stats().live_blocks == 0, "all are freed");
  expect_sound(*allocator, report);
}

void numbers_every_block(const AllocatorSubject& subject, Report& report) {
  const auto allocator = subject.make();
  std::set<std::uint64_t> serials;
  for (int i = 0; i < 100; ++i) {
    const Block block = allocator->allocate({.bytes = 32});
    report.expect(block.serial != 0 && serials.insert(block.serial).second, "serials are never used twice");
    allocator->deallocate(block);
  }
}

void gives_back_now(const AllocatorSubject& subject, Report& report) {
  if (!subject.returns_at_once) return;
  const auto allocator = subject.make();
  const std::size_t held = allocator->stats().committed_bytes;
  const Block block = allocator->allocate({.bytes = 300000});
  allocator->deallocate_now(block);
  report.expect(allocator->stats().committed_bytes <= held, "after deallocate_now the device has the memory back");
}

void knows_its_holders(const AllocatorSubject& subject, Report& report) {
  const auto allocator = subject.make();
  report.expect(allocator->holders().empty(), "nobody holds anything of a fresh allocator");
  std::vector<Block> live;
  for (const std::size_t bytes : {100U, 3000U, 200000U}) live.push_back(allocator->allocate({.bytes = bytes, .tag = "most"}));
  live.push_back(allocator->allocate({.bytes = 5000, .tag = "some"}));
  live.push_back(allocator->allocate({.bytes = 70}));
  const Block gone = allocator->allocate({.bytes = 10, .tag = "gone"});
  allocator->deallocate(gone);
  const std::vector<Holder> holders = allocator->holders();
  report.expect(holders.size() == 3, "a holder for each tag of a live block, and one for those without");
  if (holders.size() == 3) {
    report.expect(holders[0].tag == Tag("most") && holders[0].bytes == 203100 && holders[0].blocks == 3, "the most comes first");
    report.expect(holders[1].tag == Tag("some") && holders[1].bytes == 5000 && holders[1].blocks == 1, "then what is less");
    report.expect(!holders[2].tag && holders[2].bytes == 70 && holders[2].blocks == 1, "blocks without a tag are not left out");
  }
  for (const Block& block : live) allocator->deallocate(block);
  report.expect(allocator->holders().empty(), "what is freed is held by nobody");
}

// Whatever a strategy can grow, its answer must be true: yes means longer in place, no means nothing changed.
void grows_in_place_or_not_at_all(const AllocatorSubject& subject, Report& report) {
  const auto allocator = subject.make();
  for (const std::size_t first : {std::size_t{60}, std::size_t{1000}, std::size_t{150000}}) {
    Block block = allocator->allocate({.bytes = first, .tag = "grows"});
    write(block, 5);
    for (const std::size_t more : {std::size_t{1}, std::size_t{20}, std::size_t{4000}, std::size_t{70000}, 3_MiB}) {
      const Block before = block;
      const Stats then = allocator->stats();
      if (allocator->try_grow(block, before.bytes + more)) {
        report.expect(block.data == before.data && block.bytes == before.bytes + more, "a grown block is longer, and where it was");
        report.expect(block.serial != before.serial && block.tag == before.tag, "it has a new serial, and its tag");
        report.expect(holds(before, 5), "its bytes are as they were");
        const Stats now = allocator->stats();
        report.expect(now.in_use_bytes == then.in_use_bytes + more && now.live_blocks == then.live_blocks, "what it grew by is in use");
        report.expect(now.peak_in_use_bytes == std::max(then.peak_in_use_bytes, now.in_use_bytes), "the peak is what was in use");
        write(block, 5);
        const MisuseLog log;
        allocator->deallocate(before);
        report.expect(log.reported() == std::vector{MisuseKind::double_free} && allocator->stats() == now,
                      "an old copy of it frees nothing");
      } else {
        report.expect(block == before && allocator->stats() == then, "a block that cannot grow is as it was");
      }
      expect_sound(*allocator, report);
    }
    const std::vector<Holder> holders = allocator->holders();
    report.expect(holders.size() == 1 && holders[0].bytes == block.bytes, "its holder has the bytes it has now");
    Block same = block;
    report.expect(allocator->try_grow(same, block.bytes) && same == block, "as many bytes as it has, it has");
    report.expect(!allocator->try_grow(same, block.bytes - 1) && same == block, "a block is never made shorter");
    report.expect(!allocator->try_grow(same, SIZE_MAX) && same == block, "nor larger than any memory");
    report.expect(!subject.make()->try_grow(same, block.bytes + 1) && same == block, "another allocator's block is not grown");
    allocator->deallocate(block);
    report.expect(!allocator->try_grow(same, same.bytes + 1), "a block that was freed is not grown");
  }
  Block none;
  report.expect(!allocator->try_grow(none, 10), "nothing does not grow");
  report.expect(allocator->stats().in_use_bytes == 0, "nothing is left");
  expect_sound(*allocator, report);
}

void is_harmless_when_idle(const AllocatorSubject& subject, Report& report) {
  const auto allocator = subject.make();
  allocator->release_cached();
  allocator->trim(1 << 20);
  const Block block = allocator->allocate({.bytes = 10000});
  write(block, 9);
  allocator->release_cached();
  allocator->reserve(4096);
  report.expect(holds(block, 9), "giving cached memory back leaves live blocks alone");
  allocator->deallocate(block);
  allocator->release_cached();
  expect_sound(*allocator, report);
}

void leaves_a_held_device_alone(const AllocatorSubject& subject, Report& report) {
  const auto allocator = subject.make();
  const Block block = allocator->allocate({.bytes = 5000});
  const std::size_t committed = allocator->stats().committed_bytes;
  std::optional<Block> during;
  {
    const Hold outer = allocator->hold();
    Hold quiet = allocator->hold();
    allocator->deallocate_now(block);
    report.expect(allocator->stats().committed_bytes == committed, "nothing goes back to a held device");
    during = allocator->try_allocate({.bytes = 20_MiB});
    report.expect(!during.has_value(), "what no cache can serve is refused while held");
    bool busy = false;
    try {
      allocator->allocate({.bytes = 20_MiB});
    } catch (const AccessError& error) {
      busy = error.code() == ErrorCode::busy;
    } catch (const OutOfMemory&) {
      busy = subject.limit_bytes.has_value();  // the limit refused it before the hold could
    }
    report.expect(busy, "a held allocator answers busy");
    Hold moved = std::move(quiet);
    const MisuseLog log;
    allocator->deallocate(block);
    report.expect(log.reported() == std::vector{MisuseKind::double_free}, "a block freed in a hold is freed");
  }
  report.expect(allocator->stats().in_use_bytes == 0, "what was freed in the hold is free afterwards");
  if (subject.returns_at_once) report.expect(allocator->stats().committed_bytes == 0, "and back with the device");
  const std::optional<Block> after = allocator->try_allocate({.bytes = 5000});
  report.expect(after.has_value(), "after the hold requests are served again");
  if (after) allocator->deallocate(*after);
  expect_sound(*allocator, report);
}

void keeps_to_its_limit(const AllocatorSubject& subject, Report& report) {
  if (!subject.limit_bytes) return;
  const std::size_t limit = *subject.limit_bytes;
  const auto allocator = subject.make();
  const auto refused = [&](std::size_t bytes) {
    const auto block = allocator->try_allocate({.bytes = bytes});
    if (block) allocator->deallocate(*block);
    return !block.has_value();
  };
  report.expect(refused(limit + 1), "one byte over the limit is refused");
  const auto whole = allocator->try_allocate({.bytes = limit});
  report.expect(whole.has_value(), "exactly the limit is served");
  report.expect(refused(1), "and then not a byte more");
  if (whole) allocator->deallocate(*whole);
  const auto half = allocator->try_allocate({.bytes = limit / 2});
  const auto rest = allocator->try_allocate({.bytes = limit - limit / 2});
  report.expect(half && rest, "what was freed can be used again to the last byte");
  if (half) allocator->deallocate(*half);
  if (rest) allocator->deallocate(*rest);
}

void records_what_happens(const AllocatorSubject& subject, Report& report) {
  struct Collect : Sink {
    void on_record(const Record& record) noexcept override {
      if (record.allocator_id == wanted) records.push_back(record);
    }
    std::uint64_t wanted = 0;
    std::vector<Record> records;
  };
  const auto allocator = subject.make();
  const auto sink = std::make_shared<Collect>();
  sink->wanted = allocator->id();
  sink->records.reserve(16);
  SinkAttachment attached = attach_sink(sink);
  const Block block = allocator->allocate({.bytes = 123, .tag = "seen", .site = Site::here()});
  allocator->deallocate(allocator->block_at(block.data, block.bytes));
  allocator->try_allocate({.bytes = SIZE_MAX});
  attached.detach();
  report.expect(sink->records.size() == 3, "an allocation, a free and a refusal make three records");
  if (sink->records.size() != 3) return;
  const Record& made = sink->records[0];
  const Record& freed = sink->records[1];
  report.expect(
      made.kind == RecordKind::allocated && freed.kind == RecordKind::freed && sink->records[2].kind == RecordKind::allocation_failed,
      "each of its kind");
  report.expect(made.serial == block.serial && freed.serial == block.serial && made.bytes == 123 && freed.bytes == 123,
                "the free is paired with its allocation");
  report.expect(made.tag == Tag("seen") && freed.tag == Tag("seen") && made.site.value != 0, "with tag and site");
}

void serves_many_threads(const AllocatorSubject& subject, Report& report) {
  const auto allocator = subject.make();
  std::atomic<bool> right{true};
  // Each thread frees what its neighbour allocated, so that blocks cross threads.
  constexpr int kThreads = 4;
  constexpr int kRounds = 50;
  std::vector<std::atomic<Block*>> mail(kThreads);
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&, t] {
      Random random(static_cast<std::uint64_t>(t));
      for (int i = 0; i < kRounds; ++i) {
        auto* const block = new Block(allocator->allocate({.bytes = 1 + random.below(2000)}));
        const auto value = static_cast<unsigned char>(16 * t + i % 16);
        write(*block, value);
        if (!holds(*block, value)) right = false;
        Block* const from_neighbour = mail[static_cast<std::size_t>((t + 1) % kThreads)].exchange(block);
        if (from_neighbour != nullptr) {
          allocator->deallocate(*from_neighbour);
          delete from_neighbour;
        }
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (auto& slot : mail) {
    if (Block* const block = slot.load()) {
      allocator->deallocate(*block);
      delete block;
    }
  }
  report.expect(right, "no thread sees another's bytes");
  report.expect(allocator->stats().in_use_bytes == 0 && allocator->stats().live_blocks == 0, "nothing is lost between threads");
  expect_sound(*allocator, report);
}

void minds_every_stream_of_a_block(const AllocatorSubject& subject, Report& report) {
  const auto allocator = subject.make();
  const Stream own = make_stream(allocator->device());
  const Stream other = make_stream(allocator->device());
  std::atomic<bool> go{false};
  const Block block = allocator->allocate({.bytes = 1000, .stream = own});
  allocator->used_on(block, other);
  other.enqueue([&] {
    while (!go.load()) std::this_thread::yield();
  });
  allocator->deallocate(block);
  std::vector<Block> more;
  for (int i = 0; i < 4; ++i) more.push_back(allocator->allocate({.bytes = 1000, .stream = own}));
  report.expect(std::ranges::none_of(more, [&](const Block& next) { return next.data == block.data; }),
                "memory that another stream still uses is not handed out");
  expect_sound(*allocator, report);
  go.store(true);
  other.synchronize();
  {
    const MisuseLog log;
    allocator->used_on(block, other);
    report.expect(log.reported().size() == 1, "a use of a block that was freed is reported");
    allocator->used_on(Block(), other);
    allocator->used_on(more[0], {});
    report.expect(log.reported().size() == 1, "one of nothing, or by nobody, is not");
  }
  for (const Block& next : more) allocator->deallocate(next);
  report.expect(allocator->stats().live_blocks == 0, "every block is freed");
}

constexpr AllocatorCheck kAllocatorChecks[] = {
    {"AlignsBlocks", aligns_blocks},
    {"RefusesBadAlignment", refuses_bad_alignment},
    {"CarriesTheRequest", carries_the_request},
    {"KeepsBlocksApart", keeps_blocks_apart},
    {"HasItsBlocksInItsRange", has_its_blocks_in_its_range},
    {"TreatsZeroBytesAsNothing", treats_zero_bytes_as_nothing},
    {"CountsWhatItHolds", counts_what_it_holds},
    {"RefusesTooMuchAndGoesOn", refuses_too_much_and_goes_on},
    {"SurvivesADoubleFree", survives_a_double_free},
    {"SurvivesForeignFrees", survives_foreign_frees},
    {"FreesByAddress", frees_by_address},
    {"FindsItsBlocksByAddress", finds_its_blocks_by_address},
    {"NumbersEveryBlock", numbers_every_block},
    {"GivesBackNow", gives_back_now},
    {"KnowsItsHolders", knows_its_holders},
    {"GrowsInPlaceOrNotAtAll", grows_in_place_or_not_at_all},
    {"IsHarmlessWhenIdle", is_harmless_when_idle},
    {"LeavesAHeldDeviceAlone", leaves_a_held_device_alone},
    {"KeepsToItsLimit", keeps_to_its_limit},
    {"RecordsWhatHappens", records_what_happens},
    {"MindsEveryStreamOfABlock", minds_every_stream_of_a_block},
    {"ServesManyThreads", serves_many_threads},
};

}  // namespace

std::span<const AllocatorCheck> allocator_checks() { return kAllocatorChecks; }

Report check_allocator(const AllocatorSubject& subject) {
  Report report;
  for (const AllocatorCheck& check : kAllocatorChecks) check.run(subject, report);
  return report;
}

}  // namespace berth::testing
