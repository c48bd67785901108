// SPDX-License-Identifier: Apache-2.0
#include "plan/sizes.h"

#include "base/text.h"
#include "berth/base/checked.h"
#include "berth/base/error.h"

namespace berth::internal::plan {

namespace {

[[noreturn]] void refuse_sum(const Graph& graph, ValueId v, std::size_t bytes, std::size_t alignment, std::optional<std::size_t> fixed) {
  std::string asked = text::join(graph.describe_value(v), " of ", text::bytes(bytes), ", aligned to ", text::bytes(alignment));
  if (fixed) asked += text::join(", at ", *fixed);
  throw ArgumentError(ErrorCode::size_overflow,
                      {std::move(asked), "with the values before it, it exceeds the address space", "check its size, offset and alignment"},
                      {{"value", text::printable(graph.values[v].name)}, {"bytes", bytes}});
}

}  // namespace

void check_fixed(const Graph& graph, const std::vector<Life>& lives) {
  for (ValueId v = 0; v < lives.size(); ++v) {
    const std::optional<std::size_t> fixed = graph.values[v].fixed_offset;
    if (!fixed || !lives[v].placed()) continue;
    const std::size_t alignment = lives[v].alignment;
    if (*fixed > kMaxBytes / 2) refuse_sum(graph, v, lives[v].extent_bytes(), alignment, fixed);
    if (*fixed % alignment != 0)
      throw ArgumentError(ErrorCode::invalid_alignment,
                          {text::join(graph.describe_value(v), " at the fixed offset ", *fixed),
                           text::join("it must be a multiple of ", alignment), "fix it at such an offset"},
                          {{"offset", *fixed}, {"alignment", alignment}});
  }
}

void check_sizes(const Graph& graph, const ReuseResult& reuse) {
  std::size_t sum = 0;
  std::vector<bool> counted(reuse.buffers.size(), false);
  for (ValueId v = 0; v < reuse.values.size(); ++v) {
    const std::uint32_t buffer = reuse.values[v].buffer;
    if (buffer == kNoBuffer || counted[buffer]) continue;
    counted[buffer] = true;
    const PackBuffer& pack = reuse.buffers[buffer];
    for (const std::size_t part : {pack.bytes, std::size_t{pack.alignment}, pack.fixed.value_or(0)}) {
      if (part > kMaxBytes / 2 - sum) refuse_sum(graph, v, pack.bytes, pack.alignment, pack.fixed);
      sum += part;
    }
  }
}

}  // namespace berth::internal::plan
