// SPDX-License-Identifier: Apache-2.0
#include "berth/observe/profiler.h"

#include <algorithm>
#include <atomic>
#include <compare>
#include <condition_variable>
#include <functional>
#include <map>
#include <mutex>
#include <new>
#include <optional>
#include <system_error>
#include <thread>
#include <tuple>
#include <utility>

#include "base/text.h"
#include "berth/base/error.h"
#include "memory/live_blocks.h"
#include "observe/no_thread.h"
#include "os/process/fork.h"
#include "os/process/no_cancel.h"
#include "os/process/no_signals.h"
#include "os/system.h"
#include "record/tally.h"

namespace berth {

using namespace internal;
using namespace internal::memory;
using namespace internal::record;

namespace {

std::atomic<std::uint64_t> g_next_thread{1};

// A small number for the calling thread.
std::uint64_t thread_number() noexcept {
  static thread_local const std::uint64_t number = g_next_thread.fetch_add(1, std::memory_order_relaxed);
  return number;
}

std::uint32_t number_of(DeviceKey key) noexcept { return std::uint32_t{key.kind} << 16 | key.index; }

ProfileCounts counts_of(const TallyCounts& tally) noexcept {
  return {.bytes = tally.bytes,
          .peak_bytes = tally.peak_bytes,
          .blocks = static_cast<std::int64_t>(tally.allocations - tally.frees),
          .allocations = tally.allocations,
          .frees = tally.frees,
          .allocated_bytes = tally.allocated_bytes,
          .freed_bytes = tally.freed_bytes};
}

// Counts by site. The tally cannot do that: the site of a block must be known when it is freed.
class SiteBook final : public BlockBook {
 public:
  using BlockBook::BlockBook;

  std::vector<SiteProfile> profile() const {
    std::vector<SiteProfile> rows;
    {
      const os::Lock lock(mutex_);
      for (const auto& [key, row] : rows_) rows.push_back(row);
    }
    std::ranges::stable_sort(rows, std::ranges::greater(), [](const SiteProfile& row) { return row.counts.peak_bytes; });
    return rows;
  }

 protected:
  void added(const BlockNote& note) noexcept override {
    count(note, [&](ProfileCounts& counts) {
      counts.bytes += static_cast<std::int64_t>(note.bytes);
      counts.peak_bytes = std::max(counts.peak_bytes, counts.bytes);
      ++counts.blocks;
      ++counts.allocations;
      counts.allocated_bytes += note.bytes;
    });
  }
  void removed(const BlockNote& note) noexcept override {
    count(note, [&](ProfileCounts& counts) {
      counts.bytes -= static_cast<std::int64_t>(note.bytes);
      --counts.blocks;
      ++counts.frees;
      counts.freed_bytes += note.bytes;
    });
  }

 private:
  using Key = std::tuple<std::uint32_t, std::uint16_t, std::uint32_t, std::uint32_t>;

  template <class Change>
  void count(const BlockNote& note, Change change) noexcept {
    const os::Lock lock(mutex_);
    try {
      const Key key{number_of(note.device), note.tag.id(), note.site.value, note.stack.value};
      const auto [at, fresh] = rows_.try_emplace(key);
      if (fresh) at->second = {Device::from_key(note.device), note.tag, note.site, note.stack, {}};
      change(at->second.counts);
    } catch (const std::bad_alloc&) {  // the row is missing from the profile
    }
  }

  mutable os::Mutex mutex_;
  std::map<Key, SiteProfile> rows_ BERTH_GUARDED_BY(mutex_);
};

class CopyBook final : public Sink {
 public:
  CopyBook(std::uint64_t start_ns, std::size_t most) noexcept : start_ns_(start_ns), most_(most) {}

