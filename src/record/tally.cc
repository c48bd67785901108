// SPDX-License-Identifier: Apache-2.0
#include "record/tally.h"

#include <algorithm>
#include <memory>
#include <new>
#include <span>
#include <unordered_map>
#include <utility>

#include "base/relaxed.h"
#include "os/lock/mutex.h"
#include "os/process/thread_exit.h"
#include "record/emit.h"

namespace berth::internal::record {

namespace {

using Key = TallyKey;
constexpr Key kWholeDevice = 1ULL << 48;  // a key without a tag: the sum of the device

}  // namespace

// Never destroyed.
struct TallyTotal {
  explicit TallyTotal(Key of) noexcept : key(of) {}

  const Key key;
  std::atomic<std::int64_t> published{0};  // bytes in use
  std::atomic<std::int64_t> peak{0};

  void raise_peak(std::int64_t to) noexcept {
    std::int64_t known = peak.load(std::memory_order_relaxed);
    while (known < to && !peak.compare_exchange_weak(known, to, std::memory_order_relaxed)) {
    }
  }
};

[[gnu::noinline]] void Unpublished::publish(std::int64_t sum, TallyTotal& total) noexcept {
  // relaxed, as everything here: no other data depends on sums and peaks.
  total.raise_peak(total.published.fetch_add(sum, std::memory_order_relaxed) + high());
  clear();
}

constinit thread_local TallyHere t_tally [[gnu::tls_model("initial-exec")]];

namespace {

using Row = TallyTotal;
using Cell = TallyCell;
using Whole = TallyWhole;

// The counts of one thread, or of several in succession: a thread that exits leaves its table, with its counts,
// to the next one. The owner finds cells through a hash table, readers through a list that only grows.
struct Table : TallyFront {
  static constexpr std::size_t kMostCells = 4096;  // pairs of device and tag; events beyond are dropped

  Cell*& recent_of(Key key) noexcept { return recent[(key ^ key >> 16 ^ key >> 32) % recent.size()]; }
  Cell* find(Key key) noexcept {
    const auto found = by_key.find(key);
    return found == by_key.end() ? nullptr : found->second;
  }

  std::array<Cell*, 64> recent{};  // direct-mapped cache of cells; like by_key, used by the owner alone
  std::unordered_map<Key, Cell*> by_key;
  std::vector<std::unique_ptr<Cell>> cells;    // modified under the registry's lock
  std::vector<std::unique_ptr<Whole>> wholes;  // likewise; of further devices
  bool owned = false;                          // guarded by the lock
};

class Registry {
 public:
  bool begin() noexcept {
    const os::Lock lock(mutex_);
    if (running_) return false;
    running_ = true;
    ++session_;
    for (const auto& row : rows_) {
      row->published.store(0, std::memory_order_relaxed);
      row->peak.store(0, std::memory_order_relaxed);
    }
    dropped_.store(0);
    g_tally_session.store(session_, std::memory_order_relaxed);
    g_watchers.add(1);
    return true;
  }

  void end() noexcept {
    const os::Lock lock(mutex_);
    if (!running_) return;
    running_ = false;
    g_tally_session.store(0, std::memory_order_relaxed);
    g_watchers.add(-1);
  }

  // A table for the calling thread, ready for the session. nullptr when the heap is exhausted.
  Table* table_for(Table* known, std::uint64_t session) noexcept;
  // Adds the cell of a key to the thread's own table. nullptr when the heap is exhausted or the table is full.
  Cell* make_cell(Table& table, DeviceKey device, Key key) noexcept;
  void leave(Table& table) noexcept {
    const os::Lock lock(mutex_);
    table.owned = false;
  }
  void drop() noexcept { dropped_.add(1); }
  Tally read();

 private:
  Row* row_of(Key key) BERTH_REQUIRES(mutex_);
  Whole* whole_of(Table& table, Row* row) BERTH_REQUIRES(mutex_);
  TallyRow sum(const Row& row, std::span<const TallyRow> tags) const BERTH_REQUIRES(mutex_);

