// SPDX-License-Identifier: Apache-2.0
#include "plan/verify/contents.h"

namespace berth::internal::plan::verify {

Contents::Pieces::iterator Contents::cut(Pieces::iterator at, std::size_t offset) {
  Piece upper = at->second;
  upper.content_begin += offset - at->first;
  at->second.end = offset;
  return pieces_.emplace_hint(std::next(at), offset, std::move(upper));
}

Contents::Pieces::iterator Contents::split(std::size_t offset) {
  const auto after = pieces_.lower_bound(offset);
  if (after == pieces_.begin()) return after;
  const auto at = std::prev(after);
  return at->second.end <= offset ? after : cut(at, offset);
}

Contents::Mismatch Contents::read(NodeId node, ValueId as, std::size_t offset, std::span<const Run> expected) {
  for (const Run& run : expected) {
    const std::size_t end = offset + run.bytes;
    std::size_t done = offset;
    for (auto at = split(offset); at != pieces_.end() && at->first < end; ++at) {
      if (at->first != done) break;
      if (at->second.end > end) cut(at, end);
      Piece& piece = at->second;
      if (piece.content != run.content || piece.content_begin != run.content_begin + (done - offset)) return {true, done, piece.content};
      piece.read_as = piece.reader == node ? kSeveral : as;  // also when it is the same input twice: then
                                                             // neither may be overwritten
      if (keep_users_ && piece.reader != node) piece.users.push_back(node);
      piece.reader = node;
      done = piece.end;
    }
    if (done != end) return {true, done, kNoValue};
    offset = end;
  }
  return {};
}

}  // namespace berth::internal::plan::verify
