// SPDX-License-Identifier: Apache-2.0
#include <map>
#include <utility>

#include "berth/base/checked.h"
#include "device/builtin.h"
#include "device/cpu/cpu_backend.h"
#include "device/shared/shared_range.h"
#include "os/file/shared_file.h"
#include "os/lock/mutex.h"
#include "os/memory/clear.h"
#include "os/memory/memory.h"
#include "os/process/fork.h"

// Host memory that other processes can map. A range is a memfd, sealed so that no process can truncate it under
// its readers; its pages are allocated when they are committed, so that a lack of memory is a failure and not a
// signal.
namespace berth {

using namespace internal;
using namespace internal::device;

namespace {

struct Range {
  std::size_t bytes = 0;
  int descriptor = -1;
  std::uint64_t number = 0;
  SharedAttachment attachment = {};
  os::Origin origin = {};
};

// All ranges, by address. Never destroyed.
struct Ranges {
  os::Mutex mutex;
  std::map<std::uintptr_t, Range> all BERTH_GUARDED_BY(mutex);
  std::uint64_t next_number BERTH_GUARDED_BY(mutex) = 1;

  // The range that contains the address, or nullptr.
  Range* find(const void* address, std::uintptr_t* base = nullptr) noexcept BERTH_REQUIRES(mutex) {
    const auto at = reinterpret_cast<std::uintptr_t>(address);
    auto after = all.upper_bound(at);
    if (after == all.begin()) return nullptr;
    --after;
    if (at - after->first >= after->second.bytes) return nullptr;
    if (base != nullptr) *base = after->first;
    return &after->second;
  }
};

Ranges& ranges() {
  static auto* const made = new Ranges;
  return *made;
}

// Made when the library is loaded, so that no later use can fail for lack of heap, or fork during the
// initialization.
[[maybe_unused]] const Ranges& g_ranges_at_load = ranges();

struct Found {
  int descriptor = -1;
  std::uint64_t offset = 0;
  bool inherited = false;
};

std::optional<Found> find(const void* address) noexcept {
  Ranges& known = ranges();
  const os::Lock lock(known.mutex);
  std::uintptr_t base = 0;
  const Range* const range = known.find(address, &base);
  if (range == nullptr) return std::nullopt;
  return Found{range->descriptor, reinterpret_cast<std::uintptr_t>(address) - base + kSharedDataOffset, range->origin.is_inherited()};
}

constexpr Failure kUnknown{ErrorCode::invalid_argument, 0, "the address is in no range of shared memory"};
constexpr Failure kInherited{ErrorCode::fork_unsafe, 0, "the range of shared memory belongs to the process that forked"};

class SharedBackend : public CpuBackend {
 public:
  explicit SharedBackend(Device device) : CpuBackend(device, "host memory that other processes can map", cpu_options_from_environment()) {
    properties_.abilities.move = false;
    properties_.abilities.fork_safe = false;
    properties_.abilities.fork_fresh = true;
    properties_.abilities.shared = true;
    properties_.max_alignment = kSharedDataOffset;
  }

  Result<void*> reserve(std::size_t bytes, std::size_t alignment) noexcept override {
    const auto length = try_align_up(bytes, os::page_bytes());
    const auto file_bytes = length ? try_add(*length, static_cast<std::size_t>(kSharedDataOffset)) : std::nullopt;
    if (!file_bytes) return Failure{ErrorCode::out_of_memory, 0, "the range is longer than a file can be"};
    Result<void*> address = CpuBackend::reserve(*length, alignment);
    if (!address) return address;
    Result<os::Descriptor> file = os::make_memory_file("berth", *file_bytes);
    if (file && add(*address, *length, *file)) return address;
    (void)CpuBackend::release(*address, *length).ok();
    return file ? Failure{ErrorCode::out_of_memory, 0, "no heap for the table of ranges"} : file.failure();
  }

  Status commit(void* address, std::size_t bytes) noexcept override {
    const std::optional<Found> found = find(address);
    if (!found) return kUnknown;
    if (found->inherited) return kInherited;
    Status done = os::allocate_range(found->descriptor, found->offset, bytes);
    if (done) done = os::map_file_range_at(address, found->descriptor, found->offset, bytes);
    if (!done) {
      (void)os::punch_hole(found->descriptor, found->offset, bytes).ok();
      return done;
    }
    const std::size_t huge = os::huge_page_bytes();
    if (options_.huge_pages && huge != 0 && bytes >= huge) os::prefer_huge_pages(address, bytes);
    return {};
  }

  Status decommit(void* address, std::size_t bytes) noexcept override {
    const std::optional<Found> found = find(address);
    if (!found) return kUnknown;
    if (found->inherited) return kInherited;
    // The memory is freed before the range is unmapped: when the kernel refuses that, nothing has changed.
    if (const Status taken = os::punch_hole(found->descriptor, found->offset, bytes); !taken) return taken;
    return os::close_off(address, bytes);
  }

