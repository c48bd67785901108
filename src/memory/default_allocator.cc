// SPDX-License-Identifier: Apache-2.0
#include "berth/memory/default_allocator.h"

#include <algorithm>
#include <atomic>
#include <cctype>
#include <map>

#include "base/text.h"
#include "berth/base/units.h"
#include "berth/device/registry.h"
#include "berth/memory/arena.h"
#include "berth/memory/direct.h"
#include "os/mutex.h"
#include "os/system.h"

namespace berth {

namespace {

struct Strategy {
  std::string_view name;
  std::shared_ptr<Allocator> (*make)(Device device, std::string_view option);
};

[[noreturn]] void throw_bad_option(std::string_view strategy, std::string_view option, std::string help) {
  throw ArgumentError(ErrorCode::invalid_argument,
                      {text::join("the allocator ", strategy, " with the option ", text::quoted(option)), "it has no such option", std::move(help)},
                      {{"strategy", strategy}, {"option", text::printable(option)}});
}

std::shared_ptr<Allocator> make_direct(Device device, std::string_view option) {
  if (!option.empty()) throw_bad_option("direct", option, "direct takes no option");
  return direct(device);
}

std::shared_ptr<Allocator> make_arena(Device device, std::string_view option) {
  std::uint64_t bytes = 1_GiB;
  if (!option.empty() && (!text::parse_bytes(option, bytes) || bytes == 0)) throw_bad_option("arena", option, "write its capacity, as in arena:64MiB");
  return arena(device, bytes);
}

// By name.
constexpr Strategy kStrategies[] = {{"arena", make_arena}, {"direct", make_direct}};
constexpr std::string_view kDefaultStrategy = "direct";

std::string variable_name(Device device) {
  std::string name = text::join("BERTH_", device.kind_name(), "_ALLOCATOR");
  std::ranges::transform(name, name.begin(), [](unsigned char c) { return static_cast<char>(std::toupper(c)); });
  return name;
}

std::shared_ptr<Allocator> make_chosen(Device device) {
  const std::string variable = variable_name(device);
  const auto chosen = os::environment(variable.c_str());
  if (!chosen) return make_allocator(kDefaultStrategy, device);
  try {
    return make_allocator(*chosen, device);
  } catch (const ArgumentError& error) {  // say where the text came from
    throw ArgumentError(error.code(), {text::join("the environment variable ", variable, '=', text::printable(*chosen)), error.why(), error.help()}, error.facts());
  }
}

// The current default of each device, as a pointer to a shared_ptr that is never destroyed: reading it needs no lock and no count.
class Defaults {
 public:
  const std::shared_ptr<Allocator>* get(Device device) const noexcept {
    const DeviceKey key = device.key();
    if (key.kind < kFastKinds && key.index < kFastIndices) return fast_[key.kind][key.index].load(std::memory_order_acquire);
    const os::Lock lock(mutex_);
    const auto found = others_.find(number(key));
    return found == others_.end() ? nullptr : found->second;
  }

  // Keeps the first of several threads' allocators, or replaces whatever is there. Returns the one in effect, and the one before.
  const std::shared_ptr<Allocator>* set(Device device, std::shared_ptr<Allocator> allocator, bool replace, const std::shared_ptr<Allocator>*& before) {
    auto fresh = std::make_unique<const std::shared_ptr<Allocator>>(std::move(allocator));  // if it is not needed, it goes after the lock
    const DeviceKey key = device.key();
    const os::Lock lock(mutex_);
    auto& slot = others_[number(key)];  // also for the fast ones: it keeps every default reachable
    before = slot;
    if (before != nullptr && !replace) return before;
    if (before != nullptr) retired_.push_back(before);
    slot = fresh.release();
    // release: whoever finds the pointer sees the allocator complete.
    if (key.kind < kFastKinds && key.index < kFastIndices) fast_[key.kind][key.index].store(slot, std::memory_order_release);
    return slot;
  }

 private:
  static constexpr std::size_t kFastKinds = 16;
  static constexpr std::size_t kFastIndices = 64;
  static std::uint32_t number(DeviceKey key) noexcept { return std::uint32_t{key.kind} << 16 | key.index; }

  std::atomic<const std::shared_ptr<Allocator>*> fast_[kFastKinds][kFastIndices] = {};
  mutable os::Mutex mutex_;
  std::map<std::uint32_t, const std::shared_ptr<Allocator>*> others_ BERTH_GUARDED_BY(mutex_);
  std::vector<const std::shared_ptr<Allocator>*> retired_ BERTH_GUARDED_BY(mutex_);
};

// Never destroyed: storages that outlive main give their memory back to these.
Defaults& defaults() {
  static auto* const made = new Defaults;
  return *made;
}

}  // namespace

const std::shared_ptr<Allocator>& default_allocator(Device device) {
  if (const auto* const known = defaults().get(device)) [[likely]] return *known;
  const std::shared_ptr<Allocator>* before = nullptr;
  return *defaults().set(device, make_chosen(device), false, before);
}

void set_default_allocator(Device device, std::shared_ptr<Allocator> allocator) {
  if (allocator == nullptr || allocator->device() != device) {
    throw ArgumentError(ErrorCode::wrong_device,
                        {text::join("setting the default allocator of ", device.to_string()),
                         allocator == nullptr ? std::string("there is none") : text::join("it is an allocator for ", allocator->device().to_string()), "make one for that device"},
                        {{"device", device.to_string()}});
  }
  const std::shared_ptr<Allocator>* before = nullptr;
  defaults().set(device, std::move(allocator), true, before);
  if (before != nullptr) (*before)->release_cached();
}

std::shared_ptr<Allocator> make_allocator(std::string_view text, Device device) {
  const std::size_t colon = text.find(':');
  const std::string_view name = text.substr(0, colon);
  const std::string_view option = colon == std::string_view::npos ? std::string_view() : text.substr(colon + 1);
  for (const Strategy& strategy : kStrategies) {
    if (strategy.name == name) return strategy.make(device, option);
  }
  std::string known;
  for (const Strategy& strategy : kStrategies) known += text::join(known.empty() ? "" : ", ", strategy.name);
  throw ArgumentError(ErrorCode::invalid_argument, {text::join("the allocator ", text::quoted(text)), "there is no strategy of that name", text::join("use one of ", known)},
                      {{"name", text::printable(name)}, {"known", known}});
}

std::vector<std::string> allocator_names() {
  std::vector<std::string> names;
  for (const Strategy& strategy : kStrategies) names.emplace_back(strategy.name);
  return names;
}

}  // namespace berth
