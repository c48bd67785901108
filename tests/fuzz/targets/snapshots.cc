// SPDX-License-Identifier: Apache-2.0
#include "berth/base/error.h"
#include "berth/observe/snapshot_file.h"
#include "fuzz/target.h"
#include "fuzz/words.h"

// Snapshots: what is accepted passes the audit, is written and read again equal, and can be grouped and compared.
namespace berth::testing::fuzz {
namespace {

void run(std::string_view bytes) {
  const ProcessSnapshot read = read_snapshot(bytes);
  for (const Snapshot& pool : read.pools) require(pool.audit().empty(), "a snapshot that was read passes the audit");
  require(read_snapshot(to_json(read)) == read, "a snapshot that was read is written and read again the same");
  require(diff_snapshots(read, read).empty(), "a snapshot differs nowhere from itself");
  std::uint64_t blocks = 0;
  for (const SnapshotGroup& group : group_blocks(read)) blocks += group.blocks;
  std::uint64_t all = 0;
  for (const Snapshot& pool : read.pools) all += pool.blocks.size();
  require(blocks <= all, "groups have no more blocks than there are");
}

const Registered snapshots({.name = "snapshots",
                            .run = run,
                            .words = json_words({"\"pools\"", "\"blocks\"", "\"rows\"", "\"columns\"", "\"memory\"", "\"free\"", "\"tags\"",
                                                 "\"sites\"", "\"stats\"", "\"base\"", "\"0x", "\"offset\"", "\"table_bytes\""})});

}  // namespace
}  // namespace berth::testing::fuzz
