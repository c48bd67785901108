// SPDX-License-Identifier: Apache-2.0
#include "berth/memory/stats.h"
#include "berth/base/json.h"

namespace berth {

void Stats::write_json(JsonWriter& json) const {
  json.begin_object();
  json.member("in_use_bytes", in_use_bytes).member("cached_bytes", cached_bytes).member("committed_bytes", committed_bytes);
  json.member("peak_in_use_bytes", peak_in_use_bytes)
      .member("peak_committed_bytes", peak_committed_bytes)
      .member("table_bytes", table_bytes)
      .member("live_blocks", live_blocks);
  json.member("allocations", allocations).member("frees", frees).member("failures", failures);
  json.member("commits", commits).member("decommits", decommits);
  json.end_object();
}

}  // namespace berth
