// SPDX-License-Identifier: Apache-2.0
#pragma once

// Planning: where every value of a graph lives, decided before it runs. It is a library of its own, libberth_plan:
//
//     find_package(berth REQUIRED COMPONENTS plan)
//     target_link_libraries(app PRIVATE berth::berth_plan)

#include "berth/plan/budget.h"
#include "berth/plan/graph.h"
#include "berth/plan/onnx.h"
#include "berth/plan/parallel.h"
#include "berth/plan/placement.h"
#include "berth/plan/plan.h"
#include "berth/plan/read_graph.h"
#include "berth/plan/report.h"
#include "berth/plan/runtime_graph.h"
#include "berth/plan/slot_allocator.h"
#include "berth/plan/verify.h"
