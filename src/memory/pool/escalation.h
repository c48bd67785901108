// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>

#include "berth/base/result.h"
#include "memory/pool/search_steps.h"
#include "memory/pool/supply.h"
#include "memory/space/space.h"

namespace berth::internal::memory {

// What a pool tries for one request, with growing effort, until it succeeds or there is nothing left to try:
//
//     Status done;
//     for (Escalation effort(supply, stream); effort.next(done);) done = space.take(..., effort.level());
//
// With the mutex; `next` releases it.
class Escalation {
 public:
  Escalation(Supply& supply, std::uint32_t stream) noexcept : supply_(supply), stream_(stream) {}

  // Whether to try (again), with `level()`, after what the last attempt said. If not, `done` is the answer.
  bool next(Status& done) noexcept {
    if (tried_ != Tried::nothing && done) return false;
    if (escalate(done)) return true;
    note_refusal();
    return false;
  }
  Space::Effort level() const noexcept { return level_; }

 private:
  enum class Tried : std::uint8_t { nothing, cached, known, held, captured, usual, uncut, all_pages, everything };

  bool try_next(Tried what, Space::Effort level) noexcept {
    tried_ = what;
    level_ = level;
    return true;
  }
  bool escalate(Status& done) noexcept;
  bool try_device(Status& done) noexcept;
  bool await_cut() noexcept;
  void gather() noexcept;
  bool may_go_on(const Status& done) const noexcept;
  void note_refusal() noexcept;

  Supply& supply_;
  const std::uint32_t stream_;
  Tried tried_ = Tried::nothing;
  Status refused_;              // of a captured stream
  int cut_waits_left_ = 3;      // for what should be cut: others may free again what was waited for
  std::size_t waits_left_ = 0;  // for frees
  Space::Effort level_ = Space::Effort::cached_only;
};

}  // namespace berth::internal::memory
