// SPDX-License-Identifier: Apache-2.0
#include "memory/space/extent.h"

#include <algorithm>
#include <array>

#include "berth/base/checked.h"

namespace berth::internal::memory {

namespace {

std::uint32_t priority(const PoolExtent* e) noexcept { return (e->index + 1) * 0x9e3779b1U; }
std::size_t widest_of(const PoolExtent* e) noexcept { return e == nullptr ? 0 : e->widest; }
bool any_page_of(const PoolExtent* e) noexcept { return e != nullptr && e->any_page; }

// From those just below it. True if that changed anything.
[[gnu::always_inline]] inline bool refresh(PoolExtent* extent) noexcept {
  const std::size_t widest = std::max({extent->bytes, widest_of(extent->left), widest_of(extent->right)});
  const bool any_page = extent->has_page || any_page_of(extent->left) || any_page_of(extent->right);
  const bool changed = widest != extent->widest || any_page != extent->any_page;
  extent->widest = widest;
  extent->any_page = any_page;
  return changed;
}

}  // namespace

bool ExtentTree::has_page(const PoolExtent* extent) const noexcept {
  return extent->bytes >= page_ && align_down(extent->begin + page_ - 1, page_) + page_ <= extent->end();
}

void ExtentTree::refresh_up(PoolExtent* from) const noexcept {
  from->has_page = has_page(from);
  refresh(from);
  for (PoolExtent* e = from->parent; e != nullptr && refresh(e); e = e->parent) {
  }  // until nothing above can change either
}

void ExtentTree::insert(PoolExtent* extent) noexcept {
  // Descends to where everything below has a lower priority; that subtree is then split in two around the new
  // node.
  PoolExtent* parent = nullptr;
  PoolExtent* below = root_;
  while (below != nullptr && priority(below) >= priority(extent)) {
    parent = below;
    below = extent->begin < below->begin ? below->left : below->right;
  }
  extent->parent = parent;
  if (parent == nullptr)
    root_ = extent;
  else
    (extent->begin < parent->begin ? parent->left : parent->right) = extent;
  extent->left = extent->right = nullptr;
  PoolExtent* before = extent;  // the last node of each side; the next of that side hangs below it
  PoolExtent* after = extent;
  while (below != nullptr) {
    if (below->begin < extent->begin) {
      (before == extent ? before->left : before->right) = below;
      below->parent = before;
      before = below;
      below = below->right;
    } else {
      (after == extent ? after->right : after->left) = below;
      below->parent = after;
      after = below;
      below = below->left;
    }
  }
  if (before != extent) before->right = nullptr;
  if (after != extent) after->left = nullptr;
  // All nodes on both paths have changed, so neither loop may stop early.
  for (PoolExtent* e = before; e != extent; e = e->parent) refresh(e);
  for (PoolExtent* e = after; e != extent; e = e->parent) refresh(e);
  refresh_up(extent);
}

void ExtentTree::erase(PoolExtent* extent) noexcept {
  // Its two subtrees are merged into one, the higher priority on top.
  PoolExtent* left = extent->left;
  PoolExtent* right = extent->right;
  PoolExtent* parent = extent->parent;
  PoolExtent* const above = parent;
  PoolExtent** hole = parent == nullptr ? &root_ : parent->left == extent ? &parent->left : &parent->right;
  while (left != nullptr && right != nullptr) {
    const bool take_left = priority(left) >= priority(right);
    PoolExtent* const top = take_left ? left : right;
    *hole = top;
    top->parent = parent;
    parent = top;
    hole = take_left ? &top->right : &top->left;
    (take_left ? left : right) = *hole;
  }
  PoolExtent* const rest = left != nullptr ? left : right;
  *hole = rest;
  if (rest != nullptr) rest->parent = parent;
  for (; parent != above; parent = parent->parent) refresh(parent);
  while (parent != nullptr && refresh(parent)) parent = parent->parent;  // until nothing above can change either
  extent->parent = extent->left = extent->right = nullptr;
}

// The best of the subtrees that were not entered yet, and of the extents whose subtrees were, comes next. What
// does not fit among the best is dropped: so many longer ones are known already.
std::size_t ExtentTree::longest(std::span<const PoolExtent*> into) const noexcept {
  struct Item {
    const PoolExtent* extent;
    bool alone;  // the extent itself, else all that is at or below it

    std::size_t bytes() const noexcept { return alone ? extent->bytes : extent->widest; }
  };
  constexpr std::size_t kMost = 64;
  std::array<Item, kMost + 3> open;  // longest first
  std::size_t count = 0;
  std::size_t found = 0;
  const auto add = [&](Item item) {
    if (item.extent == nullptr) return;
    std::size_t i = count;
    for (; i > 0 && open[i - 1].bytes() < item.bytes(); --i) open[i] = open[i - 1];
    open[i] = item;
    count = std::min(count + 1, kMost);
  };
  add({root_, false});
  const std::size_t wanted = std::min(into.size(), kMost);
  while (count > 0 && found < wanted) {
    const Item best = open[0];
    std::copy(open.begin() + 1, open.begin() + static_cast<std::ptrdiff_t>(count), open.begin());
    --count;
    if (best.alone) {
      into[found++] = best.extent;
      continue;
    }
    add({best.extent, true});
    add({best.extent->left, false});
    add({best.extent->right, false});
  }
  return found;
}

PoolExtent* ExtentTree::covering(std::size_t offset) const noexcept {
  PoolExtent* e = root_;
  while (e != nullptr && (offset < e->begin || offset >= e->end())) e = offset < e->begin ? e->left : e->right;
  return e;
}

PoolExtent* ExtentTree::first(std::size_t bytes) const noexcept {
  if (widest() < bytes) return nullptr;
  PoolExtent* e = root_;
  for (;;) {
    if (widest_of(e->left) >= bytes)
      e = e->left;
    else if (e->bytes >= bytes)
      return e;
    else
      e = e->right;
  }
}

PoolExtent* ExtentTree::last(std::size_t bytes) const noexcept {
  if (widest() < bytes) return nullptr;
  PoolExtent* e = root_;
  for (;;) {
    if (widest_of(e->right) >= bytes)
      e = e->right;
    else if (e->bytes >= bytes)
      return e;
    else
      e = e->left;
  }
}

PoolExtent* ExtentTree::last_below(std::size_t offset, std::size_t bytes) const noexcept {
  PoolExtent* below = nullptr;
  for (PoolExtent* e = root_; e != nullptr; e = e->begin < offset ? e->right : e->left) {
    if (e->begin < offset) below = e;
  }
  return below == nullptr || below->bytes >= bytes ? below : previous(below, bytes);
}

PoolExtent* ExtentTree::last_whole_below(std::size_t offset) const noexcept {
  // The last one on the way down whose left subtree, or which itself, has a whole page: all of that is below.
  PoolExtent* found = nullptr;
  for (PoolExtent* e = root_; any_page_of(e); e = e->begin < offset ? e->right : e->left) {
    if (e->begin < offset && (e->has_page || any_page_of(e->left))) found = e;
  }
  if (found == nullptr || found->has_page) return found;
  PoolExtent* e = found->left;
  while (any_page_of(e->right) || !e->has_page) e = any_page_of(e->right) ? e->right : e->left;
  return e;
}

PoolExtent* ExtentTree::next(const PoolExtent* extent, std::size_t bytes) const noexcept {
  ExtentTree below(page_);
  below.root_ = extent->right;
  if (PoolExtent* const found = below.first(bytes)) return found;
  for (const PoolExtent* e = extent; e->parent != nullptr; e = e->parent) {
    PoolExtent* const up = e->parent;
    if (up->left != e) continue;
    if (up->bytes >= bytes) return up;
    below.root_ = up->right;
    if (PoolExtent* const found = below.first(bytes)) return found;
  }
  return nullptr;
}

PoolExtent* ExtentTree::previous(const PoolExtent* extent, std::size_t bytes) const noexcept {
  ExtentTree below(page_);
  below.root_ = extent->left;
  if (PoolExtent* const found = below.last(bytes)) return found;
  for (const PoolExtent* e = extent; e->parent != nullptr; e = e->parent) {
    PoolExtent* const up = e->parent;
    if (up->right != e) continue;
    if (up->bytes >= bytes) return up;
    below.root_ = up->left;
    if (PoolExtent* const found = below.last(bytes)) return found;
  }
  return nullptr;
}

}  // namespace berth::internal::memory
