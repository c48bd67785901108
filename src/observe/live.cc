// SPDX-License-Identifier: Apache-2.0
#include "berth/observe/live.h"

#include <simdjson.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <new>
#include <system_error>
#include <thread>

#include "base/text.h"
#include "berth/base/error.h"
#include "berth/base/json.h"
#include "berth/memory/allocator.h"
#include "memory/process_budget.h"
#include "observe/live_file.h"
#include "observe/stats_json.h"
#include "os/file/shared_file.h"
#include "os/lock/mutex.h"
#include "os/process/fork.h"
#include "os/process/no_signals.h"
#include "os/system.h"

namespace berth {

using namespace internal;
using namespace internal::memory;
using namespace internal::observe;

namespace {

constexpr unsigned kRenewEveryUs = 250'000;
constexpr std::uint64_t kMostBlocks = 50'000;  // a pool with more is not scanned for its tags
constexpr std::size_t kMostTags = 8;

LivePool look_at(const Allocator& allocator, const Stats& stats) {
  LivePool pool{allocator.device().to_string(), allocator.name(), allocator.id(), stats, {}};
  if (stats.live_blocks == 0 || stats.live_blocks > kMostBlocks) return pool;
  for (const Holder& holder : allocator.holders()) {
    if (pool.tags.size() == kMostTags) break;
    pool.tags.push_back({std::string(holder.tag.word()), holder.bytes, holder.blocks});
  }
  return pool;
}

void write_pool(JsonWriter& json, const LivePool& pool) {
  json.begin_object().member("device", pool.device).member("allocator", pool.allocator).member("id", pool.id).key("stats");
  pool.stats.write_json(json);
  json.key("tags").begin_array();
  for (const LiveTag& tag : pool.tags)
    json.begin_object().member("tag", tag.tag).member("bytes", tag.bytes).member("blocks", tag.blocks).end_object();
  json.end_array().end_object();
}

std::string text_of(const LiveProcess& process) {
  JsonWriter json;
  process.write_json(json);
  return json.take();
}

std::size_t text_bytes(const LivePool& pool) {
  JsonWriter json;
  write_pool(json, pool);
  return json.take().size() + 1;  // and a comma
}

// This process's file, and the thread that renews it. Never destroyed.
class Exposure final : private os::ForkListener {
 public:
  explicit Exposure(LiveFile file) : file_(std::move(file)) {
    self_.process = os::process_id();
    self_.program = os::program_name();
    self_.started_ns = os::wall_time_ns();
    renew();
    {
      const os::NoSignals quiet;
      std::thread([this] { keep_renewing(); }).detach();
    }
    listen();  // last: an exception before this leaves nothing behind
  }

  bool is_ours() const noexcept { return !origin_.is_inherited(); }
  void end() noexcept {
    if (!is_ours()) return;
    const os::Lock lock(mutex_);
    ended_ = true;
    file_.remove_name();
  }

 private:
  void keep_renewing() noexcept {
    while (true) {
      os::sleep_us(kRenewEveryUs);
      renew();
    }
  }

  void renew() noexcept {
    try {
      look();
      publish(text_of(self_));
    } catch (const std::bad_alloc&) {  // the file stays as it was
    }
  }

  // Collects as many pools as there is room for, the oldest first. The others are counted.
  void look() {
    const std::vector<std::shared_ptr<Allocator>> all = strategies_of_process();
    self_.renewed_ns = os::wall_time_ns();
    ++self_.renewals;
    self_.pools.clear();
    self_.pools_left_out = all.size();  // an upper bound on its digits
    std::size_t room = LiveFile::kMostText - std::min(LiveFile::kMostText, text_of(self_).size());
    self_.pools_left_out = 0;
    for (const std::shared_ptr<Allocator>& one : all) {
      const Stats stats = one->stats();
      if (stats.allocations == 0) continue;
      if (self_.pools_left_out == 0 && add(look_at(*one, stats), room)) continue;
      ++self_.pools_left_out;
    }
  }

  bool add(LivePool pool, std::size_t& room) {
    const std::size_t bytes = text_bytes(pool);
    if (bytes > room) return false;
    room -= bytes;
    self_.pools.push_back(std::move(pool));
    return true;
  }

  // Writes to a new file if the old one is lost. The mutex makes a fork wait until that file is complete, or
  // the child would keep its lock.
  void publish(const std::string& text) {
    const os::Lock lock(mutex_);
    if (!file_.is_seen() && !ended_) {
      Result<LiveFile> fresh = LiveFile::make();
      if (fresh) file_ = std::move(*fresh);  // else the next renewal tries again
    }
    file_.write(text);
  }

  void before_fork() noexcept override {}
  void after_fork(bool in_child) noexcept override BERTH_NO_THREAD_ANALYSIS {
    if (in_child) file_.close_in_child();
  }

