// SPDX-License-Identifier: Apache-2.0
#include "memory/pool/pool_core.h"

#include <algorithm>
#include <utility>

#include "berth/base/units.h"

namespace berth::internal::memory {

namespace {

constexpr Failure kOverLimit{ErrorCode::out_of_memory, 0, "the pool's limit", Refusal::strategy_limit};
constexpr Failure kOverPrivateLimit{ErrorCode::out_of_memory, 0, "the private pool's limit", Refusal::private_limit};

// As much as can be committed again in a hundredth of the period.
std::size_t most_decay(const Backend& backend, std::chrono::milliseconds period) noexcept {
  if (period.count() == 0 || period == PoolOptions::kNever) return SIZE_MAX;
  const auto us_per_mib = static_cast<double>(std::max<std::size_t>(backend.properties().commit_us_per_mib, 1));
  const double mib = static_cast<double>(period.count()) * 10 / us_per_mib;
  return static_cast<std::size_t>(std::clamp(mib, 2.0, 0x1p40) * 1_MiB);
}

// The bound at which pages move. On devices that commit in pieces it is a little lower than the target, because
// only whole pieces move there. Found empirically, on the recorded programs: 0.8 gave resnet_train 1.0086, and
// 1 gave 1.0101.
double page_bound_of(const Backend& backend, double target_ratio) noexcept {
  return backend.properties().piece_bytes == 0 ? target_ratio : 1 + (target_ratio - 1) * 0.8;
}

// When memory is moved from everywhere: beyond what the recorded programs need (1.02), and well before a tenth
// of the peak.
constexpr double kScatteredAbove = 0.04;

// What may be committed beyond the target before pieces are cut for it: as much again, so that a program that stays
// near its target pays for no cut.
constexpr double kExcessTimes = 2;

PageRules rules_of(const BackendProperties& device, const PoolCore::Setup& setup, double page_bound) noexcept {
  return {.page_bytes = setup.page_bytes,
          .unit_bytes = device.unit_bytes,
          .piece_bytes = device.piece_bytes,
          .host_access = device.abilities.host_access,
          .move_in_use = device.abilities.move_in_use,
          .fixed_pages = setup.fixed_pages,
          .page_bound = page_bound,
          .edge_bound = setup.options.target_ratio + 0.004,
          .scattered_bound = setup.options.target_ratio + kScatteredAbove,
          .excess_bound = 1 + kExcessTimes * (setup.options.target_ratio - 1)};
}

}  // namespace

PoolCore::PoolCore(Backend& pool_backend, std::uint64_t pool_id, const Setup& setup)
    : backend(pool_backend),
      id(pool_id),
      classes(backend.properties().alignment),
      small_limit(classes.count() == 0 ? 0 : setup.options.small_bytes),
      alignment(backend.properties().alignment),
      page_bytes(setup.page_bytes),
      decay_period(setup.options.decay),
      target_ratio(setup.options.target_ratio),
      region_waits(setup.options.region_waits),
      wait_for_streams(setup.options.wait_for_streams),
      background_trim(setup.options.background_trim),
      fixed_pages(setup.fixed_pages),
      budget(setup.lender != nullptr ? kOverPrivateLimit : kOverLimit, setup.options.limit_bytes, setup.below),
      decay(setup.options.decay, most_decay(backend, setup.options.decay)),
      space(backend, mutex, rules_of(backend.properties(), setup, page_bound_of(backend, setup.options.target_ratio)), budget, decay,
            setup.lender),
      slabs(classes, entries, blocks) {}

Status PoolCore::open() noexcept {
  if (is_open()) return {};
  if (const Status opened = space.open(); !opened) return opened;
  // space.open released the mutex: another thread may have opened the tables meanwhile.
  if (is_open()) return {};
  if (const Status done = entries.open(BlockTable::bytes_for(space.most_bytes())); !done) return done;
  base_.store(reinterpret_cast<std::uintptr_t>(space.base()));
  return {};
}

// The first look-up makes the map. Without heap for it, all extents are looked at.
BlockRef PoolCore::find_at(std::size_t offset) noexcept {
  if (blocks.is_kept()) return blocks.find(offset, base());
  BlockMap made;
  made.keep();
  BlockRef found;
  for (const Space::Part part : {Space::Part::slabs, Space::Part::large}) {
    for (const PoolExtent* e = space.part(part).front(); e != nullptr; e = e->next) {
      const BlockRef first = e->slab != 0 ? slabs.look(e->slab).first : BlockRef(e->cookie);
      if (!first) continue;
      if (offset >= e->begin && offset < e->end()) found = BlockMap::find(first, base() + offset);
      const std::size_t bytes = first.is_large() ? 1 : e->bytes;
      if (made.is_kept() && !made.reserve(e->begin, bytes)) made = {};
      made.set(e->begin, bytes, first);
    }
  }
  blocks = std::move(made);
  return found;
}

BlockRef PoolCore::find(Block& block) noexcept {
  if (block.serial != 0) return entries.range().find(block.cookie);
  const os::Lock lock(mutex);
  const std::size_t offset = offset_of(block.data);
  const BlockRef found = is_open() && offset < space.size_bytes() ? find_at(offset) : BlockRef();
  if (found) block.serial = found->serial();
  return found;
}

}  // namespace berth::internal::memory
