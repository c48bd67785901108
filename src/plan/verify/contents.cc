// SPDX-License-Identifier: Apache-2.0
#include "plan/verify/contents.h"

namespace berth::verification {

void Contents::split(std::size_t offset) {
  auto after = pieces_.upper_bound(offset);
  if (after == pieces_.begin()) return;
  const auto at = std::prev(after);
  if (at->first == offset || at->second.end <= offset) return;
  Piece upper = at->second;
  upper.content_begin += offset - at->first;
  at->second.end = offset;
  pieces_.emplace_hint(after, offset, std::move(upper));
}

Contents::Mismatch Contents::read(NodeId node, ValueId as, std::size_t offset, const std::vector<Run>& expected) {
  for (const Run& run : expected) {
    const std::size_t end = offset + run.bytes;
    split(offset);
    split(end);
    std::size_t done = offset;
    for (auto at = pieces_.lower_bound(offset); at != pieces_.end() && at->first < end; ++at) {
      Piece& piece = at->second;
      if (at->first != done) break;
      if (piece.content != run.content || piece.content_begin != run.content_begin + (done - offset)) return {true, done, piece.content};
      piece.read_as = piece.reader == node ? kSeveral : as;  // twice as the same input, too: neither may be overwritten for the other
      if (keep_users_ && piece.reader != node) piece.users.push_back(node);
      piece.reader = node;
      done = piece.end;
    }
    if (done != end) return {true, done, kNoValue};
    offset = end;
  }
  return {};
}

}  // namespace berth::verification
