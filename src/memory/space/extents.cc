// SPDX-License-Identifier: Apache-2.0
#include "memory/space/extents.h"

#include <algorithm>
#include <new>

#include "memory/space/piece_length.h"

namespace berth::internal::memory {

namespace {

bool are_alike(const PoolExtent* a, const PoolExtent* b) noexcept { return a->state == b->state && a->is_free() && a->stream == b->stream; }

std::vector<std::unique_ptr<SizeBins>> made_bins(Extents::Fit fit) {
  std::vector<std::unique_ptr<SizeBins>> bins;
  if (fit == Extents::Fit::best) bins.push_back(std::make_unique<SizeBins>());
  return bins;
}

}  // namespace

Extents::Extents(Nodes& nodes, std::size_t begin, std::size_t end, std::size_t page_bytes, Fit fit)
    : nodes_(nodes), cached_(1, ExtentTree(page_bytes)), bins_(made_bins(fit)), front_(nodes.take()), bare_(page_bytes) {
  front_->begin = begin;
  front_->bytes = end - begin;
  bare_.insert(front_);
}

Extents::~Extents() {
  while (front_ != nullptr) {
    PoolExtent* const next = front_->next;
    nodes_.give_back(front_);
    front_ = next;
  }
}

bool Extents::add_stream(std::uint32_t stream) noexcept {
  try {
    while (!bins_.empty() && bins_.size() <= stream) bins_.push_back(std::make_unique<SizeBins>());
    if (cached_.size() <= stream) cached_.resize(stream + 1, ExtentTree(bare_.page_bytes()));
    return true;
  } catch (const std::bad_alloc&) {
    return false;
  }
}

PoolExtent* Extents::find_cached(std::size_t bytes, std::uint32_t stream) const noexcept {
  const bool best = !bins_.empty();
  const auto find = [&](std::uint32_t of) { return best ? bins_[of]->best(bytes) : cached_[of].first(bytes); };
  PoolExtent* const any = find(0);
  PoolExtent* const own = stream == 0 ? nullptr : find(stream);
  if (any == nullptr || own == nullptr) return any == nullptr ? own : any;
  if (best && any->bytes != own->bytes) return any->bytes < own->bytes ? any : own;
  return any->begin < own->begin ? any : own;
}

ExtentTree& Extents::tree_of(const PoolExtent* extent) noexcept {
  return extent->state == ExtentState::bare ? bare_ : cached_[extent->stream];
}

// Of a free extent.
void Extents::insert(PoolExtent* extent) noexcept {
  if (bins_.empty() || extent->state != ExtentState::cached) return tree_of(extent).insert(extent);
  bins_[extent->stream]->insert(extent);
  extent->loose = true;
  extent->left = nullptr;
  extent->right = loose_;
  if (loose_ != nullptr) loose_->left = extent;
  loose_ = extent;
}

void Extents::erase(PoolExtent* extent) noexcept {
  if (!bins_.empty() && extent->state == ExtentState::cached) bins_[extent->stream]->erase(extent);
  extent->loose ? unlink_loose(extent) : tree_of(extent).erase(extent);
}

void Extents::resized(PoolExtent* extent) noexcept {
  if (!bins_.empty() && extent->state == ExtentState::cached) bins_[extent->stream]->resized(extent);
  if (!extent->loose) tree_of(extent).resized(extent);
}

void Extents::enter_tree(PoolExtent* loose) const noexcept {
  unlink_loose(loose);
  cached_[loose->stream].insert(loose);
}

void Extents::unlink_loose(PoolExtent* extent) const noexcept {
  (extent->left != nullptr ? extent->left->right : loose_) = extent->right;
  if (extent->right != nullptr) extent->right->left = extent->left;
  extent->left = extent->right = nullptr;
  extent->loose = false;
}

PoolExtent* Extents::insert_after(PoolExtent* extent, std::size_t begin, std::size_t bytes) noexcept {
  PoolExtent* const made = nodes_.take();
  made->begin = begin;
  made->bytes = bytes;
  made->previous = extent;
  made->next = extent->next;
  if (made->next != nullptr) made->next->previous = made;
  extent->next = made;
  return made;
}

PoolExtent* Extents::split(PoolExtent* extent, std::size_t bytes) noexcept {
  PoolExtent* const rest = insert_after(extent, extent->begin + bytes, extent->bytes - bytes);
  rest->state = extent->state;
  rest->has_memory = extent->has_memory;
  rest->stream = extent->stream;
  rest->point = extent->point;
  extent->bytes = bytes;
  return rest;
}

PoolExtent* Extents::cut(PoolExtent* from, std::size_t begin, std::size_t bytes, ExtentState state) noexcept {
  const std::size_t front_bytes = begin - from->begin;
  const std::size_t back_bytes = from->end() - begin - bytes;
  const bool had_memory = from->state == ExtentState::cached;
  PoolExtent* piece = from;
  if (front_bytes > 0) {  // `from` stays in the tree as the front part
    piece = insert_after(from, begin, bytes);
    piece->stream = from->stream;
    piece->point = from->point;
    const ExtentState kept = from->state;
    from->bytes = front_bytes;
    resized(from);
    if (back_bytes > 0) {
      PoolExtent* const back = insert_after(piece, begin + bytes, back_bytes);
      back->state = kept;
      back->stream = from->stream;
      back->point = from->point;
      insert(back);
    }
  } else if (back_bytes > 0) {
    // The node in the tree becomes the back part, where its position in the order stays valid; a new node
    // becomes the front.
    piece = nodes_.take();
    piece->begin = begin;
    piece->bytes = bytes;
    piece->stream = from->stream;
    piece->point = from->point;
    piece->previous = from->previous;
    piece->next = from;
    (from->previous == nullptr ? front_ : from->previous->next) = piece;
    from->previous = piece;
    from->begin = begin + bytes;
    from->bytes = back_bytes;
    resized(from);
  } else {
    erase(from);
  }
  piece->state = state;
  piece->has_memory = had_memory;
  return piece;
}

void Extents::join_next(PoolExtent* extent) noexcept {
  PoolExtent* const gone = extent->next;
  extent->bytes += gone->bytes;
  extent->point = std::max(extent->point, gone->point);
  extent->next = gone->next;
  if (extent->next != nullptr) extent->next->previous = extent;
  gone->bytes = 0;  // for readers that still have its number
  nodes_.give_back(gone);
}

// What is taken over may be alike with what lies behind it.
void Extents::take_over_clean(PoolExtent* freed) noexcept {
  for (PoolExtent* const near : {freed->previous, freed->next}) {
    if (near == nullptr || near->state != ExtentState::cached || near->stream != 0) continue;
    if (near->bytes > std::max(freed->bytes, sole_stream_ ? kSharedPiece : 0)) continue;
    erase(near);
    near->stream = freed->stream;
    near->point = freed->point;
    insert(near);
  }
}

// Inserts it where it is free now, in one with its neighbours that are alike.
PoolExtent* Extents::join_alike(PoolExtent* extent) noexcept {
  extent->cookie = 0;
  extent->slab = extent->keeper = 0;
  extent->requested = 0;
  while (extent->next != nullptr && are_alike(extent, extent->next)) {
    erase(extent->next);
    join_next(extent);
  }
  PoolExtent* before = extent->previous;
  if (before == nullptr || !are_alike(before, extent)) {
    insert(extent);
    return extent;
  }
  join_next(before);
  for (; before->previous != nullptr && are_alike(before->previous, before); before = before->previous) {
    erase(before);
    join_next(before->previous);
  }
  resized(before);
  return before;
}

PoolExtent* Extents::free_cached(PoolExtent* extent, std::uint32_t stream, std::uint64_t point) noexcept {
  extent->state = ExtentState::cached;
  extent->stream = stream;
  extent->point = stream == 0 ? 0 : point;
  if (stream != 0 && !bins_.empty()) take_over_clean(extent);
  return join_alike(extent);
}

PoolExtent* Extents::free_bare(PoolExtent* extent) noexcept {
  extent->state = ExtentState::bare;
  extent->stream = 0;
  extent->point = 0;
  return join_alike(extent);
}

bool Extents::pass_on(std::uint32_t from, std::uint64_t point, std::uint32_t to, std::uint64_t as) noexcept {
  bool any = false;
  PoolExtent* e = tree(from).first(1);
  while (e != nullptr) {
    PoolExtent* const following = cached_[from].next(e, 1);
    if (e->point <= point) {
      erase(e);
      free_cached(e, to, as);
      any = true;
    }
    e = following;
  }
  return any;
}

std::string Extents::audit() const {
  (void)tree(0);  // all that is loose
  std::size_t in_trees = 0;
  const auto ascends = [&](const ExtentTree& tree) {
    std::size_t end = 0;
    for (const PoolExtent* e = tree.first(1); e != nullptr; e = tree.next(e, 1)) {
      if (e->begin < end) return false;
      end = e->end();
      ++in_trees;
    }
    return true;
  };
  if (!ascends(bare_) || !std::ranges::all_of(cached_, ascends)) return "extents: a tree is not in the order of addresses";
  std::size_t in_list = 0;
  const PoolExtent* before = nullptr;
  for (const PoolExtent* e = front_; e != nullptr; before = e, e = e->next) {
    if (e->previous != before) return "extents: a link back is wrong";
    if (e->bytes == 0) return "extents: an extent is empty";
    if (before != nullptr && before->end() != e->begin) return "extents: there is a gap or an overlap";
    if (before != nullptr && are_alike(before, e)) return "extents: two neighbours that are alike are not joined";
    if (!e->is_free()) continue;
    ++in_list;
    const ExtentTree& tree = e->state == ExtentState::bare ? bare_ : cached_[e->stream];
    const PoolExtent* top = e;
    while (top->parent != nullptr) {
      if (top->parent->widest < e->bytes) return "extents: a tree does not know of its longest extent";
      top = top->parent;
    }
    if (!bins_.empty() && e->state == ExtentState::cached && bins_[e->stream]->best(e->bytes) == nullptr)
      return "extents: a cached extent is in no bin";
    if (tree.widest() < e->bytes || tree.widest() != top->widest) return "extents: a free extent is not in its tree";
  }
  return in_list == in_trees ? "" : "extents: a tree has lost an extent";
}

}  // namespace berth::internal::memory