  os::Mutex mutex_;
  LiveFile file_ BERTH_GUARDED_BY(mutex_);
  bool ended_ BERTH_GUARDED_BY(mutex_) = false;  // the process is exiting: make no new file
  const os::Origin origin_;
  LiveProcess self_;  // used by the renewing thread only
};

std::mutex g_mutex;  // held while the thread is started
std::atomic<Exposure*> g_exposure{nullptr};

// ---- Reading

std::uint64_t number(const simdjson::dom::object& from, std::string_view name) {
  std::uint64_t value = 0;
  return from.at_key(name).get(value) == simdjson::SUCCESS ? value : 0;
}
std::string words(const simdjson::dom::object& from, std::string_view name) {
  std::string_view value;
  return from.at_key(name).get(value) == simdjson::SUCCESS ? std::string(value) : std::string();
}

template <class Add>
void for_each_object(const simdjson::dom::object& from, std::string_view name, Add add) {
  simdjson::dom::array list;
  if (from.at_key(name).get(list) != simdjson::SUCCESS) return;
  for (const simdjson::dom::element one : list) {
    simdjson::dom::object object;
    if (one.get(object) == simdjson::SUCCESS) add(object);
  }
}

LivePool pool_from(const simdjson::dom::object& from) {
  LivePool pool{words(from, "device"), words(from, "allocator"), number(from, "id"), {}, {}};
  simdjson::dom::object stats;
  if (from.at_key("stats").get(stats) == simdjson::SUCCESS)
    pool.stats = stats_from([&](std::string_view name) { return number(stats, name); });
  for_each_object(from, "tags", [&](const auto& tag) {
    pool.tags.push_back({words(tag, "tag"), number(tag, "bytes"), number(tag, "blocks")});
  });
  return pool;
}

std::optional<LiveProcess> read_live_file(const LiveName& name) {
  const std::optional<std::string> file = LiveFile::read(name);
  if (!file) return std::nullopt;
  simdjson::dom::parser parser;
  simdjson::dom::object all;
  if (parser.parse(*file).get(all) != simdjson::SUCCESS) return std::nullopt;
  LiveProcess made{.process = name.process,
                   .elsewhere = name.space != os::process_space(),
                   .program = words(all, "program"),
                   .started_ns = number(all, "started_ns"),
                   .renewed_ns = number(all, "renewed_ns"),
                   .renewals = number(all, "renewals"),
                   .pools = {},
                   .pools_left_out = number(all, "pools_left_out")};
  for_each_object(all, "pools", [&](const auto& pool) { made.pools.push_back(pool_from(pool)); });
  return made;
}

}  // namespace

void LiveProcess::write_json(JsonWriter& json) const {
  json.begin_object().member("process", process).member("elsewhere", elsewhere).member("program", program).member("started_ns", started_ns);
  json.member("renewed_ns", renewed_ns).member("renewals", renewals).member("pools_left_out", pools_left_out);
  json.key("pools").begin_array();
  for (const LivePool& pool : pools) write_pool(json, pool);
  json.end_array().end_object();
}

bool is_live() noexcept {
  const Exposure* const known = g_exposure.load(std::memory_order_acquire);
  return known != nullptr && known->is_ours();
}

void expose_live() {
  const std::lock_guard lock(g_mutex);
  if (is_live()) return;
  Result<LiveFile> file = LiveFile::make();
  if (!file) {
    throw AccessError(file.failure().code, {"exposing this process to berth top",
                                            text::join(std::string_view(file.failure().why), file.failure().os_error == 0 ? "" : ": ",
                                                       file.failure().os_error == 0 ? "" : std::strerror(file.failure().os_error)),
                                            "set BERTH_LIVE_DIR to a folder of your own on a file system like tmpfs"});
  }
  static const int registered = std::atexit([] {
    if (Exposure* const exposure = g_exposure.load()) exposure->end();
  });
  (void)registered;
  try {
    g_exposure.store(new Exposure(std::move(*file)), std::memory_order_release);
  } catch (const std::system_error& refused) {
    throw AccessError(
        ErrorCode::device_error,
        {"exposing this process to berth top", text::join("no thread can be started to update its file: ", refused.code().message()),
         "end threads that are not needed, or raise the limit of processes (ulimit -u) or of the control group"},
        {{"os_error", refused.code().value()}});
  }
}

std::optional<LiveProcess> read_live(std::int64_t process) {
  if (auto here = read_live_file({process, os::process_space()})) return here;
  for (const LiveName& name : LiveFile::names()) {
    if (name.process != process) continue;
    if (auto one = read_live_file(name)) return one;
  }
  return std::nullopt;
}

std::vector<LiveProcess> live_processes() {
  std::vector<LiveProcess> all;
  for (const LiveName& name : LiveFile::names()) {
    if (auto one = read_live_file(name)) all.push_back(*std::move(one));
  }
  std::ranges::stable_sort(all, {}, [](const LiveProcess& one) { return std::pair(one.elsewhere, one.process); });
  return all;
}

}  // namespace berth
