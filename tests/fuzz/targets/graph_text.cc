// SPDX-License-Identifier: Apache-2.0
#include "fuzz/graphs.h"
#include "fuzz/words.h"

// Graphs as lines of text.
namespace berth::testing::fuzz {
namespace {

void run(std::string_view bytes) { judge(read_graph_text(bytes)); }

const Registered graph_text({.name = "graph_text", .run = run, .words = text_words({" | ", "#", "outputs:", " ", "add"})});

}  // namespace
}  // namespace berth::testing::fuzz
