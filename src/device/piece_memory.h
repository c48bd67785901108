// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "berth/base/result.h"
#include "os/lock/mutex.h"

// Address ranges of a device that commits in pieces: physical memory of a GPU comes in handles that are mapped
// and unmapped whole, and page-locked host memory is registered and unregistered whole. The cost is per piece,
// and only a piece that is entirely unused can be freed. So a commit makes few long pieces, of at most
// most_piece bytes:
//
//     units       [ 0 | 1 | 2 | 3 | 4 | 5 | 6 | 7 ]
//     pieces      [     A     |   B   |   |   C   ]     the borders follow from the commits, so callers know them
//
// A unit that is decommitted alone keeps its memory, unused, until the rest of its piece is decommitted;
// committing it again reuses that memory. Only whole pieces move. (Decision 0016.) A piece that moves while
// pending work uses it is mapped at two addresses for a while; the old one is its *echo*, for that work alone.
//
// This class keeps the table; derived classes make, drop and move pieces. Their functions are called without a
// lock, for units that no concurrent call works on. Any thread may call any function, as with a Backend.
namespace berth::internal::device {

class PieceMemory {
 public:
  // REQUIRES: most_piece is a multiple of unit_bytes.
  PieceMemory(std::size_t unit_bytes, std::size_t most_piece) : unit_(unit_bytes), most_piece_(most_piece) {}
  virtual ~PieceMemory();
  PieceMemory(const PieceMemory&) = delete;
  PieceMemory& operator=(const PieceMemory&) = delete;

  // As in Backend.
  Result<void*> reserve(std::size_t bytes, std::size_t alignment) noexcept;
  Status release(void* address, std::size_t bytes) noexcept;
  Status commit(void* address, std::size_t bytes) noexcept;
  Status decommit(void* address, std::size_t bytes) noexcept;
  Status move(void* from, void* to, std::size_t bytes) noexcept;
  Status begin_move(void* from, void* to, std::size_t bytes) noexcept;
  Status end_move(void* from, std::size_t bytes) noexcept;

  enum class Found : std::uint8_t { committed, not_committed, elsewhere };
  // Whether [address, address + bytes) is committed here, or an echo of that; `elsewhere`: not in any reserved
  // range.
  Found find(const void* address, std::size_t bytes) const noexcept;

  std::size_t unit_bytes() const noexcept { return unit_; }

  struct Piece {
    std::uintptr_t address = 0;
    std::size_t bytes = 0;
    std::uint64_t handle = 0;  // the device's
    std::size_t used = 0;      // committed bytes; the piece is dropped when this reaches 0
    std::uint64_t serial = 0;  // never reused; 0 until it is in the table
  };
  // The pieces under a committed range, in address order; the range may begin and end inside a piece. Throws
  // bad_alloc.
  Result<std::vector<Piece>> pieces_under(const void* address, std::size_t bytes) const;
  std::optional<Piece> find_piece(std::uint64_t serial) const noexcept;

 protected:
  // What the system reserved, to be released as such: for alignment it may begin before the range and be
  // longer.
  struct Addresses {
    std::uintptr_t first = 0;
    std::size_t bytes = 0;
  };

  virtual Result<Addresses> reserve_addresses(std::size_t bytes, std::size_t alignment) noexcept = 0;
  virtual void give_addresses_back(const Addresses& addresses) noexcept = 0;
  // Allocates and maps the memory of a piece, and sets its handle.
  virtual Status make_piece(Piece& piece) noexcept = 0;
  virtual Status drop_piece(const Piece& piece) noexcept = 0;
  // Called when all adjacent pieces of a commit are mapped.
  virtual Status open_pieces(std::uintptr_t address, std::size_t bytes) noexcept;
  // Maps adjacent pieces a second time, `distance` bytes further; all or none. By default unsupported.
  virtual Status map_pieces_again(std::span<const Piece> pieces, std::uintptr_t distance, std::size_t bytes) noexcept;
  // Unmaps one of the two addresses of a piece.
  virtual Status unmap_echo(std::uintptr_t address, std::size_t bytes) noexcept;

 private:
  // The piece that a unit is in, by its index in `pieces_` (0: none), and whether the unit is committed.
  // Zero-initialized, for calloc: a range may have hundreds of thousands of units.
  class Unit {
   public:
    Unit() noexcept = default;
    Unit(std::uint32_t piece, bool committed) noexcept : bits_(piece << 1 | (committed ? 1U : 0U)) {}
    std::uint32_t piece() const noexcept { return bits_ >> 1; }
    bool is_committed() const noexcept { return (bits_ & 1) != 0; }

   private:
    std::uint32_t bits_ = 0;
  };
  struct FreeUnits {
    void operator()(Unit* units) const noexcept { std::free(units); }
  };
  struct Range {
    std::size_t bytes = 0;
    Addresses addresses;
    std::unique_ptr<Unit[], FreeUnits> units;
  };
  struct Gap {
    std::uintptr_t address = 0;
    std::size_t bytes = 0;
  };
  using Echo = Gap;
  struct Commit {
    std::vector<Gap> gaps;     // units without memory
    std::vector<Piece> made;   // with capacity for all
    std::size_t promised = 0;  // their number
  };

  Range* find_range(std::uintptr_t address, std::size_t bytes, std::uintptr_t& base) const noexcept BERTH_REQUIRES(mutex_);
  Result<std::span<Unit>> units_of(std::uintptr_t address, std::size_t bytes) const noexcept BERTH_REQUIRES(mutex_);

  Status begin_commit(std::uintptr_t address, std::size_t bytes, Commit& commit) noexcept;
  Status make_pieces(Commit& commit) noexcept;
  Status fill_gap(const Gap& gap, std::vector<Piece>& made) noexcept;
  void undo_commit(std::uintptr_t address, std::size_t bytes, const Commit& commit) noexcept;
  Status look_at_move(std::uintptr_t from, std::uintptr_t to, std::size_t bytes, std::vector<Piece>& pieces) noexcept;
  Status end_echoes(std::uintptr_t address, std::size_t bytes) noexcept;
  bool has_echo(std::uintptr_t address, std::size_t bytes) const noexcept BERTH_REQUIRES(mutex_);
  Status drop_all(std::span<const Piece> pieces) noexcept;

  void make_room(std::size_t pieces) BERTH_REQUIRES(mutex_);
  void enter(const Piece& piece) noexcept BERTH_REQUIRES(mutex_);
  void mark(std::span<Unit> units, bool committed, std::vector<Piece>& gone) noexcept BERTH_REQUIRES(mutex_);

  const std::size_t unit_;
  const std::size_t most_piece_;
  mutable os::Mutex mutex_;
  mutable std::map<std::uintptr_t, Range> ranges_ BERTH_GUARDED_BY(mutex_);  // by first address
  std::vector<Piece> pieces_ BERTH_GUARDED_BY(mutex_){1};                    // by index; the first is unused
  std::vector<std::uint32_t> free_numbers_ BERTH_GUARDED_BY(mutex_);         // capacity for all
  std::map<std::uintptr_t, std::size_t> echoes_ BERTH_GUARDED_BY(mutex_);    // bytes by address, one per piece
  std::uint64_t serials_ BERTH_GUARDED_BY(mutex_) = 0;
  std::size_t promised_ BERTH_GUARDED_BY(mutex_) = 0;  // pieces being made; capacity is reserved
};

}  // namespace berth::internal::device
