// SPDX-License-Identifier: Apache-2.0
#include "berth/observe/live.h"

#include <simdjson.h>

#include <algorithm>
#include <cstring>
#include <mutex>
#include <new>
#include <system_error>
#include <thread>

#include "base/text.h"
#include "berth/base/error.h"
#include "berth/memory/allocator.h"
#include "memory/process_budget.h"
#include "observe/live_page.h"
#include "os/fork.h"
#include "os/no_signals.h"
#include "os/shared_file.h"
#include "os/system.h"

namespace berth {

namespace {

constexpr unsigned kRenewEveryUs = 250'000;
constexpr std::uint64_t kMostBlocks = 50'000;  // a pool with more is not looked through for its tags
constexpr std::size_t kMostTags = 8;

LivePool look_at(const Allocator& allocator) {
  LivePool pool{allocator.device().to_string(), allocator.name(), allocator.id(), allocator.stats(), {}};
  if (pool.stats.live_blocks == 0 || pool.stats.live_blocks > kMostBlocks) return pool;
  for (const Holder& holder : allocator.holders()) {
    if (pool.tags.size() == kMostTags) break;
    pool.tags.push_back({std::string(holder.tag.word()), holder.bytes, holder.blocks});
  }
  return pool;
}

std::string text_of(const LiveProcess& process) {
  JsonWriter json;
  process.write_json(json);
  return json.take();
}

// This process's page, and the thread that renews it. Never destroyed.
class Exposure final : private os::ForkListener {
 public:
  explicit Exposure(LivePage page) : page_(std::move(page)), generation_(os::fork_generation()) {
    self_.process = os::process_id();
    self_.program = os::program_name();
    self_.started_ns = os::wall_time_ns();
    renew();
    {
      const os::NoSignals quiet;
      std::thread([this] { keep_renewing(); }).detach();
    }
    listen();  // last: what throws before leaves nothing behind
  }

  bool is_ours() const noexcept { return generation_ == os::fork_generation(); }
  void end() noexcept {
    if (is_ours()) page_.remove_name();
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
      self_.renewed_ns = os::wall_time_ns();
      ++self_.renewals;
      self_.pools.clear();
      self_.pools_left_out = 0;
      for (const std::shared_ptr<Allocator>& one : strategies_of_process()) {
        if (one->stats().allocations != 0) self_.pools.push_back(look_at(*one));
      }
      std::string text = text_of(self_);
      while (text.size() > LivePage::kMostText && !self_.pools.empty()) {
        self_.pools.pop_back();
        ++self_.pools_left_out;
        text = text_of(self_);
      }
      page_.write(text);
    } catch (const std::bad_alloc&) {  // the page stays as it was
    }
  }

  void before_fork() noexcept override {}
  void after_fork(bool in_child) noexcept override {
    if (in_child) page_.close_in_child();
  }

  LivePage page_;
  const std::uint64_t generation_;
  LiveProcess self_;
};

std::mutex g_mutex;  // held while a thread is made
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
  if (from.at_key("stats").get(stats) == simdjson::SUCCESS) {
    pool.stats = {.in_use_bytes = number(stats, "in_use_bytes"),
                  .cached_bytes = number(stats, "cached_bytes"),
                  .committed_bytes = number(stats, "committed_bytes"),
                  .peak_in_use_bytes = number(stats, "peak_in_use_bytes"),
                  .peak_committed_bytes = number(stats, "peak_committed_bytes"),
                  .live_blocks = number(stats, "live_blocks"),
                  .allocations = number(stats, "allocations"),
                  .frees = number(stats, "frees"),
                  .failures = number(stats, "failures"),
                  .commits = number(stats, "commits"),
                  .decommits = number(stats, "decommits")};
  }
  for_each_object(from, "tags", [&](const auto& tag) {
    pool.tags.push_back({words(tag, "tag"), number(tag, "bytes"), number(tag, "blocks")});
  });
  return pool;
}

}  // namespace

void LiveProcess::write_json(JsonWriter& json) const {
  json.begin_object().member("process", process).member("program", program).member("started_ns", started_ns);
  json.member("renewed_ns", renewed_ns).member("renewals", renewals).member("pools_left_out", pools_left_out);
  json.key("pools").begin_array();
  for (const LivePool& pool : pools) {
    json.begin_object().member("device", pool.device).member("allocator", pool.allocator).member("id", pool.id).key("stats");
    pool.stats.write_json(json);
    json.key("tags").begin_array();
    for (const LiveTag& tag : pool.tags)
      json.begin_object().member("tag", tag.tag).member("bytes", tag.bytes).member("blocks", tag.blocks).end_object();
    json.end_array().end_object();
  }
  json.end_array().end_object();
}

bool is_live() noexcept {
  const Exposure* const known = g_exposure.load(std::memory_order_acquire);
  return known != nullptr && known->is_ours();
}

void expose_live() {
  const std::lock_guard lock(g_mutex);
  if (is_live()) return;
  Result<LivePage> page = LivePage::make();
  if (!page) {
    throw AccessError(page.failure().code, {"exposing this process to berth top",
                                            text::join(std::string_view(page.failure().why), page.failure().os_error == 0 ? "" : ": ",
                                                       page.failure().os_error == 0 ? "" : std::strerror(page.failure().os_error)),
                                            "set BERTH_LIVE_DIR to a folder of your own on a file system like tmpfs"});
  }
  static const int registered = std::atexit([] {
    if (Exposure* const exposure = g_exposure.load()) exposure->end();
  });
  (void)registered;
  try {
    g_exposure.store(new Exposure(std::move(*page)), std::memory_order_release);
  } catch (const std::system_error&) {
    throw AccessError(ErrorCode::device_error, {"exposing this process to berth top", "no thread can be made to keep its page fresh",
                                                "raise the limit on threads (ulimit -u)"});
  }
}

std::optional<LiveProcess> read_live(std::int64_t process) {
  const std::optional<std::string> page = LivePage::read(process);
  if (!page) return std::nullopt;
  simdjson::dom::parser parser;
  simdjson::dom::object all;
  if (parser.parse(*page).get(all) != simdjson::SUCCESS) return std::nullopt;
  LiveProcess made{.process = process,
                   .program = words(all, "program"),
                   .started_ns = number(all, "started_ns"),
                   .renewed_ns = number(all, "renewed_ns"),
                   .renewals = number(all, "renewals"),
                   .pools = {},
                   .pools_left_out = number(all, "pools_left_out")};
  for_each_object(all, "pools", [&](const auto& pool) { made.pools.push_back(pool_from(pool)); });
  return made;
}

std::vector<LiveProcess> live_processes() {
  std::vector<LiveProcess> all;
  for (const std::int64_t process : LivePage::processes()) {
    if (auto one = read_live(process)) all.push_back(*std::move(one));
  }
  std::ranges::sort(all, {}, &LiveProcess::process);
  return all;
}

}  // namespace berth
