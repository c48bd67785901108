// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "berth/base/json.h"
#include "berth/plan/plan.h"
#include "plan/read/json_input.h"

// The tables of a plan as JSON. Values, nodes, slots, buffers and devices are given by index:
//
//     {"strategy": "…", "outcome": "optimal", "peak_bytes": 8192, "lower_bound_bytes": 8192, "nodes": [0, 7], "parallel": 1,
//      "alignment": 64, "capacity_bytes": null, "arenas": [{"bytes": 8192, "lower_bound_bytes": 8192, "naive_bytes": 20480}, …],
//      "slots": [{"device": 0, "bytes": 4096, "offset": 0}, …],
//      "places": [{"buffer": 0, "offset": 0, "extent_bytes": 4096, "alignment": 64}, {"sharing": "in_place", "with": 0, "buffer": 0, …},
//                 {"sharing": "none", "reason": "external"}, …],
//      "edges": [[0, 3], …]}
//
// The defaults of a location are bytes of its own, no slot or buffer, alignment 1, and 0 for the rest. The sums
// over the arenas are for readers of the file, may be left out, and must be right.
namespace berth::internal::plan::read {

// The tables as they are in the file, not yet verified against a graph. Throws FormatError, and
// ArgumentError(plan_invalid{at}) for a wrong sum.
PlanTables tables_from_json(const JsonPosition& object);

void tables_to_json(const PlanTables& tables, JsonWriter& json);

}  // namespace berth::internal::plan::read
