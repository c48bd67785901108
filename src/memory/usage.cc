// SPDX-License-Identifier: Apache-2.0
#include "memory/usage.h"

#include "base/text.h"

namespace berth::internal::memory {

Stats Usage::stats() const noexcept {
  Stats now = stats_;
  now.cached_bytes = cached_bytes();
  return now;
}

std::string Usage::audit(std::string_view name) const {
  const auto wrong = [name](std::string_view what) { return text::join(name, ": ", what); };
  if (stats_.allocations != stats_.frees + stats_.live_blocks) return wrong("allocations != frees + live");
  if (!counts_blocks_only() && stats_.in_use_bytes > stats_.committed_bytes) return wrong("more is in use than is committed");
  if (stats_.in_use_bytes > stats_.peak_in_use_bytes || stats_.committed_bytes > stats_.peak_committed_bytes)
    return wrong("a peak is too low");
  std::size_t bytes = 0;
  std::uint64_t blocks = 0;
  for (const Holder& holder : holders_.holders()) {
    bytes += holder.bytes;
    blocks += holder.blocks;
  }
  if (bytes != stats_.in_use_bytes || blocks != stats_.live_blocks) return wrong("what the tags hold is not what is in use");
  return {};
}

}  // namespace berth::internal::memory
