// SPDX-License-Identifier: Apache-2.0
#include "berth/record/record.h"

#include <new>
#include <utility>
#include <vector>

#include "berth/base/error.h"
#include "os/lock/mutex.h"
#include "os/system.h"
#include "record/emit.h"

namespace berth {

using namespace internal;
using namespace internal::record;

namespace {

struct Entry {
  Entry(std::shared_ptr<Sink> attached_sink, RecordSet wanted) : sink(std::move(attached_sink)), records(wanted) {}

  bool wants(RecordKind kind) const noexcept {
    const bool of_copy = kind == RecordKind::copied || kind == RecordKind::filled;
    return records == RecordSet::everything || (records == RecordSet::copies) == of_copy;
  }

  const std::shared_ptr<Sink> sink;
  const RecordSet records;
  std::atomic<bool> attached{true};
};

using SinkList = std::vector<std::shared_ptr<Entry>>;

// The list is immutable and replaced as a whole (copy-on-write), so that delivery holds the lock only to take a
// reference.
struct Sinks {
  os::Mutex mutex;
  std::shared_ptr<const SinkList> list BERTH_GUARDED_BY(mutex) = std::make_shared<const SinkList>();
};

// Never destroyed: static storages are freed, and recorded, after main.
Sinks& sinks() {
  static auto* const made = new Sinks;
  return *made;
}

// Made when the library is loaded, so that no later use can fail for lack of heap, or fork during the
// initialization.
[[maybe_unused]] const Sinks& g_sinks_at_load = sinks();

std::shared_ptr<const SinkList> current_list() {
  Sinks& all = sinks();
  const os::Lock lock(all.mutex);
  return all.list;
}

// Swaps in a list made by `change` from the current one, which other threads may have replaced meanwhile.
template <class Change>
void replace_list(Change change) {
  Sinks& all = sinks();
  while (true) {
    const std::shared_ptr<const SinkList> before = current_list();
    auto after = std::make_shared<const SinkList>(change(*before));
    const os::Lock lock(all.mutex);
    if (all.list != before) continue;
    all.list.swap(after);
    return;
  }
}

constinit thread_local bool t_delivering = false;

void count_sink(RecordSet records, int change) noexcept {
  if (records != RecordSet::copies) g_block_sinks.add(change);
  if (records != RecordSet::blocks) g_copy_sinks.add(change);
  g_watchers.add((records == RecordSet::copies ? 1 : static_cast<int>(kSlowWatcher)) * change);
}

}  // namespace

Sink::~Sink() = default;

std::string_view to_string(RecordKind kind) noexcept {
  constexpr std::string_view kNames[] = {"allocated", "freed", "allocation_failed", "copied", "filled"};
  return kNames[static_cast<std::size_t>(kind)];
}

void internal::record::emit(Record record) noexcept {
  if (t_delivering) return;
  t_delivering = true;
  record.time_ns = os::steady_time_ns();
  {
    const std::shared_ptr<const SinkList> list = current_list();
    for (const std::shared_ptr<Entry>& entry : *list) {
      if (entry->attached.load(std::memory_order_relaxed) && entry->wants(record.kind)) entry->sink->on_record(record);
    }
  }
  t_delivering = false;
}

SinkAttachment attach_sink(std::shared_ptr<Sink> sink, RecordSet records) {
  if (sink == nullptr) throw ArgumentError(ErrorCode::invalid_argument, {"attaching a sink", "the pointer is null", "pass one"});
  const auto entry = std::make_shared<Entry>(std::move(sink), records);
  replace_list([&](SinkList list) {
    list.push_back(entry);
    return list;
  });
  count_sink(records, 1);
  SinkAttachment attachment;
  attachment.entry_ = entry.get();
  return attachment;
}

SinkAttachment::SinkAttachment(SinkAttachment&& other) noexcept : entry_(std::exchange(other.entry_, nullptr)) {}

SinkAttachment& SinkAttachment::operator=(SinkAttachment&& other) noexcept {
  if (this != &other) {
    detach();
    entry_ = std::exchange(other.entry_, nullptr);
  }
  return *this;
}

SinkAttachment::~SinkAttachment() { detach(); }

void SinkAttachment::detach() noexcept {
  if (entry_ == nullptr) return;
  auto* const entry = static_cast<Entry*>(std::exchange(entry_, nullptr));
  // Read first: once the entry is detached, another thread may remove it from the list and destroy it.
  const RecordSet records = entry->records;
  // release, and acquire below: all that the owner did to the sink happens before its destruction by the thread
  // that removes the entry.
  entry->attached.store(false, std::memory_order_release);
  count_sink(records, -1);
  try {
    replace_list([](SinkList list) {
      std::erase_if(list, [](const std::shared_ptr<Entry>& e) { return !e->attached.load(std::memory_order_acquire); });
      return list;
    });
  } catch (const std::bad_alloc&) {
    // The entry is detached; the next change of the list removes it and releases its sink.
  }
}

}  // namespace berth