  void on_record(const Record& record) noexcept override {
    const os::Lock lock(mutex_);
    try {
      const std::uint32_t way = way_of(record);
      CopyProfile& row = ways_[way];
      ++row.copies;
      row.bytes += record.bytes;
      row.waited += record.took_ns != 0 ? 1 : 0;
      row.time_ns += record.took_ns;
      if (events_.size() >= most_) {
        ++dropped_;
        return;
      }
      const std::uint64_t begin = record.time_ns - std::min(record.took_ns, record.time_ns);
      events_.push_back({begin - std::min(begin, start_ns_), record.took_ns, record.bytes, thread_number(), way});
    } catch (const std::bad_alloc&) {
      ++dropped_;
    }
  }

  void fill(Profile& profile) const {
    const os::Lock lock(mutex_);
    profile.copies = ways_;
    profile.copy_events = events_;
    profile.copy_events_dropped = dropped_;
  }

 private:
  using Key = std::tuple<std::uint32_t, std::uint32_t, DType, DType, std::uint16_t>;

  std::uint32_t way_of(const Record& record) BERTH_REQUIRES(mutex_) {
    const bool fills = record.kind == RecordKind::filled;
    const DeviceKey source = fills ? record.device : record.source_device;
    const DType source_dtype = fills ? record.dtype : record.source_dtype;
    const Key key{number_of(source), number_of(record.device), source_dtype, record.dtype, record.route.id()};
    if (const auto known = index_.find(key); known != index_.end()) return known->second;
    ways_.push_back({.source = Device::from_key(source),
                     .target = Device::from_key(record.device),
                     .source_dtype = source_dtype,
                     .target_dtype = record.dtype,
                     .route = std::string(record.route.word())});
    const auto way = static_cast<std::uint32_t>(ways_.size() - 1);
    index_.emplace(key, way);
    return way;
  }

  const std::uint64_t start_ns_;
  const std::size_t most_;
  mutable os::Mutex mutex_;
  std::map<Key, std::uint32_t> index_ BERTH_GUARDED_BY(mutex_);
  std::vector<CopyProfile> ways_ BERTH_GUARDED_BY(mutex_);
  std::vector<CopyEvent> events_ BERTH_GUARDED_BY(mutex_);
  std::uint64_t dropped_ BERTH_GUARDED_BY(mutex_) = 0;
};

[[noreturn]] void throw_options(std::string why, std::string help) {
  throw ArgumentError(ErrorCode::invalid_argument, {"starting a profiler", std::move(why), std::move(help)});
}

void check(const ProfilerOptions& options) {
  if (options.every.count() < 0) throw_options("the time between samples cannot be negative", "use 0 to take none, or 1 ms or more");
  if (options.most_samples < 2) throw_options("fewer than two samples show nothing", "leave it out, or ask for 2 or more");
  if (options.stack_depth > CallSite::kMostFrames)
    throw_options(text::join("stacks of ", options.stack_depth, " frames are not kept"),
                  text::join("ask for ", CallSite::kMostFrames, " at most"));
}

// There is one tally per process, and so one profiler.
struct TallyRun {
  TallyRun() {
    if (!begin_tally())
      throw AccessError(ErrorCode::busy, {"starting a profiler", "there is one already", "end that one first, or unset BERTH_PROFILE"});
  }
  ~TallyRun() { end_tally(); }
  TallyRun(const TallyRun&) = delete;
  TallyRun& operator=(const TallyRun&) = delete;
};

}  // namespace

struct Profiler::State {
  explicit State(const ProfilerOptions& given) : options(given), every(given.every) {
    sites_attached = sites == nullptr ? SinkAttachment() : attach_sink(sites, RecordSet::blocks);
    copies_attached = attach_sink(copies, RecordSet::copies);
    if (sites != nullptr) enter_book(sites);
    if (every.count() > 0) start_sampler();
  }
  ~State() {
    {
      const std::lock_guard lock(mutex);
      ending = true;
    }
    wake.notify_all();
    const os::NoCancel whole;
    if (sampler.joinable()) sampler.join();
  }
  State(const State&) = delete;
  State& operator=(const State&) = delete;

  void start_sampler() {
    const os::NoSignals quiet;
    try {
      sampler = std::thread([this] { keep_sampling(); });
    } catch (const std::system_error& refused) {
      observe::throw_no_thread("starting a profiler", refused);
    }
  }

