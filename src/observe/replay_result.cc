// SPDX-License-Identifier: Apache-2.0
#include "berth/base/json.h"
#include "berth/observe/replay.h"

namespace berth {

namespace {

template <class T>
void write_known(JsonWriter& json, std::string_view name, const std::optional<T>& value) {
  json.key(name);
  if (value)
    json.value(*value);
  else
    json.null();
}

}  // namespace

void ReplayResult::write_json(JsonWriter& json) const {
  json.member("device", device.to_string()).member("strategy", strategy);
  json.member("threads", threads).member("touch", touch).member("events", events);
  json.member("wall_ms", wall_ms).member("ns_per_event", ns_per_event);
  write_known(json, "p50_ns", p50_ns);
  write_known(json, "p99_ns", p99_ns);
  write_known(json, "p999_ns", p999_ns);
  json.member("peak_live_bytes", peak_live_bytes);
  write_known(json, "peak_committed_bytes", peak_committed_bytes);
  write_known(json, "ratio", ratio);
  write_known(json, "commits", commits);
  write_known(json, "decommits", decommits);
  write_known(json, "peak_resident_bytes", peak_resident_bytes);
  write_known(json, "end_committed_bytes", end_committed_bytes);
  write_known(json, "end_resident_bytes", end_resident_bytes);
}

}  // namespace berth
