// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "berth/base/json.h"
#include "berth/plan/plan.h"
#include "plan/read/json_input.h"

// The tables of a plan as JSON. Values, nodes, slots, buffers and devices stand as their numbers:
//
//     {"strategy": "…", "outcome": "optimal", "peak_bytes": 8192, "lower_bound_bytes": 8192, "nodes": [0, 7], "parallel": 1,
//      "alignment": 64, "capacity_bytes": null, "arenas": [{"bytes": 8192, "lower_bound_bytes": 8192, "naive_bytes": 20480}, …],
//      "slots": [{"device": 0, "bytes": 4096, "offset": 0}, …],
//      "places": [{"buffer": 0, "offset": 0, "extent_bytes": 4096, "alignment": 64}, {"sharing": "in_place", "with": 0, "buffer": 0, …},
//                 {"sharing": "none", "reason": "external"}, …],
//      "edges": [[0, 3], …]}
//
// A place has bytes of its own unless it says otherwise, in no slot or buffer, with alignment 1 and the rest 0. The sums over the arenas
// are for people, may be left out, and must be right.
namespace berth::internal::plan::read {

// As the file has them: nothing is known of how they fit a graph. Throws FormatError, and ArgumentError(plan_invalid{at}) for a wrong sum.
PlanTables tables_from_json(const JsonPlace& object);

void tables_to_json(const PlanTables& tables, JsonWriter& json);

}  // namespace berth::internal::plan::read
