// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <vector>

#include "berth/plan/graph.h"

// What every byte of an arena holds while the verifier runs a graph in thought.
namespace berth::internal::plan::verify {

// Bytes [content_begin, …) of what was written for a value, for `bytes` bytes.
struct Run {
  std::size_t bytes;
  ValueId content;
  std::size_t content_begin;
};

inline constexpr NodeId kNoNode = UINT32_MAX;
inline constexpr ValueId kSeveral = UINT32_MAX - 1;

// A range of the arena that holds one run.
struct Piece {
  std::size_t end;
  ValueId content;
  std::size_t content_begin;
  NodeId writer = kNoNode;
  NodeId reader = kNoNode;         // the last node that read it …
  ValueId read_as = kNoValue;      // … and as which of its inputs, or kSeveral
  std::vector<NodeId> users = {};  // everyone since it was written, with `keep_users`
};

class Contents {
 public:
  explicit Contents(bool keep_users) : keep_users_(keep_users) {}

  // Marks the range as read by a node. Answers the first piece that does not hold what it should, or that nothing was written to (null).
  struct Mismatch {
    bool found = false;
    std::size_t offset = 0;
    ValueId held = kNoValue;  // whose bytes are there; kNoValue: nobody's
  };
  Mismatch read(NodeId node, ValueId as, std::size_t offset, std::span<const Run> expected);

  // Puts new content there. Calls lost(piece) for every piece that was there before.
  template <class Lost>
  void write(NodeId node, std::size_t offset, const Run& run, Lost lost) {
    if (run.bytes == 0) return;
    const std::size_t end = offset + run.bytes;
    auto at = split(offset);
    while (at != pieces_.end() && at->first < end) {
      if (at->second.end > end) cut(at, end);
      lost(at->second);
      at = pieces_.erase(at);
    }
    Piece piece{.end = end, .content = run.content, .content_begin = run.content_begin, .writer = node};
    if (keep_users_) piece.users = {node};
    pieces_.emplace_hint(at, offset, std::move(piece));
  }

 private:
  using Pieces = std::map<std::size_t, Piece>;

  // No piece reaches across the offset afterwards. Answers the first that begins there or later.
  Pieces::iterator split(std::size_t offset);
  // Into two; answers the upper. REQUIRES: the offset is inside the piece.
  Pieces::iterator cut(Pieces::iterator at, std::size_t offset);

  bool keep_users_;
  Pieces pieces_;  // by where they begin; disjoint
};

}  // namespace berth::internal::plan::verify
