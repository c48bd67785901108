// SPDX-License-Identifier: Apache-2.0
#include <cstdint>
#include <cstdio>
#include <string>
#include <vector>

#include "berth/berth.h"
#include "berth/plan.h"
#include "expect.h"

using namespace berth;

namespace {

// kDynamicStorageID, kBadStorageID: values whose size nobody knows yet.
void dynamic_values() {
  Graph graph;
  const ValueId in = graph.add_value({.name = "in", .bytes = 64, .external = true});
  const ValueId found = graph.add_value({.name = "found", .dynamic = true});
  const ValueId unsized = graph.add_value({.name = "unsized"});
  const ValueId out = graph.add_value({.name = "out", .bytes = 64, .output = true});
  graph.add_node({.op = "NonZero", .inputs = {in}, .outputs = {found, unsized}});
  graph.add_node({.op = "Sum", .inputs = {found, unsized}, .outputs = {out}});
  const Plan planned = plan(graph);
  expect(planned.location(found).reason == UnplannedReason::dynamic && planned.location(unsized).reason == UnplannedReason::unknown_size,
         "dynamic values and those of unknown size get no location, each with its reason");
  expect(planned.unplanned().size() == 3, "unplanned() lists them, beside the external one");
}

// The attribute device of a graph: an arena for each.
void two_devices() {
  Graph graph;
  const std::uint32_t other = graph.add_device("sim:0");
  const ValueId host = graph.add_value({.name = "host", .dtype = DType::f32, .shape = Shape{1000}});
  const ValueId device = graph.add_value({.name = "device", .dtype = DType::f32, .shape = Shape{1000}, .device = other});
  const ValueId result = graph.add_value({.name = "result", .dtype = DType::f32, .shape = Shape{10}, .device = other, .output = true});
  graph.add_node({.op = "Load", .outputs = {host}});
  graph.add_node({.op = "Copy", .inputs = {host}, .outputs = {device}});
  graph.add_node({.op = "Reduce", .inputs = {device}, .outputs = {result}});
  const Placement memory = place(plan(graph));
  expect(memory[host].device() == Device("cpu") && memory[device].device() == Device("sim:0"), "each value is in its device's arena");
  expect(memory.plan().tables().arenas.size() == 2 && shadow_run(memory).ok(), "one arena for each device");
}

// The JSON of a graph runtime, and its storage_id.
void a_runtimes_file() {
  const std::string file =
      R"({"nodes": [{"op": "null", "name": "data", "inputs": []},
                    {"op": "tvm_op", "name": "a", "attrs": {"func_name": "relu"}, "inputs": [[0, 0, 0]]},
                    {"op": "tvm_op", "name": "b", "attrs": {"func_name": "relu"}, "inputs": [[1, 0, 0]]},
                    {"op": "tvm_op", "name": "c", "attrs": {"func_name": "relu"}, "inputs": [[2, 0, 0]]}],
          "arg_nodes": [0], "heads": [[3, 0, 0]], "node_row_ptr": [0, 1, 2, 3, 4],
          "attrs": {"dltype": ["list_str", ["float32", "float32", "float32", "float32"]],
                    "shape": ["list_shape", [[64], [64], [64], [64]]], "storage_id": ["list_int", [0, 1, 2, 3]]}})";
  const Plan planned = plan(read_runtime_graph(file), {.strategy = "slots"});
  expect(with_storage_ids(file, planned).find(R"("storage_id":["list_int",[0,1,2,1]])") != std::string::npos,
         "the same file, with the storage of the plan");
}

}  // namespace

// For users of a graph allocator and its planning pass, as in NNVM and MXNet: the right column of
// docs/coming-from.md as a program.
int main() {
  Graph graph;
  const ValueId data = graph.add_value({.name = "data", .dtype = DType::f32, .shape = Shape{8, 64}, .external = true});
  const ValueId weight = graph.add_value({.name = "weight", .dtype = DType::f32, .shape = Shape{64, 64}, .external = true});
  const ValueId hidden = graph.add_value({.name = "hidden", .dtype = DType::f32, .shape = Shape{8, 64}});
  const ValueId active = graph.add_value({.name = "active", .dtype = DType::f32, .shape = Shape{8, 64}});
  const ValueId flat = graph.add_value({.name = "flat", .dtype = DType::f32, .shape = Shape{512}});
  const ValueId mask = graph.add_value({.name = "mask", .dtype = DType::boolean, .shape = Shape{512}});
  const ValueId result = graph.add_value({.name = "result", .dtype = DType::f32, .shape = Shape{512}, .output = true});
  graph.add_node({.op = "FullyConnected", .inputs = {data, weight}, .outputs = {hidden}});
  // FInplaceOption
  graph.add_node({.op = "relu", .inputs = {hidden}, .outputs = {active}, .inplace = {{.output = 0, .input = 0}}});
  // FInplaceIdentity
  graph.add_node({.op = "Reshape", .inputs = {active}, .outputs = {flat}, .inplace = {{.output = 0, .input = 0, .identity = true}}});
  // FIgnoreInputs
  graph.add_node({.op = "Dropout", .inputs = {flat, hidden}, .outputs = {result, mask}, .ignored_inputs = {1}});

  // Storage ids, and offsets in one arena.
  const Plan slots = plan(graph, {.strategy = "slots", .match_range = 16});
  const Plan best = plan(graph);
  expect(slots.location(active).slot == slots.location(hidden).slot, "in place: one storage id");
  expect(slots.inplace_of(active).kind == Plan::Inplace::taken && slots.inplace_of(mask).kind == Plan::Inplace::unused,
         "in place or unused");
  expect(best.location(data).reason == UnplannedReason::external, "an input lives elsewhere");
  expect(best.peak_bytes() <= slots.peak_bytes(), "the best of both kinds");
  std::printf("planned %zu buffers into %zu bytes\n", best.buffers().size(), best.peak_bytes());

  // Forward and backward planned separately, and colours for branches that run concurrently.
  expect(plan(graph, {.nodes = NodeRange{0, 2}}).location(result).reason == UnplannedReason::outside_range, "a range of nodes");
  const Plan forward = plan(graph, {.strategy = "slots", .nodes = NodeRange{0, 2}});
  const Plan backward = plan(graph, {.strategy = "slots", .after = &forward});
  expect(backward.location(active).reuse == Reuse::kept && backward.location(active).slot == forward.location(active).slot,
         "what the later range reads stays in its slot");
  expect(verify_plans(std::vector{forward, backward}).empty(), "they are right together");
  expect(plan(graph, {.strategy = "slots"}).peak_bytes() <= plan(graph, {.strategy = "slots_plain"}).peak_bytes(), "never larger");
  expect(plan(graph, {.parallel = 2}).tables().edges.empty(), "a chain needs no more edges");

  dynamic_values();
  two_devices();
  a_runtimes_file();
  // Request and Release by hand.
  SlotAllocator allocator(16);
  const std::uint32_t first = allocator.request({.bytes = 2048});
  allocator.release(first);
  expect(allocator.request({.bytes = 4096}) == first && allocator.slots()[first].bytes == 4096, "a slot that grows");

  // The executor's memory.
  const Placement memory = place(best);
  memory[hidden].fill(1.0F);
  expect(memory[active].is_view_of(memory[hidden]), "one buffer for all");
  expect(shadow_run(memory).ok(), "nothing is overwritten early");
  return g_right ? 0 : 1;
}
