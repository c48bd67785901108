// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "berth/plan/graph.h"
#include "berth/plan/plan.h"
#include "html/address_map.h"

// A plan as address maps: what every drawing of it starts from.
namespace berth::internal::plan {

// One for each buffer of a device, named after its first value, with the others that share its bytes in a note. In the order in which they
// begin.
std::vector<html::MapBox> plan_rects(const Plan& plan, std::uint32_t device);

html::AddressMap plan_map(const Plan& plan, std::uint32_t device);

// One for each device that has bytes.
std::vector<html::AddressMap> plan_maps(const Plan& plan);

// By name, or by number; not yet made safe to print.
std::string value_name(const Graph& graph, ValueId value);
std::string step_name(const Graph& graph, NodeId node);

}  // namespace berth::internal::plan