  Status move(void*, void*, std::size_t) noexcept override {
    return Failure{ErrorCode::unsupported, 0, "pages of shared memory do not move: other processes have them mapped"};
  }

  Status release(void* address, std::size_t bytes) noexcept override {
    std::optional<Range> range = remove(address);
    if (!range) return kUnknown;
    range->attachment.reset();  // without a lock: its destructor may take long
    const Status done = CpuBackend::release(address, bytes);
    // Addresses that the kernel fails to unmap keep the file alive: free its memory, at least.
    if (!done && !range->origin.is_inherited()) (void)os::punch_hole(range->descriptor, 0, kSharedDataOffset + range->bytes).ok();
    os::close_descriptor(range->descriptor);
    return done;
  }

  Result<void*> allocate(std::size_t bytes, std::size_t alignment) noexcept override { return Backend::allocate(bytes, alignment); }
  void free(void* address, std::size_t bytes, std::size_t alignment) noexcept override { Backend::free(address, bytes, alignment); }

  Status zero(void* target, std::size_t bytes, StreamRef stream) noexcept override {
    const std::optional<Found> found = stream ? std::nullopt : find(target);
    if (!found) return Backend::zero(target, bytes, stream);
    os::clear_mapped(target, bytes, found->descriptor, found->offset);
    return {};
  }

 private:
  // Takes ownership of the descriptor on success.
  static bool add(void* address, std::size_t bytes, os::Descriptor& file) noexcept {
    std::map<std::uintptr_t, Range> fresh;
    try {
      fresh.try_emplace(reinterpret_cast<std::uintptr_t>(address), Range{.bytes = bytes, .descriptor = file.number()});
    } catch (const std::bad_alloc&) {
      return false;
    }
    Ranges& known = ranges();
    const os::Lock lock(known.mutex);
    fresh.begin()->second.number = known.next_number++;
    known.all.insert(fresh.extract(fresh.begin()));
    (void)file.take();
    return true;
  }

  static std::optional<Range> remove(void* address) noexcept {
    Ranges& known = ranges();
    decltype(known.all)::node_type node;  // destroyed after the lock is released
    {
      const os::Lock lock(known.mutex);
      node = known.all.extract(reinterpret_cast<std::uintptr_t>(address));
    }
    if (node.empty()) return std::nullopt;
    return std::move(node.mapped());
  }
};

class SharedFactory : public BackendFactory {
 public:
  int count() override { return 1; }
  std::string unavailable_reason() override { return ""; }
  std::unique_ptr<Backend> make(Device device) override { return std::make_unique<SharedBackend>(device); }
};

// The attachment of a range and the position of its start, read under the lock.
std::optional<std::pair<SharedAttachment, SharedPosition>> look(std::uint64_t number) noexcept {
  Ranges& known = ranges();
  const os::Lock lock(known.mutex);
  for (const auto& [base, range] : known.all) {
    if (range.number == number)
      return std::pair(range.attachment, SharedPosition{range.descriptor, kSharedDataOffset, number, kSharedDataOffset + range.bytes,
                                                        reinterpret_cast<std::byte*>(base)});
  }
  return std::nullopt;
}

// Sets the attachment unless there is one, and returns the one that is set.
SharedAttachment put(std::uint64_t number, const SharedAttachment& made) noexcept {
  Ranges& known = ranges();
  const os::Lock lock(known.mutex);
  for (auto& [base, range] : known.all) {
    if (range.number != number) continue;
    if (range.attachment == nullptr) range.attachment = made;
    return range.attachment;
  }
  return made;
}

}  // namespace

std::optional<SharedPosition> internal::device::find_shared_position(const void* address, std::size_t bytes) noexcept {
  Ranges& known = ranges();
  const os::Lock lock(known.mutex);
  std::uintptr_t base = 0;
  const Range* const range = known.find(address, &base);
  if (range == nullptr || range->origin.is_inherited()) return std::nullopt;
  const std::uintptr_t within = reinterpret_cast<std::uintptr_t>(address) - base;
  if (!fits(within, bytes, range->bytes)) return std::nullopt;
  return SharedPosition{range->descriptor, within + kSharedDataOffset, range->number, kSharedDataOffset + range->bytes,
                        reinterpret_cast<std::byte*>(base)};
}

Result<SharedAttachment> internal::device::shared_attachment(std::uint64_t range,
                                                             Result<SharedAttachment> (*make)(const SharedPosition& position)) {
  for (;;) {
    const auto known = look(range);
    if (!known) return kUnknown;
    if (known->first != nullptr) return known->first;
    const Result<SharedAttachment> made = make(known->second);
    if (made) return put(range, *made);
    if (made.failure().code != ErrorCode::busy) return made;
    os::sleep_us(50);
  }
}

std::unique_ptr<BackendFactory> internal::device::make_shared_factory() { return std::make_unique<SharedFactory>(); }

}  // namespace berth
