// SPDX-License-Identifier: Apache-2.0
#include "conformance/backend_suite.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstring>
#include <numeric>
#include <stdexcept>
#include <thread>
#include <vector>

#include "base/text.h"
#include "berth/device/element_copy.h"

namespace berth::testing {

using namespace internal;

namespace {

using Bytes = std::vector<unsigned char>;

// A committed range, released by the destructor.
class Committed {
 public:
  Committed(Backend& backend, std::size_t units, Report& report) : backend_(backend), bytes_(units * backend.properties().unit_bytes) {
    const Result<void*> range = backend.reserve(bytes_, backend.properties().unit_bytes);
    report.expect(range.ok(), "a range is reserved");
    if (!range) return;
    data_ = static_cast<std::byte*>(*range);
    report.expect(backend.commit(data_, bytes_).ok(), "and committed");
  }
  ~Committed() {
    if (data_ != nullptr) (void)backend_.release(data_, bytes_).ok();
  }
  Committed(const Committed&) = delete;
  Committed& operator=(const Committed&) = delete;

  std::byte* data() const { return data_; }
  std::size_t bytes() const { return bytes_; }

 private:
  Backend& backend_;
  std::size_t bytes_;
  std::byte* data_ = nullptr;
};

Bytes pattern(std::size_t count, unsigned seed = 1) {
  Bytes bytes(count);
  std::iota(bytes.begin(), bytes.end(), static_cast<unsigned char>(seed));
  return bytes;
}

Status put(Backend& backend, void* target, const Bytes& bytes, StreamRef stream = {}) {
  return backend.copy({target, backend.device(), bytes.data(), Device(), bytes.size()}, stream);
}

Bytes get(Backend& backend, const void* source, std::size_t count) {
  Bytes bytes(count, 0xee);
  (void)backend.copy({bytes.data(), Device(), source, backend.device(), count}, {}).ok();
  return bytes;
}

// Host functions that block a stream until the gate is opened, which the destructor does at the latest.
class Gate {
 public:
  ~Gate() { open(); }
  void open() { open_->store(true); }
  std::function<void()> block() const {
    return [open = open_] {
      while (!open->load()) std::this_thread::sleep_for(std::chrono::microseconds(50));
    };
  }

