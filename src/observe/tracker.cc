// SPDX-License-Identifier: Apache-2.0
#include "berth/observe/tracker.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <ostream>
#include <set>
#include <utility>

#include "base/text.h"
#include "berth/base/error.h"
#include "berth/base/json.h"
#include "berth/memory/allocator.h"
#include "memory/live_blocks.h"
#include "memory/process_budget.h"
#include "os/system.h"
#include "storage/watch.h"

namespace berth {

using namespace internal;
using namespace internal::memory;
using namespace internal::storage;

namespace {

using BlockKey = std::pair<std::uint64_t, std::uint64_t>;  // allocator, serial

struct Timed {
  std::uint64_t since_ns;
  Leak leak;
};

std::string handles_in_words(long handles) { return text::join(handles, handles == 1 ? " handle" : " handles"); }

Leak leak_of(const BufferNote& buffer) {
  return {.kind = LeakKind::buffer,
          .owner = buffer.owner,
          .address = buffer.block.data,
          .bytes = buffer.block.bytes,
          .device = buffer.block.device,
          .tag = buffer.block.tag,
          .site = buffer.site,
          .stack = buffer.stack,
          .allocator = buffer.allocator,
          .handles = buffer.handles,
          .holder = handles_in_words(buffer.handles)};
}

// A DLPack export holds a copy of the storage and a pin of its bytes; a pending copy holds a pin only.
Leak leak_of(const BufferNote& buffer, const StorageNote& storage) {
  Leak leak = leak_of(buffer);
  leak.kind = storage.is_whole ? LeakKind::storage : LeakKind::view;
  leak.dtype = storage.dtype;
  leak.shape = storage.shape;
  leak.strides = storage.strides;
  leak.handles = storage.handles;
  leak.holder = handles_in_words(storage.handles);
  if (storage.stack != StackId{}) leak.stack = storage.stack;
  if (buffer.pins == 0) return leak;
  if (storage.handles <= 2L * buffer.pins) leak.kind = LeakKind::exported;
  leak.holder = leak.kind == LeakKind::exported ? "a DLPack consumer, or a copy under way"
                                                : text::join(leak.holder, ", exports or copies under way among them");
  return leak;
}

std::string holder_of(const BlockNote& block) {
  return Device::from_key(block.device).kind_name() == "shared" ? "whoever allocated it, or other processes that have it mapped"
                                                                : "whoever allocated it";
}

std::string name_of(std::uint64_t allocator_id, const std::vector<std::shared_ptr<Allocator>>& strategies) {
  const auto found = std::ranges::find(strategies, allocator_id, [](const auto& one) { return one->id(); });
  return found == strategies.end() ? std::string() : (*found)->name();
}

void add_buffers(const std::vector<BufferNote>& buffers, std::uint64_t since_ns, std::vector<Timed>& found) {
  for (const BufferNote& buffer : buffers) {
    const bool is_new = buffer.since_ns > since_ns;
    bool counted = !is_new;
    const auto add = [&](Leak leak, std::uint64_t made_ns) {
      if (std::exchange(counted, true)) leak.bytes = 0;
      found.push_back({made_ns, std::move(leak)});
    };
    for (const StorageNote& storage : buffer.storages) {
      if (storage.since_ns > since_ns) add(leak_of(buffer, storage), storage.since_ns);
    }
    if (is_new && buffer.handles > 0) add(leak_of(buffer), buffer.since_ns);
  }
}

void add_blocks(const BlockBook& book, const std::vector<BufferNote>& buffers, std::uint64_t since_ns, std::vector<Timed>& found) {
  std::set<BlockKey> in_buffers;
  for (const BufferNote& buffer : buffers) in_buffers.emplace(buffer.block.allocator_id, buffer.block.serial);
  const std::vector<std::shared_ptr<Allocator>> strategies = strategies_of_process();
  for (const BlockNote& block : book.notes()) {
    if (block.since_ns <= since_ns || in_buffers.contains({block.allocator_id, block.serial})) continue;
    found.push_back({block.since_ns,
                     {.kind = LeakKind::block,
                      .owner = Owner::allocator,
                      .address = reinterpret_cast<const void*>(block.address),
                      .bytes = block.bytes,
                      .device = Device::from_key(block.device),
                      .tag = block.tag,
                      .site = block.site,
                      .stack = block.stack,
                      .allocator = name_of(block.allocator_id, strategies),
                      .holder = holder_of(block)}});
  }
}

}  // namespace

std::string_view to_string(LeakKind kind) noexcept {
  constexpr std::string_view kNames[] = {"block", "buffer", "storage", "view", "exported"};
  return kNames[static_cast<std::size_t>(kind)];
}

struct Tracker::State {
  explicit State(std::size_t depth) : book(std::make_shared<BlockBook>(depth)) {
    enter_book(book);
    attached = attach_sink(book, RecordSet::blocks);
    begin_watching_storages(depth);
  }
  ~State() { end_watching_storages(); }
  State(const State&) = delete;
  State& operator=(const State&) = delete;

