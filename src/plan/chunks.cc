// SPDX-License-Identifier: Apache-2.0
#include "plan/chunks.h"

#include <algorithm>
#include <numeric>
#include <optional>
#include <tuple>
#include <utility>

#include "base/allowance.h"
#include "berth/base/checked.h"
#include "plan/pack/ranges.h"
#include "plan/portfolio.h"

namespace berth::internal::plan {

namespace {

using Indices = std::vector<std::uint32_t>;

// Memory that chunks are cut from: chunks of the maximum size, and a last one that is smaller.
struct Supply {
  std::string name;
  std::size_t capacity_bytes;  // of all its chunks
};

struct Bin {
  std::size_t supply;
  std::size_t capacity_bytes;
  Indices buffers = {};                   // by offset
  std::vector<std::size_t> offsets = {};  // of these buffers
};

std::vector<Supply> supplies_of(const PlanOptions& options, std::uint32_t device) {
  std::vector<Supply> supplies;
  for (const ArenaOption& arena : options.arenas)
    if (arena.device == device) supplies.push_back({arena.name, arena.capacity_bytes});
  if (supplies.empty()) supplies.push_back({{}, SIZE_MAX});
  return supplies;
}

// Packs the chunks of one device.
class ChunkPacker {
 public:
  ChunkPacker(const ChunksTask& task, std::uint32_t device)
      : task_(task), supplies_(supplies_of(task.options, device)), taken_(supplies_.size(), 0) {
    for (std::uint32_t i = 0; i < task.buffers.size(); ++i)
      if (task.buffers[i].device == device && pack(i).bytes != 0) all_.push_back(i);
  }

  // Tries several orders and returns the bins with the least bytes; where there is a preference among supplies,
  // the bins of the first order that fits, since it is made for that. A sweep comes before, since orders of very many
  // buffers do not end in time.
  std::optional<std::vector<Bin>> run() {
    std::optional<std::vector<Bin>> best;
    if (sweep()) best = packed_again();
    bool in_order = false;
    for (const auto order : {&ChunkPacker::by_use, &ChunkPacker::by_bytes, &ChunkPacker::by_life, &ChunkPacker::by_area}) {
      if (looks_ > kMostLooks || task_.patience.over() || (in_order && supplies_.size() > 1)) break;
      Indices sorted = all_;
      (this->*order)(sorted);
      if (!fill(sorted)) continue;
      std::vector<Bin> bins = packed_again();
      if (!best || total(bins) < total(*best) || (!in_order && supplies_.size() > 1)) best = std::move(bins);
      in_order = true;
    }
    return best;
  }

  const std::string& name_of(const Bin& bin) const { return supplies_[bin.supply].name; }
  static std::size_t used_of(const Bin& bin, const std::vector<PackBuffer>& buffers) {
    std::size_t used = 0;
    for (std::size_t i = 0; i < bin.buffers.size(); ++i) used = std::max(used, bin.offsets[i] + buffers[bin.buffers[i]].bytes);
    return used;
  }

 private:
  const PackBuffer& pack(std::uint32_t i) const { return task_.buffers[i]; }
  double life(std::uint32_t i) const { return pack(i).end - pack(i).begin; }
  double size(std::uint32_t i) const { return static_cast<double>(pack(i).bytes); }

  template <class Worth>
  static void sort_by(Indices& order, Worth worth) {
    std::stable_sort(order.begin(), order.end(), [&](std::uint32_t a, std::uint32_t b) { return worth(a) > worth(b); });
  }
  // Bytes accessed per byte × step: the bytes cancel out.
  void by_use(Indices& order) {
    by_bytes(order);
    sort_by(order, [&](std::uint32_t i) { return static_cast<double>(task_.touches[i]) / life(i); });
  }
  void by_bytes(Indices& order) {
    sort_by(order, [&](std::uint32_t i) { return size(i); });
  }
  void by_life(Indices& order) {
    sort_by(order, [&](std::uint32_t i) { return life(i); });
  }
  void by_area(Indices& order) {
    sort_by(order, [&](std::uint32_t i) { return life(i) * size(i); });
  }

  std::size_t total(const std::vector<Bin>& bins) const {
    std::size_t sum = 0;
    for (const Bin& bin : bins) sum += used_of(bin, task_.buffers);
    return sum;
  }

