// SPDX-License-Identifier: Apache-2.0
#include "fuzz/graphs.h"
#include "fuzz/words.h"

// Graphs as JSON.
namespace berth::testing::fuzz {
namespace {

void run(std::string_view bytes) { judge(read_graph_json(bytes)); }

const Registered graph_json(
    {.name = "graph_json",
     .run = run,
     .words =
         json_words({"\"values\"",   "\"nodes\"",        "\"name\"",     "\"bytes\"",          "\"dtype\"",        "\"f32\"",
                     "\"shape\"",    "\"external\"",     "\"device\"",   "\"alignment\"",      "\"fixed_offset\"", "\"preferred_offset\"",
                     "\"output\"",   "\"dynamic\"",      "\"inputs\"",   "\"outputs\"",        "\"inplace\"",      "\"views\"",
                     "\"identity\"", "\"offset_bytes\"", "\"of_input\"", "\"ignored_inputs\"", "\"side_effects\"", "\"devices\"",
                     "\"op\""})});

}  // namespace
}  // namespace berth::testing::fuzz
