// SPDX-License-Identifier: Apache-2.0
#include "device/piece_memory.h"

#include <algorithm>
#include <iterator>
#include <new>

#include "berth/base/checked.h"
#include "device/address_number.h"

namespace berth::internal::device {

namespace {

constexpr Failure kNotUnits{ErrorCode::invalid_argument, 0, "the range is not whole units of one reserved range"};
constexpr Failure kWrongState{ErrorCode::invalid_argument, 0, "the range is committed already, or is not committed and must be"};
constexpr Failure kNoHeap{ErrorCode::out_of_memory, 0, "no heap for the table of pages"};
constexpr Failure kTooLong{ErrorCode::out_of_memory, 0, "the range is larger than the address space"};

}  // namespace

PieceMemory::~PieceMemory() = default;

Status PieceMemory::open_pieces(std::uintptr_t, std::size_t) noexcept { return {}; }
Status PieceMemory::map_pieces_again(std::span<const Piece>, std::uintptr_t, std::size_t) noexcept {
  return Failure{ErrorCode::unsupported, 0, "this device cannot move pages"};
}
Status PieceMemory::unmap_echo(std::uintptr_t, std::size_t) noexcept { return {}; }

// ---- ranges

Result<void*> PieceMemory::reserve(std::size_t bytes, std::size_t alignment) noexcept {
  const auto length = try_align_up(bytes, unit_);
  if (!length || *length == 0) return kTooLong;
  const std::size_t aligned_to = std::max(alignment, unit_);
  Range range;
  range.bytes = *length;
  range.units.reset(static_cast<Unit*>(std::calloc(*length / unit_, sizeof(Unit))));
  if (range.units == nullptr) return kNoHeap;
  const Result<Addresses> addresses = reserve_addresses(*length, aligned_to);
  if (!addresses) return addresses.failure();
  range.addresses = *addresses;
  const std::uintptr_t base = *try_align_up(addresses->first, aligned_to);
  try {
    const os::Lock lock(mutex_);
    ranges_.emplace(base, std::move(range));
    return reinterpret_cast<void*>(base);
  } catch (const std::bad_alloc&) {
  }
  give_addresses_back(*addresses);
  return kNoHeap;
}

Status PieceMemory::release(void* address, std::size_t bytes) noexcept {
  const auto length = try_align_up(bytes, unit_);
  std::map<std::uintptr_t, Range>::node_type node;
  std::vector<Piece> pieces;
  try {
    const os::Lock lock(mutex_);
    const auto found = ranges_.find(number(address));
    if (found == ranges_.end() || !length || found->second.bytes != *length) return kNotUnits;
    const std::span<const Unit> units(found->second.units.get(), *length / unit_);
    std::size_t most = 0;
    for (std::size_t i = 0; i < units.size(); ++i)
      most += units[i].piece() != 0 && (i == 0 || units[i].piece() != units[i - 1].piece()) ? 1 : 0;
    pieces.reserve(most);
    for (const Unit unit : units) {
      if (unit.piece() == 0 || pieces_[unit.piece()].bytes == 0) continue;  // none, or already seen
      pieces.push_back(pieces_[unit.piece()]);
      pieces_[unit.piece()] = {};
      free_numbers_.push_back(unit.piece());
    }
    node = ranges_.extract(found);
  } catch (const std::bad_alloc&) {
    return kNoHeap;
  }
  const Status silent = end_echoes(number(address), *length);
  const Status dropped = drop_all(pieces);
  if (dropped && silent) give_addresses_back(node.mapped().addresses);
  return dropped ? silent : dropped;
}

Status PieceMemory::drop_all(std::span<const Piece> pieces) noexcept {
  Status done;
  for (const Piece& piece : pieces) {
    const Status dropped = drop_piece(piece);
    if (done) done = dropped;  // the first failure is the one to report
  }
  return done;
}

PieceMemory::Range* PieceMemory::find_range(std::uintptr_t address, std::size_t bytes, std::uintptr_t& base) const noexcept {
  auto after = ranges_.upper_bound(address);
  if (after == ranges_.begin()) return nullptr;
  auto& [first, range] = *--after;
  if (!fits(address - first, bytes, range.bytes)) return nullptr;
  base = first;
  return &range;
}

Result<std::span<PieceMemory::Unit>> PieceMemory::units_of(std::uintptr_t address, std::size_t bytes) const noexcept {
  std::uintptr_t base = 0;
  const Range* const range = find_range(address, bytes, base);
  if (range == nullptr) return kNotUnits;
  const std::size_t offset = address - base;
  if (bytes == 0 || offset % unit_ != 0 || bytes % unit_ != 0) return kNotUnits;
  return std::span(range->units.get() + offset / unit_, bytes / unit_);
}

PieceMemory::Found PieceMemory::find(const void* address, std::size_t bytes) const noexcept {
  const os::Lock lock(mutex_);
  std::uintptr_t base = 0;
  const Range* const range = find_range(number(address), std::max<std::size_t>(bytes, 1), base);
  if (range == nullptr)  // it may begin in a range and extend beyond it
    return find_range(number(address), 1, base) == nullptr ? Found::elsewhere : Found::not_committed;
  if (bytes == 0) return Found::committed;
  const std::size_t first = (number(address) - base) / unit_;
  const std::size_t last = (number(address) - base + bytes - 1) / unit_;
  for (std::size_t i = first; i <= last; ++i) {
    if (!range->units[i].is_committed() && !has_echo(base + i * unit_, unit_)) return Found::not_committed;
  }
  return Found::committed;
}

Result<std::vector<PieceMemory::Piece>> PieceMemory::pieces_under(const void* address, std::size_t bytes) const {
  std::vector<Piece> found;
  const os::Lock lock(mutex_);
  std::uintptr_t base = 0;
  const Range* const range = find_range(number(address), bytes, base);
  if (range == nullptr || bytes == 0) return kNotUnits;
  const std::uintptr_t end = number(address) + bytes;
  for (std::uintptr_t at = number(address); at < end; at = found.back().address + found.back().bytes) {
    const Unit unit = range->units[(at - base) / unit_];
    if (!unit.is_committed()) return kWrongState;
    found.push_back(pieces_[unit.piece()]);
  }
  return found;
}

std::optional<PieceMemory::Piece> PieceMemory::find_piece(std::uint64_t serial) const noexcept {
  const os::Lock lock(mutex_);
  const auto found = std::ranges::find_if(pieces_, [&](const Piece& piece) { return piece.bytes != 0 && piece.serial == serial; });
  return found == pieces_.end() ? std::nullopt : std::optional(*found);
}

// ---- the table

// Reserves capacity for entering and later removing pieces, so that neither allocates.
void PieceMemory::make_room(std::size_t pieces) {
  const std::size_t wanted = pieces_.size() + promised_ + pieces;
  if (wanted > pieces_.capacity()) pieces_.reserve(2 * wanted);
  free_numbers_.reserve(pieces_.capacity());
  promised_ += pieces;
}

// REQUIRES: make_room reserved capacity in both lists.
void PieceMemory::enter(const Piece& piece) noexcept {
  std::uint32_t at = 0;
  if (free_numbers_.empty()) {
    at = static_cast<std::uint32_t>(pieces_.size());
    pieces_.push_back(piece);
  } else {
    at = free_numbers_.back();
    free_numbers_.pop_back();
    pieces_[at] = piece;
  }
  pieces_[at].serial = ++serials_;
  std::ranges::fill(*units_of(piece.address, piece.bytes), Unit(at, true));
}

// Marks units that are in pieces. A piece without committed units leaves the table. REQUIRES: `gone` has
// capacity for all.
void PieceMemory::mark(std::span<Unit> units, bool committed, std::vector<Piece>& gone) noexcept {
  for (Unit& unit : units) {
    if (unit.is_committed() == committed || unit.piece() == 0) continue;
    const std::uint32_t at = unit.piece();
    unit = Unit(at, committed);
    Piece& piece = pieces_[at];
    piece.used = committed ? piece.used + unit_ : piece.used - unit_;
    if (piece.used != 0) continue;
    gone.push_back(piece);
    piece = {};
    free_numbers_.push_back(at);
    std::ranges::fill(*units_of(gone.back().address, gone.back().bytes), Unit());
  }
}

// ---- committing

// Claims the units that still have memory, and lists the gaps that have none.
Status PieceMemory::begin_commit(std::uintptr_t address, std::size_t bytes, Commit& commit) noexcept {
  try {
    const os::Lock lock(mutex_);
    const Result<std::span<Unit>> units = units_of(address, bytes);
    if (!units) return units.failure();
    if (std::ranges::any_of(*units, [](Unit unit) { return unit.is_committed(); }) || has_echo(address, bytes)) return kWrongState;
    for (std::size_t i = 0; i < units->size(); ++i) {
      if ((*units)[i].piece() != 0) continue;
      if (i == 0 || (*units)[i - 1].piece() != 0) commit.gaps.push_back({address + i * unit_, 0});
      commit.gaps.back().bytes += unit_;
    }
    for (const Gap& gap : commit.gaps) commit.promised += (gap.bytes - 1) / most_piece_ + 1;
    commit.made.reserve(commit.promised);
    make_room(commit.promised);
    std::vector<Piece> none;
    mark(*units, true, none);
    return {};
  } catch (const std::bad_alloc&) {
    return kNoHeap;
  }
}

void PieceMemory::undo_commit(std::uintptr_t address, std::size_t bytes, const Commit& commit) noexcept {
  const os::Lock lock(mutex_);
  promised_ -= commit.promised;
  // Units that had memory are in pieces that other commits use, or did until now; those pieces stay.
  const Result<std::span<Unit>> units = units_of(address, bytes);
  if (!units) return;
  for (Unit& unit : *units) {
    if (!unit.is_committed()) continue;
    unit = Unit(unit.piece(), false);
    pieces_[unit.piece()].used -= unit_;
  }
}

Status PieceMemory::fill_gap(const Gap& gap, std::vector<Piece>& made) noexcept {
  for (std::size_t done = 0; done < gap.bytes;) {
    const std::size_t bytes = std::min(gap.bytes - done, most_piece_);
    Piece piece{.address = gap.address + done, .bytes = bytes, .used = bytes};
    if (const Status status = make_piece(piece); !status) return status;
    made.push_back(piece);  // capacity is reserved
    done += bytes;
  }
  return open_pieces(gap.address, gap.bytes);
}

Status PieceMemory::make_pieces(Commit& commit) noexcept {
  Status done;
  for (std::size_t i = 0; done && i < commit.gaps.size(); ++i) done = fill_gap(commit.gaps[i], commit.made);
  if (!done) (void)drop_all(commit.made).ok();  // the first failure is the one to report
  return done;
}

Status PieceMemory::commit(void* address, std::size_t bytes) noexcept {
  Commit commit;
  if (const Status begun = begin_commit(number(address), bytes, commit); !begun) return begun;
  if (const Status made = make_pieces(commit); !made) {
    undo_commit(number(address), bytes, commit);
    return made;
  }
  const os::Lock lock(mutex_);
  for (const Piece& piece : commit.made) enter(piece);
  promised_ -= commit.promised;
  return {};
}

Status PieceMemory::decommit(void* address, std::size_t bytes) noexcept {
  std::vector<Piece> gone;
  try {
    const os::Lock lock(mutex_);
    const Result<std::span<Unit>> units = units_of(number(address), bytes);
    if (!units) return units.failure();
    if (!std::ranges::all_of(*units, [](Unit unit) { return unit.is_committed(); })) return kWrongState;
    std::size_t most = 1;
    for (std::size_t i = 1; i < units->size(); ++i) most += (*units)[i].piece() != (*units)[i - 1].piece() ? 1 : 0;
    gone.reserve(most);
    mark(*units, false, gone);
  } catch (const std::bad_alloc&) {
    return kNoHeap;
  }
  return drop_all(gone);
}

// ---- moving

// Validates a move, of whole pieces to an empty target, and lists the pieces.
Status PieceMemory::look_at_move(std::uintptr_t from, std::uintptr_t to, std::size_t bytes, std::vector<Piece>& pieces) noexcept {
  try {
    const os::Lock lock(mutex_);
    const Result<std::span<Unit>> source = units_of(from, bytes);
    const Result<std::span<Unit>> target = units_of(to, bytes);
    if (!source || !target) return kNotUnits;
    if (!std::ranges::all_of(*source, [](Unit unit) { return unit.is_committed(); })) return kWrongState;
    if (std::ranges::any_of(*target, [](Unit unit) { return unit.is_committed(); }) || has_echo(to, bytes)) return kWrongState;
    if (std::ranges::any_of(*target, [](Unit unit) { return unit.piece() != 0; }))
      return Failure{ErrorCode::busy, 0, "the target has memory of a piece that is decommitted only in part"};
    for (std::size_t at = 0; at < bytes;) {
      const Piece& piece = pieces_[(*source)[at / unit_].piece()];
      if (piece.address != from + at || piece.bytes > bytes - at)
        return Failure{ErrorCode::unsupported, 0, "memory moves in the pieces it was committed in, and this is part of one"};
      pieces.push_back(piece);
      at += piece.bytes;
    }
    return {};
  } catch (const std::bad_alloc&) {
    return kNoHeap;
  }
}

// Maps pieces at their new address, and leaves echoes.
Status PieceMemory::begin_move(void* from, void* to, std::size_t bytes) noexcept {
  std::vector<Piece> pieces;
  if (const Status able = look_at_move(number(from), number(to), bytes, pieces); !able) return able;
  std::map<std::uintptr_t, std::size_t> echoes;
  try {
    for (const Piece& piece : pieces) echoes.emplace(piece.address, piece.bytes);
  } catch (const std::bad_alloc&) {
    return kNoHeap;
  }
  const std::uintptr_t distance = number(to) - number(from);  // modulo 2^64 when it is negative
  if (const Status mapped = map_pieces_again(pieces, distance, bytes); !mapped) return mapped;
  const os::Lock lock(mutex_);
  echoes_.merge(echoes);
  const std::span<Unit> source = *units_of(number(from), bytes);
  const std::span<Unit> target = *units_of(number(to), bytes);
  std::ranges::copy(source, target.begin());
  std::ranges::fill(source, Unit());
  for (std::size_t at = 0; at < bytes;) {
    Piece& piece = pieces_[target[at / unit_].piece()];
    piece.address += distance;
    at += piece.bytes;
  }
  return {};
}

Status PieceMemory::end_move(void* from, std::size_t bytes) noexcept {
  {
    const os::Lock lock(mutex_);
    if (!has_echo(number(from), bytes)) return Failure{ErrorCode::invalid_argument, 0, "no move was begun there"};
  }
  return end_echoes(number(from), bytes);
}

Status PieceMemory::move(void* from, void* to, std::size_t bytes) noexcept {
  const Status begun = begin_move(from, to, bytes);
  // An address that the device fails to unmap does no harm: nothing is committed there.
  if (begun) (void)end_echoes(number(from), bytes).ok();
  return begun;
}

// ---- echoes

bool PieceMemory::has_echo(std::uintptr_t address, std::size_t bytes) const noexcept {
  const auto after = echoes_.lower_bound(address + bytes);
  if (after == echoes_.begin()) return false;
  const auto& [first, length] = *std::prev(after);
  return first + length > address;
}

// Ends the echoes in a range; one that the device fails to unmap stays in the table.
Status PieceMemory::end_echoes(std::uintptr_t address, std::size_t bytes) noexcept {
  Status done;
  for (std::uintptr_t at = address;;) {
    Echo echo;
    {
      const os::Lock lock(mutex_);
      const auto found = echoes_.lower_bound(at);
      if (found == echoes_.end() || found->first >= address + bytes) return done;
      echo = {found->first, found->second};
    }
    at = echo.address + echo.bytes;
    const Status unmapped = unmap_echo(echo.address, echo.bytes);
    if (done) done = unmapped;  // the first failure is the one to report
    const os::Lock lock(mutex_);
    if (unmapped) echoes_.erase(echo.address);
  }
}

}  // namespace berth::internal::device
