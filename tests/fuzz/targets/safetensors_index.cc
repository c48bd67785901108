// SPDX-License-Identifier: Apache-2.0
#include "berth/base/error.h"
#include "file/judges.h"
#include "fuzz/target.h"
#include "fuzz/words.h"

// Indices of models in several files: no name leads out of the folder.
namespace berth::testing::fuzz {
namespace {

void run(std::string_view bytes) {
  const std::string file(bytes);
  const auto lax = judge_index(file, true);
  require(!lax, lax.value_or(""));
  const auto strict = judge_index(file, false);
  require(!strict, strict.value_or(""));
}

const Registered safetensors_index({.name = "safetensors_index",
                                    .run = run,
                                    .words = json_words({"\"metadata\"", "\"total_size\"", "\"weight_map\"", "..", "/", "./", "//",
                                                         ".safetensors"})});

}  // namespace
}  // namespace berth::testing::fuzz