  void clear() {
    bins_.clear();
    taken_.assign(supplies_.size(), 0);
  }

  // Each into the first bin that has room.
  bool fill(const Indices& order) {
    clear();
    for (const std::uint32_t i : order)
      if (looks_ > kMostLooks || task_.patience.over() || !place(i)) return false;
    return true;
  }

  // In time order, each into the smallest free range of the first supply that has one: near linear.
  bool sweep() {
    clear();
    std::vector<Ranges> free(supplies_.size(), Ranges(task_.buffers.size()));
    std::vector<Indices> bin_of(supplies_.size());  // of each space
    std::vector<std::size_t> supply_of(task_.buffers.size());
    Indices births = all_;
    Indices deaths = all_;
    std::sort(births.begin(), births.end(), [&](std::uint32_t a, std::uint32_t b) {
      if (pack(a).begin != pack(b).begin) return pack(a).begin < pack(b).begin;
      return pack(a).bytes != pack(b).bytes ? pack(a).bytes > pack(b).bytes : a < b;
    });
    std::stable_sort(deaths.begin(), deaths.end(), [&](std::uint32_t a, std::uint32_t b) { return pack(a).end < pack(b).end; });
    auto dead = deaths.begin();
    for (const std::uint32_t i : births) {
      base::checkpoint();  // even a limit that is too short for orders is for this
      for (; pack(*dead).end <= pack(i).begin; ++dead) free[supply_of[*dead]].release(*dead);
      if (!place_free(i, free, bin_of, supply_of)) return false;
    }
    for (Bin& bin : bins_) sort_by_offset(bin);
    by_supply();
    return true;
  }

  bool place_free(std::uint32_t i, std::vector<Ranges>& free, std::vector<Indices>& bin_of, std::vector<std::size_t>& supply_of) {
    for (std::size_t supply = 0; supply < supplies_.size(); ++supply) {
      std::optional<Ranges::Place> at = free[supply].place(i, pack(i), pack(i).end, Choice::smallest);
      if (!at) {
        const std::optional<std::size_t> capacity = take_bin(supply, pack(i).bytes);
        if (!capacity) continue;
        bin_of[supply].push_back(static_cast<std::uint32_t>(bins_.size() - 1));
        free[supply].add_space(std::min(*capacity, kEndlessSpace));
        at = free[supply].place(i, pack(i), pack(i).end, Choice::smallest);
      }
      Bin& bin = bins_[bin_of[supply][at->space]];
      bin.buffers.push_back(i);
      bin.offsets.push_back(at->offset);
      supply_of[i] = supply;
      return true;
    }
    return false;
  }

  static void sort_by_offset(Bin& bin) {
    std::vector<std::pair<std::size_t, std::uint32_t>> both;
    both.reserve(bin.buffers.size());
    for (std::size_t k = 0; k < bin.buffers.size(); ++k) both.emplace_back(bin.offsets[k], bin.buffers[k]);
    std::sort(both.begin(), both.end());
    for (std::size_t k = 0; k < both.size(); ++k) std::tie(bin.offsets[k], bin.buffers[k]) = both[k];
  }

  // Makes a bin of a supply that has so many bytes; returns its capacity.
  std::optional<std::size_t> take_bin(std::size_t supply, std::size_t bytes) {
    const std::size_t left = supplies_[supply].capacity_bytes - taken_[supply];
    const std::size_t capacity = std::min(left, task_.options.max_chunk_bytes);
    if (capacity < bytes) return std::nullopt;
    if (left != SIZE_MAX) taken_[supply] += capacity;
    bins_.push_back({supply, capacity});
    return capacity;
  }

  void by_supply() {
    std::stable_sort(bins_.begin(), bins_.end(), [](const Bin& a, const Bin& b) { return a.supply < b.supply; });
  }

  // By preference: an existing bin of a supply, a new bin of it, and then the next supply.
  bool place(std::uint32_t i) {
    for (std::size_t supply = 0; supply < supplies_.size(); ++supply) {
      for (Bin& bin : bins_)
        if (bin.supply == supply && place_in(bin, i)) return true;
      if (!take_bin(supply, pack(i).bytes)) continue;
      (void)place_in(bins_.back(), i);
      by_supply();
      return true;
    }
    return false;
  }

