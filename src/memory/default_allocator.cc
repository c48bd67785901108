// SPDX-License-Identifier: Apache-2.0
#include "berth/memory/default_allocator.h"

#include <algorithm>
#include <atomic>
#include <cctype>
#include <cstdlib>
#include <map>
#include <optional>
#include <utility>

#include "base/text.h"
#include "berth/base/units.h"
#include "berth/device/backend.h"
#include "berth/device/registry.h"
#include "berth/memory/arena.h"
#include "berth/memory/check.h"
#include "berth/memory/direct.h"
#include "berth/memory/exact.h"
#include "berth/memory/pool.h"
#include "berth/memory/rounded.h"
#include "memory/option_text.h"
#include "memory/other_names.h"
#include "os/lock/mutex.h"
#include "os/process/fork.h"
#include "os/system.h"
#include "record/check_words.h"

namespace berth {

using namespace internal;
using namespace internal::memory;
using namespace internal::record;

namespace {

struct Strategy {
  std::string_view name;
  std::shared_ptr<Allocator> (*make)(Device device, std::string_view option);
};

[[noreturn]] void throw_bad_option(std::string_view strategy, std::string_view option, std::string help) {
  throw ArgumentError(
      ErrorCode::invalid_argument,
      {text::join("the allocator ", strategy, " with the option ", text::quoted(option)), "it has no such option", std::move(help)},
      {{"strategy", strategy}, {"option", text::printable(option)}});
}

std::shared_ptr<Allocator> make_direct(Device device, std::string_view option) {
  if (!option.empty()) throw_bad_option("direct", option, "direct takes no option");
  return direct(device);
}

std::shared_ptr<Allocator> make_arena(Device device, std::string_view option) {
  std::uint64_t bytes = 1_GiB;
  if (!option.empty() && (!text::parse_bytes(option, bytes) || bytes == 0))
    throw_bad_option("arena", option, "write its capacity, as in arena:64MiB");
  return arena(device, bytes);
}

std::shared_ptr<Allocator> make_pool(Device device, std::string_view option) {
  PoolOptions options;
  if (option.empty() || option.find('=') != std::string_view::npos) {
    const TextOption known[] = {{"limit", &options.limit_bytes},
                                {.name = "decay", .time = &options.decay},
                                {.name = "ratio", .number = &options.target_ratio},
                                {"small", &options.small_bytes},
                                {.name = "waits", .count = &options.region_waits},
                                {.name = "wait_for_streams", .yes = &options.wait_for_streams},
                                {.name = "background_trim", .yes = &options.background_trim}};
    read_options("pool", option, known, "pool:limit=8GiB,decay=5s");
  } else if (!text::parse_bytes(option, options.limit_bytes) || options.limit_bytes == 0) {
    throw_bad_option("pool", option, "write its limit, as in pool:8GiB, or options, as in pool:limit=8GiB,decay=5s");
  }
  return pool(device, options);
}

std::shared_ptr<Allocator> make_rounded(Device device, std::string_view option) {
  RoundedOptions options;
  const TextOption known[] = {{"least", &options.least_bytes}, {"cutoff", &options.cutoff_bytes}, {"limit", &options.limit_bytes}};
  read_options("rounded", option, known, "rounded:least=512,cutoff=16MiB");
  return rounded(device, options);
}

std::shared_ptr<Allocator> make_exact(Device device, std::string_view option) {
  ExactOptions options;
  const TextOption known[] = {{"granularity", &options.granularity_bytes}, {"limit", &options.limit_bytes}};
  read_options("exact", option, known, "exact:granularity=4KiB");
  return exact(device, options);
}

// Sorted by name.
constexpr Strategy kStrategies[] = {
    {"arena", make_arena}, {"direct", make_direct}, {"exact", make_exact}, {"pool", make_pool}, {"rounded", make_rounded}};
constexpr std::string_view kDefaultStrategy = "pool";

std::string variable_name(Device device) {
  std::string name = text::join("BERTH_", device.kind_name(), "_ALLOCATOR");
  std::ranges::transform(name, name.begin(), [](unsigned char c) { return static_cast<char>(std::toupper(c)); });
  return name;
}

// Calls `make` with the value of an environment variable; errors name the variable.
template <class Make>
auto from_environment(std::string_view variable, std::string_view value, Make make) {
  try {
    return make(value);
  } catch (const ArgumentError& error) {
    throw ArgumentError(error.code(),
                        {text::join("the environment variable ", variable, '=', text::printable(value)), error.why(), error.help()},
                        error.facts());
  }
}

// Parses BERTH_CHECK. Returns nullopt for 0, or if it asks only for race detection, which is not an allocator's
// (race_detector.cc).
std::optional<CheckOptions> read_check(std::string_view list) {
  if (list == "0") return std::nullopt;
  CheckOptions options;
  bool wanted = false;
  const TextOption known[] = {{"canary", &options.canary_bytes},
                              {"quarantine", &options.quarantine_bytes},
                              {"blocks", &options.quarantine_blocks},
                              {"guard", &options.guard_every}};
  std::string rest;
  while (!list.empty()) {
    const std::string_view word = take_word(list);
    if (word == "streams") continue;
    wanted = true;
    options.zero = options.zero || word == "zero";
    if (word != "1" && word != "abort" && word != "zero") rest += text::join(rest.empty() ? "" : ",", word);
  }
  read_options("check", rest, known, "BERTH_CHECK=1, or abort,zero,streams,guard=16; 0 is off");
  return wanted ? std::optional(options) : std::nullopt;
}

// Default allocators are never destroyed, so blocks in quarantine are checked here at exit. Static objects that
// are destroyed later may still free blocks, which are not checked any more.
void release_checked() noexcept;

std::shared_ptr<Allocator> checked(std::shared_ptr<Allocator> allocator) {
  const auto value = os::environment("BERTH_CHECK");
  if (!value) return allocator;
  return from_environment("BERTH_CHECK", *value, [&](std::string_view list) -> std::shared_ptr<Allocator> {
    const std::optional<CheckOptions> options = read_check(list);
    if (!options) return allocator;
    [[maybe_unused]] static const bool at_exit = std::atexit(release_checked) == 0;
    return check(allocator, *options);
  });
}

std::shared_ptr<Allocator> make_chosen(Device device) {
  const std::string variable = variable_name(device);
  const auto chosen = os::environment(variable.c_str());
  if (!chosen) return checked(make_allocator(kDefaultStrategy, device));
  (void)backend(device);  // what is wrong with the device is no fault of the variable
  return checked(from_environment(variable, *chosen, [&](std::string_view text) { return make_allocator(text, device); }));
}

// The current default of each device is a pointer to a shared_ptr that is never destroyed: reading it needs no
// lock and no reference count. The first devices of the first kinds have an entry in a constant-initialized
// table; the others are looked up.
using Current = const std::shared_ptr<Allocator>*;

constexpr std::size_t kFastKinds = 16;
constexpr std::size_t kFastIndices = 64;
constinit std::atomic<Current> g_fast[kFastKinds][kFastIndices] = {};

std::atomic<Current>* fast_entry(DeviceKey key) noexcept {
  return key.kind < kFastKinds && key.index < kFastIndices ? &g_fast[key.kind][key.index] : nullptr;
}

std::uint32_t number(DeviceKey key) noexcept { return std::uint32_t{key.kind} << 16 | key.index; }
DeviceKey key_of(std::uint32_t number) noexcept {
  return {.kind = static_cast<std::uint16_t>(number >> 16), .index = static_cast<std::uint16_t>(number)};
}

// The defaults of every device, fast or not. An allocator of a device that is fork_fresh serves the process that made
// it: a forked child has none, and makes its own on first use.
struct Defaults : private os::ForkListener {
  struct Default {
    Current current = nullptr;
    bool fork_fresh = false;
  };
  os::Mutex mutex;
  std::map<std::uint32_t, Default> all BERTH_GUARDED_BY(mutex);
  // Reachable: other threads may use them, and a child's inherited storages. With room for every current one, so that a
  // fork does not allocate.
  std::vector<Current> retired BERTH_GUARDED_BY(mutex);