 private:
  std::shared_ptr<std::atomic<bool>> open_ = std::make_shared<std::atomic<bool>>(false);
};

void describes_itself(Backend& backend, Report& report) {
  const BackendProperties& p = backend.properties();
  const auto power = [](std::size_t v) { return v != 0 && (v & (v - 1)) == 0; };
  report.expect(power(p.unit_bytes) && power(p.alignment) && power(p.max_alignment) && p.alignment <= p.max_alignment,
                "units and alignments are powers of two");
  report.expect(!p.description.empty(), "it has a description");
  const MemoryInfo memory = backend.memory_info();
  report.expect(memory.free_bytes <= memory.total_bytes && memory.total_bytes > 0, "it has memory, and not more free than there is");
  report.expect(backend.is_alive(), "it is alive");
}

void reserves_aligned_ranges(Backend& backend, Report& report) {
  const std::size_t unit = backend.properties().unit_bytes;
  for (std::size_t alignment = unit; alignment <= 64 * unit; alignment *= 4) {
    const Result<void*> a = backend.reserve(3 * unit, alignment);
    const Result<void*> b = backend.reserve(unit - 1, alignment);
    report.expect(a && b, "ranges are reserved");
    if (!a || !b) return;
    report.expect(reinterpret_cast<std::uintptr_t>(*a) % alignment == 0 && reinterpret_cast<std::uintptr_t>(*b) % alignment == 0,
                  "at their alignment");
    report.expect(*a != *b, "and apart");
    report.expect(backend.release(*a, 3 * unit).ok() && backend.release(*b, unit).ok(), "and released");
  }
  report.expect(!backend.reserve(SIZE_MAX - 5, unit).ok(), "an impossible range is refused");
}

void holds_bytes(Backend& backend, Report& report) {
  const Committed range(backend, 3, report);
  const Bytes bytes = pattern(range.bytes());
  report.expect(put(backend, range.data(), bytes).ok(), "bytes are copied in");
  report.expect(get(backend, range.data(), bytes.size()) == bytes, "and come out the same");
  const std::size_t unit = backend.properties().unit_bytes;
  report.expect(put(backend, range.data() + unit - 3, pattern(7, 100)).ok() && get(backend, range.data() + unit - 3, 7) == pattern(7, 100),
                "also across the border of a unit");
  report.expect(get(backend, range.data() + unit + 4, 9) ==
                    Bytes(bytes.begin() + static_cast<std::ptrdiff_t>(unit) + 4, bytes.begin() + static_cast<std::ptrdiff_t>(unit) + 13),
                "and nothing beside it changes");
}

void copies_within_itself(Backend& backend, Report& report) {
  const Committed range(backend, 2, report);
  const Bytes bytes = pattern(100);
  (void)put(backend, range.data(), bytes).ok();
  report.expect(backend.copy({range.data() + 500, backend.device(), range.data(), backend.device(), 100}, {}).ok(),
                "a copy within the device works");
  report.expect(get(backend, range.data() + 500, 100) == bytes, "and is right");
  report.expect(backend.copy({range.data() + 10, backend.device(), range.data(), backend.device(), 90}, {}).ok(),
                "an overlapping copy works");
  report.expect(get(backend, range.data() + 10, 90) == Bytes(bytes.begin(), bytes.begin() + 90), "as if through a temporary");
  report.expect(backend.copy({range.data(), backend.device(), bytes.data(), Device(), 0}, {}).ok(), "a copy of nothing works");
}

// To the device, within it and from it, each as one batch.
void copies_batches(Backend& backend, Report& report) {
  constexpr std::size_t kCopies = 100;
  const Committed range(backend, 2, report);
  const Device here = backend.device();
  const Bytes bytes = pattern(20 * kCopies);
  Bytes out(bytes.size(), 0xee);
  std::vector<Transfer> lists[3];
  for (std::size_t i = 0; i < kCopies; ++i) {
    const std::size_t length = i % 20 + (i == 0 ? 0 : 1);  // one of them is empty
    std::byte* const first = range.data() + 20 * (kCopies - 1 - i);
    std::byte* const second = range.data() + 20 * kCopies + 20 * i;
    lists[0].push_back({first, here, &bytes[20 * i], Device(), length});
    lists[1].push_back({second, here, first, here, length});
    lists[2].push_back({&out[20 * i], Device(), second, here, length});
  }
  for (std::vector<Transfer>& list : lists) {
    report.expect(backend.copy_batch(list, {}).ok(), "a batch is taken");
    std::fill(list.begin(), list.end(), Transfer());
  }
  for (std::size_t i = 0; i < kCopies; ++i) {
    for (std::size_t j = 0; j < 20; ++j) {
      const bool copied = j < i % 20 + (i == 0 ? 0 : 1);
      report.expect(out[20 * i + j] == (copied ? bytes[20 * i + j] : 0xee), "each of a batch's copies is done, and nothing else");
    }
  }
  report.expect(backend.copy_batch({}, {}).ok(), "a batch of nothing works");
}

void keeps_batches_in_order(Backend& backend, Report& report) {
  if (!backend.properties().abilities.streams) return;
  const Committed range(backend, 1, report);
  const Result<Stream> stream = backend.make_stream();
  if (!stream) return report.expect(false, "a stream is made");
  Gate gate;
  (void)put(backend, range.data(), Bytes(64, 1)).ok();
  stream->enqueue(gate.block());
  const Bytes late = pattern(64, 50);
  {
    std::vector<Transfer> list = {{range.data(), backend.device(), late.data(), Device(), 32},
                                  {range.data() + 32, backend.device(), late.data() + 32, Device(), 32}};
    report.expect(backend.copy_batch(list, *stream).ok(), "a batch goes into a blocked stream");
    std::fill(list.begin(), list.end(), Transfer());
  }
  report.expect(get(backend, range.data(), 64) == Bytes(64, 1), "and has not happened");
  gate.open();
  stream->synchronize();
  report.expect(get(backend, range.data(), 64) == late, "after the block opens it has, though the list is gone");
}

// A transpose with a conversion. Only that it works; exact results are for the kernel tests.
void converts_elements(Backend& backend, Report& report) {
  if (!backend.properties().abilities.kernels) return;
  const Committed range(backend, 1, report);
  const float values[] = {1.5F, -2.0F, 3.0F, 400.0F, -1e30F, 0.0F};
  const std::int8_t expected[] = {1, 127, -2, -128, 3, 0};  // column by column
  Bytes bytes(sizeof values);
  std::memcpy(bytes.data(), values, sizeof values);
  (void)put(backend, range.data(), bytes).ok();
  const ElementCopy copy{.target = range.data() + 512,
                         .target_dtype = DType::i8,
                         .target_strides = {2, 1},
                         .source = range.data(),
                         .source_dtype = DType::f32,
                         .source_strides = {1, 3},
                         .shape = {3, 2}};
  report.expect(backend.copy_elements(copy, {}).ok(), "elements are copied");
  const Bytes made = get(backend, range.data() + 512, 6);
  report.expect(std::memcmp(made.data(), expected, 6) == 0, "in the other order, and converted");
}

void fills_with_patterns(Backend& backend, Report& report) {
  const Committed range(backend, 2, report);
  for (const std::size_t size : {1U, 2U, 4U, 8U, 16U}) {
    const Bytes one = pattern(size, 40);
    const Bytes guard = pattern(16, 200);
    (void)put(backend, range.data() + 960, guard).ok();
    const auto* const first = reinterpret_cast<const std::byte*>(one.data());
    report.expect(backend.fill(range.data(), 960, {first, size}, {}).ok(), text::join("a fill with ", size, " bytes works"));
    Bytes expected;
    while (expected.size() < 960) expected.insert(expected.end(), one.begin(), one.end());
    report.expect(get(backend, range.data(), 960) == expected, "and repeats the pattern");
    report.expect(get(backend, range.data() + 960, 16) == guard, "and stops at the end");
  }
  const std::byte three[3] = {};
  report.expect(!backend.fill(range.data(), 9, three, {}).ok(), "a pattern of three bytes is refused");
}

void makes_bytes_zero(Backend& backend, Report& report) {
  constexpr std::size_t kEnough = std::size_t{160} << 10;  // for a backend to look at pages
  const Committed range(backend, std::max<std::size_t>(kEnough / backend.properties().unit_bytes, 1), report);
  const Bytes dirty = pattern(range.bytes());
  (void)put(backend, range.data(), dirty).ok();
  const std::size_t count = range.bytes() - 2000;
  report.expect(backend.zero(range.data() + 1000, count, {}).ok(), "bytes are made zero");
  Bytes expected = dirty;
  std::fill_n(expected.begin() + 1000, count, static_cast<unsigned char>(0));
  report.expect(get(backend, range.data(), range.bytes()) == expected, "and those beside them stay");
}

void commits_again_after_decommit(Backend& backend, Report& report) {
  const Committed range(backend, 4, report);
  const std::size_t unit = backend.properties().unit_bytes;
  const Bytes bytes = pattern(4 * unit);
  (void)put(backend, range.data(), bytes).ok();
  report.expect(backend.decommit(range.data() + unit, 2 * unit).ok(), "the middle is decommitted");
  report.expect(get(backend, range.data() + 3 * unit, unit) == Bytes(bytes.end() - static_cast<std::ptrdiff_t>(unit), bytes.end()),
                "what is beside it stays as it was");
  report.expect(backend.commit(range.data() + unit, 2 * unit).ok(), "and committed again");
  report.expect(put(backend, range.data() + unit, pattern(unit, 9)).ok() && get(backend, range.data() + unit, unit) == pattern(unit, 9),
                "and holds bytes again");
}

void refuses_what_is_not_committed(Backend& backend, Report& report) {
  if (backend.properties().abilities.host_access) return;  // there only an access by the host would show it
  const std::size_t unit = backend.properties().unit_bytes;
  const Result<void*> range = backend.reserve(2 * unit, unit);
  report.expect(range && backend.commit(*range, unit).ok(), "half a range is committed");
  if (!range) return;
  Bytes bytes(unit + 1, 1);
  report.expect(!put(backend, *range, bytes).ok(), "a copy that runs out of committed memory is refused");
  report.expect(!backend.fill(*range, unit + 1, std::span<const std::byte>(reinterpret_cast<const std::byte*>("x"), 1), {}).ok(),
                "and a fill");
  int local = 0;
  report.expect(!backend.copy({&local, backend.device(), bytes.data(), Device(), 4}, {}).ok(), "and a host address posing as the device's");
  report.expect(backend.release(*range, 2 * unit).ok(), "and the range is released");
}

void moves_pages(Backend& backend, Report& report) {
  if (!backend.properties().abilities.move) return;
  const std::size_t unit = backend.properties().unit_bytes;
  const Result<void*> reserved = backend.reserve(8 * unit, unit);
  report.expect(reserved.ok(), "a range is reserved");
  if (!reserved) return;
  auto* const base = static_cast<std::byte*>(*reserved);
  report.expect(backend.commit(base, 2 * unit).ok(), "and its front committed");
  const Bytes bytes = pattern(2 * unit, 3);
  (void)put(backend, base, bytes).ok();
  report.expect(backend.move(base, base + 4 * unit, 2 * unit).ok(), "pages move");
  report.expect(get(backend, base + 4 * unit, 2 * unit) == bytes, "and keep their bytes");
  report.expect(backend.commit(base, 2 * unit).ok(), "what they left can be committed again");
  report.expect(put(backend, base, pattern(unit, 77)).ok() &&
                    get(backend, base + 4 * unit, unit) == Bytes(bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(unit)),
                "and is apart from where they are");
  report.expect(backend.release(base, 8 * unit).ok(), "all of it is released");
}

bool ends_well(const Stream& stream) {
  try {
    stream.synchronize();
    return true;
  } catch (const DeviceError&) {
    return false;
  }
}

void moves_pages_in_use(Backend& backend, Report& report) {
  if (!backend.properties().abilities.move_in_use) return;
  const std::size_t unit = backend.properties().unit_bytes;
  const Result<void*> reserved = backend.reserve(8 * unit, unit);
  report.expect(reserved.ok(), "a range is reserved");
  if (!reserved) return;
  auto* const base = static_cast<std::byte*>(*reserved);
  auto* const there = base + 4 * unit;
  report.expect(backend.commit(base, 2 * unit).ok() && backend.commit(base + 2 * unit, 2 * unit).ok(), "and its front committed");
  const Bytes late = pattern(2 * unit, 3);
  const Result<Stream> stream = backend.make_stream();
  report.expect(stream.ok(), "there are streams");
  if (!stream) return;
  const Transfer work{base, backend.device(), late.data(), Device(), late.size()};
  report.expect(backend.copy(work, *stream).ok(), "work on it is under way");
  report.expect(backend.begin_move(base, there, 2 * unit).ok(), "pages move meanwhile");
  report.expect(!backend.commit(base, 2 * unit).ok(), "nothing is put where they were");
  report.expect(!backend.move(base + 2 * unit, base, 2 * unit).ok(), "nor moved there");
  report.expect(ends_well(*stream), "the work goes on");
  report.expect(get(backend, there, 2 * unit) == late, "and what it wrote is found where they are");
  report.expect(backend.end_move(base, 2 * unit).ok(), "they leave their old place");
  report.expect(!backend.end_move(base, 2 * unit).ok(), "once");
  report.expect(backend.commit(base, 2 * unit).ok() && put(backend, base, pattern(2 * unit, 77)).ok(), "which can be committed again");
  report.expect(get(backend, there, 2 * unit) == late, "and is apart from where they are");
  report.expect(backend.begin_move(there, base + 6 * unit, 2 * unit).ok() && backend.decommit(base + 6 * unit, 2 * unit).ok(),
                "what has moved can be decommitted before that");
  report.expect(backend.release(base, 8 * unit).ok(), "and a range released");
}

void allocates_blocks(Backend& backend, Report& report) {
  for (const std::size_t alignment : {std::size_t{16}, std::size_t{256}, std::size_t{8192}}) {
    const Result<void*> a = backend.allocate(1000, alignment);
    const Result<void*> b = backend.allocate(1, alignment);
    report.expect(a && b && *a != *b, "blocks are allocated");
    if (!a || !b) return;
    report.expect(reinterpret_cast<std::uintptr_t>(*a) % alignment == 0 && reinterpret_cast<std::uintptr_t>(*b) % alignment == 0,
                  "at their alignment");
    report.expect(put(backend, *a, pattern(1000)).ok() && get(backend, *a, 1000) == pattern(1000), "and hold bytes");
    backend.free(*a, 1000, alignment);
    backend.free(*b, 1, alignment);
  }
}

void runs_a_stream_in_order(Backend& backend, Report& report) {
  if (!backend.properties().abilities.streams) return;
  const Committed range(backend, 1, report);
  const Result<Stream> stream = backend.make_stream();
  report.expect(stream.ok(), "a stream is made");
  if (!stream) return;
  std::vector<int> order;
  for (int i = 0; i < 20; ++i) stream->enqueue([&order, i] { order.push_back(i); });
  const Bytes first = pattern(64, 1);
  const Bytes second = pattern(64, 2);
  report.expect(put(backend, range.data(), first, *stream).ok() && put(backend, range.data(), second, *stream).ok(), "copies go into it");
  stream->synchronize();
  report.expect(std::ranges::is_sorted(order) && order.size() == 20, "host functions run once each, in order");
  report.expect(get(backend, range.data(), 64) == second, "the last copy wins");
}

void is_never_early(Backend& backend, Report& report) {
  if (!backend.properties().abilities.streams) return;
  const Committed range(backend, 1, report);
  const Result<Stream> stream = backend.make_stream();
  if (!stream) return report.expect(false, "a stream is made");
  Gate gate;
  (void)put(backend, range.data(), Bytes(64, 1)).ok();
  const Event before = stream->record();
  stream->enqueue(gate.block());
  const Bytes late = pattern(64, 50);
  report.expect(put(backend, range.data(), late, *stream).ok(), "a copy goes into a blocked stream");
  const Event after = stream->record();
  before.wait();
  report.expect(before.query(), "an event before the block is done");
  for (int i = 0; i < 20; ++i) {
    report.expect(!after.query(), "an event after the block is not");
    std::this_thread::sleep_for(std::chrono::microseconds(200));
  }
  report.expect(get(backend, range.data(), 64) == Bytes(64, 1), "and the copy has not happened");
  gate.open();
  after.wait();
  report.expect(after.query() && get(backend, range.data(), 64) == late, "after the block opens both have");
}

void runs_streams_apart(Backend& backend, Report& report) {
  if (!backend.properties().abilities.streams) return;
  const Committed range(backend, 1, report);
  const Result<Stream> blocked = backend.make_stream();
  const Result<Stream> free = backend.make_stream();
  if (!blocked || !free) return report.expect(false, "two streams are made");
  report.expect(blocked->id() != free->id(), "with different ids");
  Gate gate;
  blocked->enqueue(gate.block());
  const Bytes bytes = pattern(64, 5);
  report.expect(put(backend, range.data(), bytes, *free).ok(), "a copy goes into the free stream");
  free->synchronize();
  report.expect(get(backend, range.data(), 64) == bytes, "a stream finishes while another is blocked");
  gate.open();
  blocked->synchronize();
}

void waits_for_events_of_other_streams(Backend& backend, Report& report) {
  if (!backend.properties().abilities.streams) return;
  const Result<Stream> a = backend.make_stream();
  const Result<Stream> b = backend.make_stream();
  const Stream host = make_stream("cpu");
  if (!a || !b) return report.expect(false, "two streams are made");
  for (int round = 0; round < 20; ++round) {
    std::atomic<int> step{0};
    bool in_order = true;
    host.enqueue([&] { step = 1; });
    a->wait(host.record());  // an event of another device
    a->enqueue([&] { in_order = in_order && step.exchange(2) == 1; });
    b->wait(a->record());
    b->enqueue([&] { in_order = in_order && step.exchange(3) == 2; });
    b->synchronize();
    a->synchronize();
    host.synchronize();  // a faulty backend may have waited for neither
    report.expect(in_order && step == 3, "work waits for the events it was told to wait for");
  }
}

void hands_exceptions_to_who_waits(Backend& backend, Report& report) {
  if (!backend.properties().abilities.streams) return;
  const Result<Stream> stream = backend.make_stream();
  if (!stream) return report.expect(false, "a stream is made");
  bool ran = false;
  const Event clean = stream->record();
  stream->enqueue([] { throw std::runtime_error("planned"); });
  stream->enqueue([&] { ran = true; });
  const Event dirty = stream->record();
  const auto throws = [](auto wait) {
    try {
      wait();
      return false;
    } catch (const std::runtime_error&) {
      return true;
    }
  };
  report.expect(throws([&] { dirty.wait(); }), "an event after the exception throws it");
  report.expect(!throws([&] { clean.wait(); }), "one before it does not");
  report.expect(throws([&] { stream->synchronize(); }) && !throws([&] { stream->synchronize(); }), "synchronize throws it once");
  report.expect(ran, "and the stream went on");
}

void finishes_dropped_streams(Backend& backend, Report& report) {
  if (!backend.properties().abilities.streams) return;
  auto done = std::make_shared<std::atomic<int>>(0);
  Event last;
  {
    const Result<Stream> stream = backend.make_stream();
    if (!stream) return report.expect(false, "a stream is made");
    for (int i = 0; i < 10; ++i) stream->enqueue([done] { ++*done; });
    last = stream->record();
  }
  last.wait();
  report.expect(*done == 10, "a dropped stream finishes its work");
}

constexpr BackendCheck kBackendChecks[] = {
    {"DescribesItself", describes_itself},
    {"ReservesAlignedRanges", reserves_aligned_ranges},
    {"HoldsBytes", holds_bytes},
    {"CopiesWithinItself", copies_within_itself},
    {"CopiesBatches", copies_batches},
    {"KeepsBatchesInOrder", keeps_batches_in_order},
    {"ConvertsElements", converts_elements},
    {"FillsWithPatterns", fills_with_patterns},
    {"MakesBytesZero", makes_bytes_zero},
    {"CommitsAgainAfterDecommit", commits_again_after_decommit},
    {"RefusesWhatIsNotCommitted", refuses_what_is_not_committed},
    {"MovesPages", moves_pages},
    {"MovesPagesInUse", moves_pages_in_use},
    {"AllocatesBlocks", allocates_blocks},
    {"RunsAStreamInOrder", runs_a_stream_in_order},
    {"IsNeverEarly", is_never_early},
    {"RunsStreamsApart", runs_streams_apart},
    {"WaitsForEventsOfOtherStreams", waits_for_events_of_other_streams},
    {"HandsExceptionsToWhoWaits", hands_exceptions_to_who_waits},
    {"FinishesDroppedStreams", finishes_dropped_streams},
};

}  // namespace

std::span<const BackendCheck> backend_checks() { return kBackendChecks; }

Report check_backend(Backend& backend) {
  Report report;
  for (const BackendCheck& check : kBackendChecks) check.run(backend, report);
  return report;
}

}  // namespace berth::testing
