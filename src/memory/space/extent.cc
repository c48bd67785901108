// SPDX-License-Identifier: Apache-2.0
#include "memory/space/extent.h"

#include <algorithm>

namespace berth::internal::memory {

namespace {

std::uint32_t priority(const PoolExtent* e) noexcept { return (e->index + 1) * 0x9e3779b1U; }
std::size_t widest_of(const PoolExtent* e) noexcept { return e == nullptr ? 0 : e->widest; }
std::size_t widest_here(const PoolExtent* e) noexcept { return std::max({e->bytes, widest_of(e->left), widest_of(e->right)}); }

}  // namespace

void ExtentTree::refresh_up(PoolExtent* from) noexcept {
  for (PoolExtent* e = from; e != nullptr; e = e->parent) {
    const std::size_t now = widest_here(e);
    if (e != from && now == e->widest) return;  // nothing above can change either
    e->widest = now;
  }
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
  for (PoolExtent* e = before; e != extent; e = e->parent) e->widest = widest_here(e);
  for (PoolExtent* e = after; e != extent; e = e->parent) e->widest = widest_here(e);
  refresh_up(extent);
}

void ExtentTree::erase(PoolExtent* extent) noexcept {
  // Its two subtrees are merged into one, the higher priority on top.
  PoolExtent* left = extent->left;
  PoolExtent* right = extent->right;
  PoolExtent* parent = extent->parent;
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
  for (PoolExtent* e = parent; e != nullptr; e = e->parent) e->widest = widest_here(e);
  extent->parent = extent->left = extent->right = nullptr;
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

PoolExtent* ExtentTree::next(const PoolExtent* extent, std::size_t bytes) const noexcept {
  ExtentTree below;
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
  ExtentTree below;
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