  Defaults() { listen(); }

 private:
  void before_fork() noexcept override {}
  void after_fork(bool in_child) noexcept override BERTH_NO_THREAD_ANALYSIS {  // every mutex is held
    if (!in_child) return;
    for (auto& [number, known] : all) {
      if (!known.fork_fresh || known.current == nullptr) continue;
      retired.push_back(std::exchange(known.current, nullptr));
      if (auto* const entry = fast_entry(key_of(number))) entry->store(nullptr, std::memory_order_relaxed);  // one thread
    }
  }
};

// Never destroyed: storages that outlive main free their memory to these.
Defaults& defaults() {
  static auto* const made = new Defaults;
  return *made;
}

// Created when the library is loaded, so that the first use can neither fail for lack of heap nor be
// interrupted by a fork.
[[maybe_unused]] const Defaults& g_defaults_at_load = defaults();

Current find_current(Device device) noexcept {
  if (const auto* const entry = fast_entry(device.key())) return entry->load(std::memory_order_acquire);
  Defaults& defaults = berth::defaults();
  const os::Lock lock(defaults.mutex);
  const auto found = defaults.all.find(number(device.key()));
  return found == defaults.all.end() ? nullptr : found->second.current;
}

void release_checked() noexcept {
  Defaults& defaults = berth::defaults();
  for (std::size_t i = 0;; ++i) {
    Current current = nullptr;
    {
      const os::Lock lock(defaults.mutex);
      if (i >= defaults.all.size()) return;
      current = std::next(defaults.all.begin(), static_cast<std::ptrdiff_t>(i))->second.current;
    }
    if (current != nullptr && dynamic_cast<CheckAdaptor*>(current->get()) != nullptr) (*current)->release_cached();
  }
}

struct Change {
  Current now;
  Current before;  // the previous one, or nullptr
};

// Installs an allocator; an existing one stays unless `replace`.
Change put(Device device, std::shared_ptr<Allocator> allocator, bool replace) {
  // If it is not needed, it is destroyed after the unlock.
  auto fresh = std::make_unique<const std::shared_ptr<Allocator>>(std::move(allocator));
  const bool fork_fresh = (*fresh)->backend().properties().abilities.fork_fresh;
  Defaults& defaults = berth::defaults();
  const os::Lock lock(defaults.mutex);
  Defaults::Default& known = defaults.all[number(device.key())];
  const Current before = known.current;
  if (before != nullptr && !replace) return {before, before};
  defaults.retired.reserve(defaults.retired.size() + defaults.all.size() + 1);
  if (before != nullptr) defaults.retired.push_back(before);
  known = {fresh.release(), fork_fresh};
  // release: a thread that loads the pointer sees the complete allocator.
  if (auto* const entry = fast_entry(device.key())) entry->store(known.current, std::memory_order_release);
  return {known.current, before};
}

}  // namespace

const std::shared_ptr<Allocator>& default_allocator(Device device) {
  if (const Current known = find_current(device)) [[likely]]
    return *known;
  return *put(device, make_chosen(device), false).now;
}

void set_default_allocator(Device device, std::shared_ptr<Allocator> allocator) {
  if (allocator == nullptr || allocator->device() != device) {
    throw ArgumentError(ErrorCode::wrong_device,
                        {text::join("setting the default allocator of ", device.to_string()),
                         allocator == nullptr ? std::string("the allocator is null")
                                              : text::join("it is an allocator for ", allocator->device().to_string()),
                         "make one for that device"},
                        {{"device", device.to_string()}});
  }
  const Change change = put(device, std::move(allocator), true);
  if (change.before != nullptr) (*change.before)->release_cached();
}

std::shared_ptr<Allocator> make_allocator(std::string_view text, Device device) {
  const std::size_t colon = text.find(':');
  const std::string_view name = text.substr(0, colon);
  const std::string_view option = colon == std::string_view::npos ? std::string_view() : text.substr(colon + 1);
  for (const Strategy& strategy : kStrategies) {
    if (strategy.name == name) return strategy.make(device, option);
  }
  std::string help = help_for_other_name(text);
  std::string known;
  for (const Strategy& strategy : kStrategies) known += text::join(known.empty() ? "" : ", ", strategy.name);
  throw ArgumentError(ErrorCode::invalid_argument,
                      {text::join("the allocator ", text::quoted(text)), "there is no strategy of that name",
                       help.empty() ? text::join("use one of ", known) : std::move(help)},
                      {{"name", text::printable(name)}, {"known", known}});
}

std::vector<std::string> allocator_names() {
  std::vector<std::string> names;
  for (const Strategy& strategy : kStrategies) names.emplace_back(strategy.name);
  return names;
}

}  // namespace berth
