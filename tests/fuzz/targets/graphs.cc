// SPDX-License-Identifier: Apache-2.0
#include "fuzz/graphs.h"
#include "fuzz/words.h"

// Graphs of whatever form: the reader detects it by the first bytes.
namespace berth::testing::fuzz {
namespace {

void run(std::string_view bytes) { judge(read_graph(bytes)); }

const Registered graphs({.name = "graphs",
                         .run = run,
                         .words = json_words({"id,lower,upper,size\n", "# ", " | ", "\"berth\"", "\"graph\"", "\"plan\"", "\"version\""})});

}  // namespace
}  // namespace berth::testing::fuzz
