// SPDX-License-Identifier: Apache-2.0
#include "memory/process_budget.h"

#include <algorithm>
#include <cctype>
#include <map>
#include <string>
#include <vector>

#include "base/text.h"
#include "berth/base/checked.h"
#include "berth/device/backend.h"
#include "berth/device/registry.h"
#include "berth/memory/allocator.h"
#include "berth/memory/process_limit.h"
#include "device/host_access.h"
#include "os/lock/mutex.h"
#include "os/memory/memory.h"
#include "os/system.h"

namespace berth::internal::memory {

namespace {

constexpr std::uint32_t kHost = ~0U;

// A memory that one or more devices use.
struct MemoryBudget {
  explicit MemoryBudget(std::size_t limit) noexcept : budget(kOverProcessLimit, limit, nullptr) {}

  Budget budget;
  os::Mutex mutex;
  struct Entry {
    std::weak_ptr<Allocator> allocator;
    Trimmed trimmed;
  };
  std::vector<Entry> allocators BERTH_GUARDED_BY(mutex);
};

struct Memories {
  os::Mutex mutex;
  std::map<std::uint32_t, std::unique_ptr<MemoryBudget>> by_number BERTH_GUARDED_BY(mutex);
};

// Never destroyed: storages that outlive main free their memory.
Memories& memories() {
  static auto* const made = new Memories;
  return *made;
}

// Created when the library is loaded, so that the first use can neither fail for lack of heap nor be
// interrupted by a fork.
[[maybe_unused]] const Memories& g_memories_at_load = memories();

std::uint32_t number_of(const Backend& backend) noexcept {
  const DeviceKey key = backend.device().key();
  return device::is_host(backend) ? kHost : std::uint32_t{key.kind} << 16 | key.index;
}

std::size_t limit_from_environment(const Backend& backend) {
  std::string variable = device::is_host(backend) ? "BERTH_LIMIT" : text::join("BERTH_", backend.device().kind_name(), "_LIMIT");
  std::ranges::transform(variable, variable.begin(), [](unsigned char c) { return static_cast<char>(std::toupper(c)); });
  const auto value = os::environment(variable.c_str());
  std::uint64_t bytes = 0;
  if (!value) return SIZE_MAX;
  if (text::parse_bytes(*value, bytes) && bytes > 0) return bytes;
  throw ArgumentError(ErrorCode::invalid_argument,
                      {text::join("the environment variable ", variable, '=', text::printable(*value)), "it is not a byte count",
                       text::join("write the most memory that the process may take, as in ", variable, "=8GiB")},
                      {{"name", variable}, {"value", text::printable(*value)}});
}

MemoryBudget& memory_of(const Backend& backend) {
  Memories& all = memories();
  {
    const os::Lock lock(all.mutex);
    const auto found = all.by_number.find(number_of(backend));
    if (found != all.by_number.end()) return *found->second;
  }
  auto made = std::make_unique<MemoryBudget>(limit_from_environment(backend));  // it has a mutex, so not under a lock
  const os::Lock lock(all.mutex);
  return *all.by_number.try_emplace(number_of(backend), std::move(made)).first->second;
}

// The live allocators. They may be the last handles: drop them without a lock held.
std::vector<std::shared_ptr<Allocator>> allocators_of(MemoryBudget& memory, bool also_untrimmed) {
  std::vector<std::shared_ptr<Allocator>> live;
  const os::Lock lock(memory.mutex);
  live.reserve(memory.allocators.size());
  for (const MemoryBudget::Entry& one : memory.allocators) {
    if (one.trimmed == Trimmed::never && !also_untrimmed) continue;
    if (auto allocator = one.allocator.lock()) live.push_back(std::move(allocator));
  }
  return live;
}

}  // namespace

Budget& process_budget(const Backend& backend) { return memory_of(backend).budget; }

void enlist(const std::shared_ptr<Allocator>& allocator, Trimmed trimmed) {
  MemoryBudget& memory = memory_of(allocator->backend());
  const os::Lock lock(memory.mutex);
  std::erase_if(memory.allocators, [](const MemoryBudget::Entry& one) { return one.allocator.expired(); });
  memory.allocators.push_back({allocator, trimmed});
}

bool make_room_in_process(const Backend& backend, std::size_t bytes) {
  MemoryBudget& memory = memory_of(backend);
  const std::size_t before = memory.budget.used();
  // The caller was refused with the room there is, and needs more than the request: whole pages at both ends,
  // or the next power of two.
  const std::size_t page = std::max(backend.properties().unit_bytes, device::is_host(backend) ? os::huge_page_bytes() : 0);
  const std::size_t wanted = try_add(try_add(bytes, bytes).value_or(SIZE_MAX), 2 * page).value_or(SIZE_MAX);
  // Youngest first: a private pool returns its pages to its parent, which is older, and then releases them.
  std::vector<std::shared_ptr<Allocator>> allocators = allocators_of(memory, false);
  std::ranges::reverse(allocators);
  for (const std::shared_ptr<Allocator>& allocator : allocators) {
    if (memory.budget.room() >= wanted) break;
    allocator->trim(0);
  }
  return memory.budget.used() < before || memory.budget.room() >= bytes;
}

std::vector<std::shared_ptr<Allocator>> strategies_of_process() {
  Memories& all = memories();
  std::vector<MemoryBudget*> known;  // never destroyed
  {
    const os::Lock lock(all.mutex);
    for (const auto& [number, memory] : all.by_number) known.push_back(memory.get());
  }
  std::vector<std::shared_ptr<Allocator>> live;
  for (MemoryBudget* const memory : known) {
    for (auto& one : allocators_of(*memory, true)) live.push_back(std::move(one));
  }
  std::ranges::sort(live, {}, [](const auto& one) { return one->id(); });
  return live;
}

void explain_process_limit(const Backend& backend, OutOfMemoryReport& report) {
  MemoryBudget& memory = memory_of(backend);
  const std::size_t room = memory.budget.room();
  report.limit_bytes = memory.budget.limit();
  report.refused_by = text::join("the process's limit of ", text::bytes(report.limit_bytes), " on ",
                                 device::is_host(backend) ? std::string("host memory") : backend.device().to_string());
  if (report.requested_bytes > room) report.would_be_enough_bytes = report.requested_bytes - room;
  report.tried.emplace_back("released what all allocators of this memory had cached");
  for (const std::shared_ptr<Allocator>& allocator : allocators_of(memory, true)) {
    const Stats stats = allocator->stats();
    if (stats.committed_bytes == 0) continue;
    report.shares.push_back({allocator->name(), allocator->id(), allocator->device(), stats.committed_bytes, stats.in_use_bytes});
  }
  std::ranges::sort(report.shares, std::ranges::greater(), &AllocatorShare::committed_bytes);
}

}  // namespace berth::internal::memory

namespace berth {

using namespace internal;
using namespace internal::memory;

ProcessMemory process_memory(Device device) {
  const Budget& budget = process_budget(backend(device));
  return {budget.limit(), budget.used(), budget.peak()};
}

void set_process_limit(Device device, std::size_t limit_bytes) {
  const Backend& chosen = backend(device);
  Budget& budget = process_budget(chosen);
  budget.set_limit(limit_bytes);
  if (budget.used() > limit_bytes) make_room_in_process(chosen, 1);
}

}  // namespace berth
