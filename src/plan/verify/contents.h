// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <vector>

#include "berth/plan/graph.h"

// The content of every byte of an arena, while the verifier simulates a graph.
namespace berth::internal::plan::verify {

// `bytes` bytes of the content written for a value, from content_begin on.
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
  ValueId read_as = kNoValue;      // … and the input it was read as, or kSeveral
  std::vector<NodeId> users = {};  // the writer and all readers since, with `keep_users`
};

class Contents {
 public:
  explicit Contents(bool keep_users) : keep_users_(keep_users) {}

  // Marks the range as read by a node. Returns the first mismatch: other content, or bytes that were never
  // written.
  struct Mismatch {
    bool found = false;
    std::size_t offset = 0;
    ValueId held = kNoValue;  // the value whose bytes are there; kNoValue: never written
  };
  Mismatch read(NodeId node, ValueId as, std::size_t offset, std::span<const Run> expected);

  // Writes new content. Calls lost(piece) for every piece that is overwritten.
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

  // Makes the offset a boundary between pieces. Returns the first piece that begins there or later.
  Pieces::iterator split(std::size_t offset);
  // Splits a piece; returns the upper half. REQUIRES: the offset is inside the piece.
  Pieces::iterator cut(Pieces::iterator at, std::size_t offset);

  bool keep_users_;
  Pieces pieces_;  // by begin; disjoint
};

}  // namespace berth::internal::plan::verify
