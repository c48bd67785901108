// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "berth/plan/graph.h"
#include "berth/plan/plan.h"
#include "html/address_map.h"

// A plan as address maps, the input of every drawing.
namespace berth::internal::plan {

// One box for each buffer of a device, named after its first value, with the buffer's other values in a note;
// sorted by begin.
std::vector<html::MapBox> plan_rects(const Plan& plan, std::uint32_t device);

html::AddressMap plan_map(const Plan& plan, std::uint32_t device);

// The same without what drawings in characters do not show: names, notes and steps.
html::AddressMap plan_outline(const Plan& plan, std::uint32_t device);

// One map for each device that has bytes.
std::vector<html::AddressMap> plan_maps(const Plan& plan);

// The name, or the number; not yet escaped.
std::string value_name(const Graph& graph, ValueId value);
std::string step_name(const Graph& graph, NodeId node);

}  // namespace berth::internal::plan
