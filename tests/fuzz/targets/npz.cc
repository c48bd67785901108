// SPDX-License-Identifier: Apache-2.0
#include "berth/base/error.h"
#include "file/judges.h"
#include "fuzz/target.h"
#include "fuzz/zip.h"

// Archives of arrays: every read is inside the archive, and so is every member and its elements; members do not overlap.
namespace berth::testing::fuzz {
namespace {

void run(std::string_view bytes) {
  const auto wrong = judge_npz(std::string(bytes), 0);
  require(!wrong, wrong.value_or(""));
}

std::string mutate(Random& random, std::string bytes, const Change& change) { return mend_zip(random, change(std::move(bytes))); }

const Registered npz({.name = "npz",
                      .run = run,
                      .mutate = mutate,
                      .words = {"PK\3\4", "PK\1\2", "PK\5\6", "PK\6\6", "PK\6\7", ".npy", "/", "..", "\xff\xff\xff\xff"}});

}  // namespace
}  // namespace berth::testing::fuzz
