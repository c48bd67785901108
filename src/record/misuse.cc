// SPDX-License-Identifier: Apache-2.0
#include "berth/record/misuse.h"

#include <atomic>
#include <cstdio>
#include <cstdlib>

#include "os/system.h"

namespace berth {

namespace {

std::atomic<MisuseHandler> g_handler{nullptr};
std::atomic<std::uint64_t> g_count{0};

// Writes without allocating: a program that frees twice may be in any state.
void print(const Misuse& misuse) noexcept {
  const std::string_view kind = to_string(misuse.kind);
  const std::string_view word = misuse.tag.word();
  const Site site = site_of(misuse.allocated_at);
  std::fprintf(stderr, "berth: %.*s of %p (%zu bytes) at allocator %.*s; nothing was changed", static_cast<int>(kind.size()), kind.data(),
               misuse.address, misuse.bytes, static_cast<int>(misuse.allocator.size()), misuse.allocator.data());
  if (!word.empty()) std::fprintf(stderr, "; tag %.*s", static_cast<int>(word.size()), word.data());
  if (site.file != nullptr) std::fprintf(stderr, "; the block now there was allocated at %s:%u", site.file, site.line);
  std::fputc('\n', stderr);
}

bool must_abort() noexcept {
  const char* const check = std::getenv("BERTH_CHECK");
  return check != nullptr && std::string_view(check) == "abort";
}

}  // namespace

std::string_view to_string(MisuseKind kind) noexcept {
  constexpr std::string_view kNames[] = {"double_free", "foreign_free", "size_mismatch"};
  return kNames[static_cast<std::size_t>(kind)];
}

MisuseHandler set_misuse_handler(MisuseHandler handler) noexcept { return g_handler.exchange(handler, std::memory_order_acq_rel); }
std::uint64_t misuse_count() noexcept { return g_count.load(std::memory_order_relaxed); }

void report_misuse(const Misuse& misuse) noexcept {
  g_count.fetch_add(1, std::memory_order_relaxed);
  const MisuseHandler handler = g_handler.load(std::memory_order_acquire);
  handler != nullptr ? handler(misuse) : print(misuse);
  if (must_abort()) std::abort();
}

}  // namespace berth
