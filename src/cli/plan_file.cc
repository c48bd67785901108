// SPDX-License-Identifier: Apache-2.0
#include "cli/plan_file.h"

#include "berth/plan/read_graph.h"
#include "cli/input.h"

namespace berth::internal::cli {

Plan read_plan(const std::string& path, const std::string& max_memory) {
  const Input input = read_input(path, parse_room(max_memory));
  return read_plan_json(input.bytes, path, {.memory_bytes = input.room_bytes});
}

}  // namespace berth::internal::cli