  os::Mutex mutex_;
  bool running_ BERTH_GUARDED_BY(mutex_) = false;
  std::uint64_t session_ BERTH_GUARDED_BY(mutex_) = 0;
  std::vector<std::unique_ptr<Row>> rows_ BERTH_GUARDED_BY(mutex_);      // in the order of first use
  std::vector<std::unique_ptr<Table>> tables_ BERTH_GUARDED_BY(mutex_);  // never removed
  Relaxed<std::uint64_t> dropped_;
};

// Never destroyed: static objects free their memory after main.
Registry& registry() {
  static auto* const made = new Registry;
  return *made;
}
[[maybe_unused]] const Registry& g_registry_at_load = registry();

Table* own_table() noexcept { return static_cast<Table*>(t_tally.front); }

void leave_thread(void* table) noexcept {
  t_tally = {};
  registry().leave(*static_cast<Table*>(table));
}

os::ThreadExit& thread_exit() noexcept {
  static auto* const made = new os::ThreadExit(leave_thread);
  return *made;
}
[[maybe_unused]] const os::ThreadExit& g_exit_made_at_load = thread_exit();

Table* Registry::table_for(Table* known, std::uint64_t session) noexcept {
  Table* table = known;
  if (table == nullptr) {
    std::unique_ptr<Table> fresh(new (std::nothrow) Table);
    if (fresh == nullptr) return nullptr;
    const os::Lock lock(mutex_);
    for (const auto& one : tables_) {
      if (!one->owned) table = one.get();
    }
    try {
      if (table == nullptr) table = tables_.emplace_back(std::move(fresh)).get();
    } catch (const std::bad_alloc&) {
      return nullptr;
    }
    table->owned = true;
  }
  if (table->session.load() == session) return table;
  // Clears the counts of an earlier tally. Readers skip the table until it has this session's number.
  const os::Lock lock(mutex_);
  for (const auto& cell : table->cells) cell->clear();
  table->first_whole.unpublished.clear();
  for (const auto& whole : table->wholes) whole->unpublished.clear();
  for (auto& size : table->sizes) size.store(0);
  table->session.store(session);
  return table;
}

Row* Registry::row_of(Key key) {
  for (const auto& row : rows_) {
    if (row->key == key) return row.get();
  }
  return rows_.emplace_back(std::make_unique<Row>(key)).get();
}

Whole* Registry::whole_of(Table& table, Row* row) {
  if (table.first_whole.total == nullptr) table.first_whole.total = row;
  if (table.first_whole.total == row) return &table.first_whole;
  const auto known = std::ranges::find(table.wholes, row, [](const auto& one) { return one->total; });
  if (known != table.wholes.end()) return known->get();
  table.wholes.push_back(std::make_unique<Whole>());
  table.wholes.back()->total = row;
  return table.wholes.back().get();
}

Cell* Registry::make_cell(Table& table, DeviceKey device, Key key) noexcept {
  try {
    auto cell = std::make_unique<Cell>();
    cell->key = key;
    const os::Lock lock(mutex_);
    if (table.cells.size() >= Table::kMostCells) return nullptr;
    cell->total = row_of(key);
    cell->whole = whole_of(table, row_of(tally_key(device, {}) | kWholeDevice));
    table.cells.reserve(table.cells.size() + 1);
    Cell* const made = cell.get();
    table.by_key.emplace(key, made);
    table.cells.push_back(std::move(cell));
    return made;
  } catch (const std::bad_alloc&) {
    return nullptr;
  }
}

// The thread's cell for an event, or nullptr when it cannot be counted.
[[gnu::noinline]] Cell* find_cell(DeviceKey device, Key key) noexcept {
  Table* const table = registry().table_for(own_table(), g_tally_session.load(std::memory_order_relaxed));
  if (table == nullptr) {
    registry().drop();
    return nullptr;
  }
  if (t_tally.front == nullptr) {
    t_tally.front = table;
    thread_exit().arm(table);
  }
  Cell* cell = table->find(key);
  if (cell == nullptr) cell = registry().make_cell(*table, device, key);
  if (cell == nullptr) {
    registry().drop();
  } else {
    t_tally.cell = table->recent_of(key) = cell;
    t_tally.session = table->session.load();
  }
  return cell;
}

Cell* cell_for(DeviceKey device, Tag tag) noexcept {
  const Key key = tally_key(device, tag);
  Table* const table = own_table();
  const std::uint64_t session = g_tally_session.load(std::memory_order_relaxed);
  if (table != nullptr && table->session.load() == session) [[likely]] {
    Cell* const recent = table->recent_of(key);
    if (recent != nullptr && recent->key == key) [[likely]] {
      t_tally.session = session;
      return t_tally.cell = recent;
    }
  }
  return find_cell(device, key);
}

TallyRow Registry::sum(const Row& row, std::span<const TallyRow> tags) const {
  const bool whole = (row.key & kWholeDevice) != 0;
  TallyRow made{.device = {static_cast<std::uint16_t>(row.key >> 32), static_cast<std::uint16_t>(row.key >> 16)},
                .tag = Tag::from_id(static_cast<std::uint16_t>(row.key)),
                .counts = {}};
  TallyCounts& counts = made.counts;
  for (const TallyRow& of_tag : tags) {
    if (!whole || of_tag.device != made.device) continue;
    counts.allocations += of_tag.counts.allocations;
    counts.frees += of_tag.counts.frees;
    counts.allocated_bytes += of_tag.counts.allocated_bytes;
    counts.freed_bytes += of_tag.counts.freed_bytes;
  }
  const std::int64_t published = row.published.load(std::memory_order_relaxed);
  counts.peak_bytes = row.peak.load(std::memory_order_relaxed);
  const auto consider = [&](const Unpublished& one, const Row* of) {
    if (of == &row) counts.peak_bytes = std::max(counts.peak_bytes, published + one.high());
  };
  for (const auto& table : tables_) {
    if (table->session.load() != session_) continue;
    consider(table->first_whole.unpublished, table->first_whole.total);
    for (const auto& one : table->wholes) consider(one->unpublished, one->total);
    for (const auto& cell : table->cells) {
      if (cell->total != &row) continue;
      consider(cell->own, cell->total);
      counts.allocations += cell->allocations.load();
      counts.frees += cell->frees.load();
      counts.allocated_bytes += cell->allocated_bytes.load();
      counts.freed_bytes += cell->freed_bytes.load();
    }
  }
  counts.bytes = static_cast<std::int64_t>(counts.allocated_bytes - counts.freed_bytes);
  counts.peak_bytes = std::max(counts.peak_bytes, counts.bytes);
  return made;
}

Tally Registry::read() {
  Tally tally;
  const os::Lock lock(mutex_);
  const auto collect = [&](std::vector<TallyRow>& into, bool whole) BERTH_NO_THREAD_ANALYSIS {
    for (const auto& row : rows_) {
      if (((row->key & kWholeDevice) != 0) != whole) continue;
      const TallyRow made = sum(*row, tally.tags);
      if (made.counts.allocations + made.counts.frees != 0) into.push_back(made);
    }
  };
  collect(tally.tags, false);
  collect(tally.devices, true);
  for (const auto& table : tables_) {
    if (table->session.load() != session_) continue;
    for (std::size_t i = 0; i < Tally::kSizes; ++i) tally.sizes[i] += table->sizes[i].load();
  }
  tally.dropped = dropped_.load();
  return tally;
}

}  // namespace

bool begin_tally() noexcept { return registry().begin(); }
void end_tally() noexcept { registry().end(); }
Tally read_tally() { return registry().read(); }

void count_allocation_in_tally(DeviceKey device, Tag tag, std::size_t bytes) noexcept {
  Cell* const cell = cell_for(device, tag);
  if (cell == nullptr) return;
  cell->count_allocation(bytes);
  t_tally.front->count_size(bytes);
}

void count_free_in_tally(DeviceKey device, Tag tag, std::size_t bytes) noexcept {
  if (Cell* const cell = cell_for(device, tag)) cell->count_free(bytes);
}

}  // namespace berth::internal::record