  // First fit: the lowest gap among the buffers whose lifetimes overlap.
  bool place_in(Bin& bin, std::uint32_t i) {
    const PackBuffer& one = pack(i);
    std::size_t offset = 0;
    looks_ += 1 + bin.buffers.size();
    for (std::size_t k = 0; k < bin.buffers.size(); ++k) {
      const PackBuffer& other = pack(bin.buffers[k]);
      if (other.end <= one.begin || one.end <= other.begin || bin.offsets[k] + other.bytes <= offset) continue;
      if (bin.offsets[k] >= offset + one.bytes) break;
      offset = align_offset(bin.offsets[k] + other.bytes, one.alignment);
    }
    if (offset > bin.capacity_bytes || one.bytes > bin.capacity_bytes - offset) return false;
    const auto at = std::upper_bound(bin.offsets.begin(), bin.offsets.end(), offset) - bin.offsets.begin();
    bin.buffers.insert(bin.buffers.begin() + at, i);
    bin.offsets.insert(bin.offsets.begin() + at, offset);
    return true;
  }

  // The bins, each packed again by itself.
  std::vector<Bin> packed_again() {
    for (Bin& bin : bins_) pack_again(bin);
    return std::move(bins_);
  }

  // Packs a bin again by all strategies, of very many buffers by those that are near linear, and keeps the result if it
  // needs less.
  void pack_again(Bin& bin) const {
    if (task_.patience.over()) return;
    std::vector<PackBuffer> buffers;
    for (const std::uint32_t i : bin.buffers) {
      buffers.push_back(task_.buffers[i]);
      buffers.back().device = 0;
    }
    Portfolio portfolio(buffers, 1);
    portfolio.start_without_reuse();
    for (const OffsetStrategy* strategy : task_.strategies) {
      if (portfolio.at_bound() || task_.patience.over()) break;
      if (all_.size() > kVeryMany && strategy->family != Family::sweep) continue;
      (void)portfolio.run(*strategy, {.patience = task_.patience});
    }
    if (portfolio.total_bytes() < used_of(bin, task_.buffers)) bin.offsets = portfolio.offsets();
  }

  static constexpr std::size_t kMostLooks = std::size_t{1} << 30;  // at the buffers of bins: some seconds

  const ChunksTask& task_;
  const std::vector<Supply> supplies_;
  std::vector<std::size_t> taken_;  // of each supply, the bytes assigned to bins
  Indices all_;
  std::vector<Bin> bins_;
  std::size_t looks_ = 0;
};

}  // namespace

std::optional<ChunksPacking> pack_chunks(const ChunksTask& task) {
  ChunksPacking out{{}, std::vector<std::size_t>(task.buffers.size(), 0), std::vector<std::size_t>(task.devices, 0)};
  for (std::uint32_t device = 0; device < task.devices; ++device) {
    ChunkPacker packer(task, device);
    const std::optional<std::vector<Bin>> bins = packer.run();
    if (!bins) return std::nullopt;
    std::size_t end = 0;
    for (const Bin& bin : *bins) {
      std::size_t alignment = 1;
      for (const std::uint32_t i : bin.buffers) alignment = std::max<std::size_t>(alignment, task.buffers[i].alignment);
      const std::size_t begin = align_offset(end, alignment);
      for (std::size_t k = 0; k < bin.buffers.size(); ++k) out.offsets[bin.buffers[k]] = begin + bin.offsets[k];
      end = begin + ChunkPacker::used_of(bin, task.buffers);
      out.chunks.push_back({packer.name_of(bin), device, begin, end - begin, bin.capacity_bytes});
    }
    out.peaks[device] = end;
  }
  return out;
}

std::size_t chunks_capacity_bytes(const PlanOptions& options, std::uint32_t device) {
  std::size_t sum = 0;
  for (const Supply& supply : supplies_of(options, device)) sum = try_add(sum, supply.capacity_bytes).value_or(SIZE_MAX);
  return sum;
}

bool is_past_chunks(const std::vector<PackBuffer>& buffers, const PlanOptions& options) {
  for (const PackBuffer& buffer : buffers) {
    std::size_t most = 0;
    for (const Supply& supply : supplies_of(options, buffer.device))
      most = std::max(most, std::min(supply.capacity_bytes, options.max_chunk_bytes));
    if (buffer.bytes > most) return true;
  }
  return false;
}

}  // namespace berth::internal::plan
