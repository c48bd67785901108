// SPDX-License-Identifier: Apache-2.0
#include "memory/holders.h"

#include <algorithm>

namespace berth {

void add_holder(std::vector<Holder>& holders, Tag tag, std::size_t bytes) {
  // Programs have few tags: a scan is fast enough for a report.
  auto found = std::ranges::find(holders, tag, &Holder::tag);
  if (found == holders.end()) found = holders.insert(holders.end(), {tag});
  found->bytes += bytes;
  ++found->blocks;
}

std::vector<Holder> top_holders(std::vector<Holder> holders) {
  std::ranges::sort(holders,
                    [](const Holder& a, const Holder& b) { return a.bytes != b.bytes ? a.bytes > b.bytes : a.tag.word() < b.tag.word(); });
  if (holders.size() > 8) holders.resize(8);
  return holders;
}

}  // namespace berth
