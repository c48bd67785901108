// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "base/text.h"
#include "berth/device/backend.h"
#include "memory/pool/pool.h"
#include "memory/process_budget.h"

// Private pools, and the pool whose pages they share. docs/decisions/0012-private-pools.md says how.
namespace berth::internal::memory {

Pool::Pool(std::shared_ptr<Pool> parent, const PrivatePoolOptions& options)
    : Pool(parent->backend(),
           {.options = {.limit_bytes = options.limit_bytes, .decay = options.decay, .target_ratio = parent->target_ratio_},
            .page_bytes = parent->page_bytes_,
            .below = &parent->budget_,
            .parent = parent,
            .fixed_pages = options.fixed_pages}) {}

void Pool::add_child(const std::shared_ptr<Pool>& child) {
  const os::Lock lock(mutex_);
  std::erase_if(children_, [](const std::weak_ptr<Pool>& one) { return one.expired(); });
  children_.push_back(child);
}

std::size_t Pool::lend(std::span<const std::size_t> wanted, std::span<Loan> loans) noexcept {
  const os::Lock lock(mutex_);
  if (holds_.any() || is_inherited() || base() == nullptr) return 0;
  return space_.lend(wanted, loans);
}

void Pool::settle(std::span<const Loan> loans) noexcept {
  const os::Lock lock(mutex_);
  space_.settle(loans);
}

bool Pool::adopt(std::byte* pages, std::size_t bytes) noexcept {
  const os::Lock lock(mutex_);
  if (holds_.any() || is_inherited() || base() == nullptr) return false;
  return space_.adopt(pages, bytes);
}

Pool::Child Pool::child_at(std::size_t index) const noexcept {
  const os::Lock lock(mutex_);
  return index < children_.size() ? Child{true, children_[index].lock()} : Child{};
}

void Pool::give_up_cache() noexcept {
  const os::Lock lock(mutex_);
  if (holds_.any() || is_inherited() || base() == nullptr) return;
  flush_caches();
  settle_streams(false);
  space_.trim(0);
}

bool Pool::press_relatives() noexcept {
  if (parent_ == nullptr && children_.empty()) return false;
  const os::Unlock unlocked(mutex_);
  Pool& root = parent_ == nullptr ? *this : *parent_;
  if (&root != this) root.give_up_cache();
  std::size_t index = 0;
  for (Child child = root.child_at(index); child.exists; child = root.child_at(++index)) {
    if (child.pool != nullptr && child.pool.get() != this && !child.pool->fixed_pages_) child.pool->give_up_cache();
  }
  return true;
}

namespace {

[[noreturn]] void throw_refused(std::string why, std::string help) {
  throw ArgumentError(ErrorCode::invalid_argument, {"making a private pool", std::move(why), std::move(help)});
}

}  // namespace

}  // namespace berth::internal::memory

namespace berth {

using namespace internal;
using namespace internal::memory;

std::shared_ptr<Allocator> private_pool(const std::shared_ptr<Allocator>& parent, const PrivatePoolOptions& options) {
  auto shared = std::dynamic_pointer_cast<Pool>(parent);
  if (shared == nullptr) {
    throw_refused(parent == nullptr ? std::string("there is no pool to share pages with")
                                    : text::join(parent->name(), " is not a pool, and has no pages to share"),
                  "pass what pool() returned, and put adaptors around the private one");
  }
  if (shared->is_private()) throw_refused("the other pool is private itself", "pass the pool whose pages that one shares");
  if (options.decay.count() < 0) throw_refused("memory cannot have been unused for less than no time", "leave decay out");
  if (options.fixed_pages && options.decay != PoolOptions::kNever)
    throw_refused("pages that stay where they are do not decay", "leave decay out, or let the pages go with fixed_pages = false");
  auto made = std::make_shared<Pool>(shared, options);
  shared->add_child(made);
  enlist(made, options.fixed_pages ? Trimmed::never : Trimmed::at_need);
  return made;
}

}  // namespace berth
