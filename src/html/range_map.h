// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "berth/export.h"
#include "html/address_map.h"
#include "html/fold.h"

// The addresses of one pool at one moment, as plain data: the pieces, and who owns them. Drawn in rows, like
// text, the lowest addresses first. Pure functions; any thread.
namespace berth::internal::html {

enum class PieceKind : std::uint8_t {
  live,
  waiting,  // freed, but not yet reusable
  free,
  slab,  // free memory inside a slab
};

struct RangePiece {
  std::uint64_t offset = 0;
  std::uint64_t bytes = 0;
  std::uint64_t asked_bytes = 0;  // for a block: the size that was requested
  std::uint64_t age_ns = 0;       // 0: unknown
  std::uint64_t stream_id = 0;    // 0: none
  std::uint16_t tag = 0;          // index into RangeMap::tags
  std::uint32_t site = 0;         // index into RangeMap::sites
  PieceKind kind = PieceKind::live;
};

struct RangeMap {
  std::string title = {};
  std::uint64_t base = 0;   // the address that offsets count from
  std::uint64_t bytes = 0;  // the offsets [0, bytes) are shown
  std::vector<RangePiece> pieces = {};
  std::vector<MapTag> tags = {};
  std::vector<std::string> sites = {};  // empty: unknown
  std::vector<MapFold> folds = {};
};

// Removes long ranges of addresses without memory (html/fold.h), and updates `base`, `bytes` and `folds`.
BERTH_EXPORT void fold_addresses(RangeMap& map);

// The map for the script of a report (assets/range.js), as one compact JSON object, its pieces sorted by
// address.
BERTH_EXPORT std::string range_json(const RangeMap& map);

}  // namespace berth::internal::html
