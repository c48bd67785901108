// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "berth/export.h"
#include "html/address_map.h"
#include "html/fold.h"

// The addresses of one pool at one moment, as plain data: what lies where, and whose it is. Drawn in rows, as text is, the lowest addresses
// first.
namespace berth::internal::html {

enum class PieceKind : std::uint8_t {
  live,
  waiting,  // freed, and not yet to be had
  free,
  slab,  // free between small blocks of one size
};

struct RangePiece {
  std::uint64_t offset = 0;
  std::uint64_t bytes = 0;
  std::uint64_t asked_bytes = 0;  // of a block: what was asked for
  std::uint64_t age_ns = 0;       // 0: unknown
  std::uint64_t stream_id = 0;    // 0: none
  std::uint16_t tag = 0;          // in RangeMap::tags
  std::uint32_t site = 0;         // in RangeMap::sites
  PieceKind kind = PieceKind::live;
};

struct RangeMap {
  std::string title = {};
  std::uint64_t base = 0;   // the address that offsets count from
  std::uint64_t bytes = 0;  // the offsets that are shown begin at 0
  std::vector<RangePiece> pieces = {};
  std::vector<MapTag> tags = {};
  std::vector<std::string> sites = {};  // an empty one is not known
  std::vector<MapFold> folds = {};
};

// Leaves out the addresses without memory that make the rest hard to see (html/fold.h), and says so in `base`, `bytes` and
// `folds`.
BERTH_EXPORT void fold_addresses(RangeMap& map);

// For the script of a page (assets/range.js), as one compact object, its pieces by address.
BERTH_EXPORT std::string range_json(const RangeMap& map);

}  // namespace berth::internal::html
