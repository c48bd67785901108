// SPDX-License-Identifier: Apache-2.0
#include "copy/mapped_bytes.h"

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <map>

#include "copy/validate.h"
#include "os/lock/mutex.h"

namespace berth::internal::copy {

namespace {

struct Mapped {
  std::uintptr_t end;
  const MappedBytes* file;
};

// By first address; none overlap. Never destroyed.
struct Registry {
  os::Mutex mutex;
  std::map<std::uintptr_t, Mapped> all BERTH_GUARDED_BY(mutex);
};
Registry& registry() {
  static auto* const made = new Registry;
  return *made;
}
[[maybe_unused]] const Registry& g_registry_at_load = registry();

// Relaxed: whoever has the address of mapped bytes has it from a thread that has entered them.
std::atomic<std::size_t> g_mapped{0};

std::uintptr_t number(const void* address) noexcept { return reinterpret_cast<std::uintptr_t>(address); }

// Calls found(file, begin, end) for each part of the range that is mapped, with the mutex.
template <class Found>
void each_mapped(const ByteRange& range, const Found& found) {
  if (!has_mapped_bytes() || range.begin == range.end) return;
  Registry& known = registry();
  const os::Lock lock(known.mutex);
  auto at = known.all.upper_bound(range.begin);
  if (at != known.all.begin()) --at;
  for (; at != known.all.end() && at->first < range.end; ++at) {
    if (at->second.end > range.begin) found(*at->second.file, std::max(at->first, range.begin), std::min(at->second.end, range.end));
  }
}

}  // namespace

bool has_mapped_bytes() noexcept { return g_mapped.load(std::memory_order_relaxed) != 0; }

bool is_mapped(const ByteRange& range) {
  bool any = false;
  each_mapped(range, [&](const MappedBytes&, std::uintptr_t, std::uintptr_t) { any = true; });
  return any;
}

void MappedBytes::enter(const void* begin, std::size_t bytes) {
  Registry& known = registry();
  const os::Lock lock(known.mutex);
  known.all.insert({number(begin), {number(begin) + bytes, this}});
  g_mapped.store(known.all.size(), std::memory_order_relaxed);
}

void MappedBytes::leave(const void* begin) noexcept {
  Registry& known = registry();
  const os::Lock lock(known.mutex);
  known.all.erase(number(begin));
  g_mapped.store(known.all.size(), std::memory_order_relaxed);
}

void MappedTouches::add(const SpanRef& span) {
  if (!span.may_be_mapped || !has_mapped_bytes()) return;
  each_mapped(checked_range(span), [&](const MappedBytes& file, std::uintptr_t begin, std::uintptr_t end) {
    add(file, reinterpret_cast<const void*>(begin), end - begin);
  });
}

// One range for each file, so that a batch of all its tensors is asked about once.
void MappedTouches::add(const MappedBytes& file, const void* begin, std::size_t bytes) {
  const auto found = std::ranges::find(files_.all(), &file);
  if (found == files_.all().end()) {
    files_.push_back(&file);
    ranges_.push_back({begin, bytes});
    return;
  }
  os::TouchedRange& known = ranges_.all()[static_cast<std::size_t>(found - files_.all().begin())];
  const std::uintptr_t end = std::max(number(known.begin) + known.bytes, number(begin) + bytes);
  known.begin = std::min(known.begin, begin);
  known.bytes = end - number(known.begin);
}

void MappedTouches::throw_lost(const void* at) const {
  require_there();
  std::size_t i = 0;
  while (i + 1 < files_.size() && !ranges_.all()[i].is_near(at)) ++i;  // the guard knows no other ranges
  files_.all()[i]->throw_lost(at);
}

void MappedTouches::require_there() const {
  for (std::size_t i = 0; i < files_.size(); ++i) files_.all()[i]->require_there(ranges_.all()[i].begin, ranges_.all()[i].bytes);
}

}  // namespace berth::internal::copy