  const std::shared_ptr<BlockBook> book;
  SinkAttachment attached;
  std::atomic<std::uint64_t> since_ns{os::steady_time_ns()};
};

Tracker::Tracker(const TrackerOptions& options) {
  if (options.stack_depth > CallSite::kMostFrames) {
    throw ArgumentError(ErrorCode::limit_exceeded,
                        {text::join("tracking with stacks of ", options.stack_depth, " frames"),
                         text::join("the most that is kept is ", CallSite::kMostFrames), "ask for fewer"},
                        {{"depth", options.stack_depth}, {"limit", CallSite::kMostFrames}});
  }
  state_ = std::make_unique<State>(options.stack_depth);
}
Tracker::~Tracker() = default;

void Tracker::restart() { state_->since_ns.store(os::steady_time_ns(), std::memory_order_relaxed); }

Leaks Tracker::leaks() const {
  const std::uint64_t since_ns = state_->since_ns.load(std::memory_order_relaxed);
  std::vector<Timed> found;
  const std::vector<BufferNote> buffers = watched_buffers();
  add_buffers(buffers, since_ns, found);
  add_blocks(*state_->book, buffers, since_ns, found);
  std::ranges::stable_sort(found, {}, &Timed::since_ns);
  const std::uint64_t now = os::steady_time_ns();
  Leaks leaks;
  leaks.reserve(found.size());
  for (Timed& one : found) {
    one.leak.age_ns = now - std::min(now, one.since_ns);
    leaks.push_back(std::move(one.leak));
  }
  return leaks;
}

std::string Leak::to_string() const {
  std::string out(berth::to_string(kind));
  if (dtype && shape) out += text::join(' ', berth::to_string(*dtype), ' ', shape->to_string());
  if (kind == LeakKind::view && strides) out += text::join(" strides ", strides->to_string());
  if (bytes != 0) out += text::join(", ", text::bytes(bytes));
  out += text::join(" on ", device.to_string());
  if (owner != Owner::allocator) out += text::join(", ", berth::to_string(owner));
  if (tag) out += text::join(", tag ", text::printable(tag.word()));
  if (const std::string at = site_in_words(site, stack); !at.empty()) out += text::join(", at ", at);
  out += text::join(", ", text::duration(std::chrono::milliseconds(age_ns / 1'000'000)), " old");
  return text::join(out, ", held by ", holder);
}

void Leak::write_json(JsonWriter& json) const {
  const auto list = [&](std::string_view name, const Dims& dims) {
    json.key(name).begin_array();
    for (const std::int64_t dim : dims) json.value(dim);
    json.end_array();
  };
  json.begin_object().member("kind", berth::to_string(kind)).member("owner", berth::to_string(owner));
  json.member("address", text::pointer(address)).member("bytes", bytes).member("device", device.to_string());
  json.member("tag", tag.word()).member("site", site_in_words(site, stack)).member("age_ns", age_ns).member("allocator", allocator);
  if (dtype) json.member("dtype", berth::to_string(*dtype));
  if (shape) list("shape", *shape);
  if (strides) list("strides", *strides);
  json.member("handles", handles).member("holder", holder).end_object();
}

std::ostream& operator<<(std::ostream& out, const Leaks& leaks) {
  for (const Leak& leak : leaks) out << leak.to_string() << '\n';
  return out;
}

}  // namespace berth
