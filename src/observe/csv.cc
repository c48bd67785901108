// SPDX-License-Identifier: Apache-2.0
#include "base/allowance.h"
#include "base/text.h"
#include "berth/observe/export.h"
#include "memory/live_blocks.h"

// Comma-separated values by RFC 4180, but with plain newlines.
namespace berth {

using namespace internal;
using namespace internal::memory;

namespace {

std::string field(std::string_view text) {
  if (text.find_first_of(",\"\r\n") == std::string_view::npos) return std::string(text);
  std::string out = "\"";
  for (const char c : text) out += c == '"' ? std::string("\"\"") : std::string(1, c);
  return out + '"';
}

std::string counts_in_fields(const ProfileCounts& counts) {
  return text::join(counts.bytes, ',', counts.peak_bytes, ',', counts.blocks, ',', counts.allocations, ',', counts.frees, ',',
                    counts.allocated_bytes, ',', counts.freed_bytes);
}

}  // namespace

std::string to_csv(const Profile& profile) {
  std::string out = "device,tag,site,bytes,peak_bytes,blocks,allocations,frees,allocated_bytes,freed_bytes\n";
  if (!profile.sites.empty()) {
    for (const SiteProfile& row : profile.sites)
      out += text::join(row.device.to_string(), ',', field(row.tag.word()), ',', field(memory::site_in_words(row.site, row.stack)), ',',
                        counts_in_fields(row.counts), '\n');
    return out;
  }
  for (const TagProfile& row : profile.tags)
    out += text::join(row.device.to_string(), ',', field(row.tag.word()), ",,", counts_in_fields(row.counts), '\n');
  return out;
}

std::string to_csv(const ProcessSnapshot& snapshot) {
  std::string out = "allocator,device,address,bytes,requested,tag,site,age_ns,stream,state\n";
  for (const Snapshot& pool : snapshot.pools) {
    const std::string begin = text::join(field(pool.allocator), ',', field(pool.device), ',');
    for (const SnapshotBlock& block : pool.blocks) {
      const std::string row =
          text::join(begin, text::hex(pool.base + block.offset), ',', block.bytes, ',', block.requested, ',', field(pool.tags[block.tag]),
                     ',', field(pool.sites[block.site]), ',', block.age_ns, ',', block.stream_id, ',', to_string(block.state), '\n');
      base::append(out, row);  // names are repeated in each row
    }
  }
  return out;
}

}  // namespace berth