  void keep_sampling() {
    std::unique_lock lock(mutex);
    while (!wake.wait_for(lock, every, [this] { return ending; })) {
      lock.unlock();
      try {
        sample({});
      } catch (const std::bad_alloc&) {  // this sample is missing
      }
      lock.lock();
    }
  }

  void sample(std::string_view label) {
    const Tally tally = read_tally();
    const std::uint64_t now = os::steady_time_ns() - start_ns;
    const std::lock_guard lock(mutex);
    ProfileSample made{now, std::string(label), {}};
    made.bytes.resize(order.size());
    for (const TallyRow& row : tally.tags) {
      const std::size_t at = index_of(row);
      if (at >= made.bytes.size()) made.bytes.resize(at + 1);
      made.bytes[at] = row.counts.bytes;
    }
    if (samples.size() >= options.most_samples) thin_out();
    samples.push_back(std::move(made));
  }

  // Keeps the first, every other one, and those with labels.
  void thin_out() {
    std::size_t kept = 0;
    for (std::size_t i = 0; i < samples.size(); ++i) {
      if (i % 2 == 0 || !samples[i].label.empty()) std::swap(samples[kept++], samples[i]);
    }
    if (kept == samples.size()) {  // all of them have labels
      kept = 0;
      for (std::size_t i = 0; i < samples.size(); i += 2) std::swap(samples[kept++], samples[i]);
    }
    samples.resize(kept);
    every = std::min<std::chrono::milliseconds>(every * 2, std::chrono::hours(1));
  }

  // The index of a device and tag in Profile::tags, in order of first use. REQUIRES: the mutex is locked.
  std::size_t index_of(const TallyRow& row) { return order.try_emplace({number_of(row.device), row.tag.id()}, order.size()).first->second; }

  const os::Origin origin;
  const ProfilerOptions options;
  const TallyRun tally_run;
  const std::uint64_t start_ns = os::steady_time_ns();
  const std::shared_ptr<SiteBook> sites = options.sites ? std::make_shared<SiteBook>(options.stack_depth) : nullptr;
  const std::shared_ptr<CopyBook> copies = std::make_shared<CopyBook>(start_ns, options.most_copies);
  SinkAttachment sites_attached;
  SinkAttachment copies_attached;

  std::mutex mutex;  // not os::Mutex, because of the condition variable
  std::condition_variable wake;
  bool ending = false;
  std::chrono::milliseconds every;
  std::map<std::pair<std::uint32_t, std::uint16_t>, std::size_t> order;
  std::vector<ProfileSample> samples;
  std::thread sampler;  // last: it uses the others
};

Profiler::Profiler(const ProfilerOptions& options) {
  check(options);
  state_ = std::make_unique<State>(options);
}
// In a forked child there is no sampler thread to join, and the condition variable that it waits on must not be
// destroyed.
Profiler::~Profiler() {
  if (state_ == nullptr || !state_->origin.is_inherited()) return;
  state_->sites_attached = {};
  state_->copies_attached = {};
  end_tally();
  (void)state_.release();
}

void Profiler::mark(std::string_view label) { state_->sample(label); }

Profile Profiler::profile() const {
  Profile made;
  const Tally tally = read_tally();
  made.duration_ns = os::steady_time_ns() - state_->start_ns;
  {
    const std::lock_guard lock(state_->mutex);
    for (const TallyRow& row : tally.tags) {
      const std::size_t at = state_->index_of(row);
      if (at >= made.tags.size()) made.tags.resize(at + 1);
      made.tags[at] = {Device::from_key(row.device), row.tag, counts_of(row.counts)};
    }
    made.samples = state_->samples;
  }
  for (const TallyRow& row : tally.devices) made.devices.push_back({Device::from_key(row.device), {}, counts_of(row.counts)});
  if (state_->sites != nullptr) made.sites = state_->sites->profile();
  state_->copies->fill(made);
  made.sizes = tally.sizes;
  return made;
}

}  // namespace berth
