// SPDX-License-Identifier: Apache-2.0
#include "fuzz/graphs.h"
#include "fuzz/words.h"

// Graphs as lines of lifetimes, with offsets that are ignored and that are fixed.
namespace berth::testing::fuzz {
namespace {

void run(std::string_view bytes) { judge(read_lives_csv(bytes, "lives", {.fixed_offsets = bytes.size() % 2 == 0})); }

const Registered lives_csv({.name = "lives_csv",
                            .run = run,
                            .words = text_words({"id", "lower", "upper", "size", "alignment", "offset", "id,lower,upper,size\n"})});

}  // namespace
}  // namespace berth::testing::fuzz
