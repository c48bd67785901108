// SPDX-License-Identifier: Apache-2.0
#include "memory/space/page_run.h"

namespace berth::internal::memory {

namespace {

using Kind = FillStep::Kind;

struct MovedMemory {
  std::byte* address;
  std::size_t bytes;
};

Status move_in_use(Backend& backend, const MovedMemory& source, const MovedMemory& target) noexcept {
  const Status moved = backend.begin_move(source.address, target.address, target.bytes);
  if (moved || moved.failure().code == ErrorCode::device_lost) return moved;
  return Failure{ErrorCode::out_of_memory, moved.failure().os_error, "pages that are in use did not move", Refusal::not_moved};
}

// Some kernels and limits do not let pages move: then they are decommitted here, and others committed there.
Status move(Backend& backend, const MovedMemory& source, const MovedMemory& target, std::size_t& lost) noexcept {
  const bool movable = source.bytes == target.bytes && backend.properties().abilities.move;
  if (movable) {
    const Status moved = backend.move(source.address, target.address, target.bytes);
    if (moved || moved.failure().code == ErrorCode::device_lost) return moved;
  }
  if (const Status gone = backend.decommit(source.address, source.bytes); !gone) return gone;
  const Status committed = backend.commit(target.address, target.bytes);
  lost = committed ? 0 : 1;
  return committed;
}

// Runs the exchanges at the front whose targets are in a row.
RunResult exchange(Backend& backend, std::byte* base, std::span<const FillStep> steps) noexcept {
  RunResult result;
  std::size_t end = steps.front().target.begin;
  std::size_t decommitted = 0;
  for (const FillStep& step : steps) {
    if (step.kind != Kind::exchange || step.target.begin != end) break;
    result.status = backend.decommit(base + step.source.begin, step.source.bytes());
    if (!result.status) break;
    end = step.target.end;
    ++decommitted;
  }
  if (decommitted == 0) return result;
  const std::size_t begin = steps.front().target.begin;
  if (const Status committed = backend.commit(base + begin, end - begin); !committed) return {.status = committed, .lost = decommitted};
  result.done = decommitted;
  return result;
}

}  // namespace

RunResult run_steps(Backend& backend, std::byte* base, std::span<const FillStep> steps, std::span<const Loan> loans) noexcept {
  RunResult result;
  while (result.done < steps.size()) {
    const FillStep& step = steps[result.done];
    if (step.kind == Kind::exchange) {
      const RunResult exchanged = exchange(backend, base, steps.subspan(result.done));
      result = {.status = exchanged.status, .done = result.done + exchanged.done, .lost = exchanged.lost};
      if (!result.status) break;
      continue;
    }
    const MovedMemory target{base + step.target.begin, step.target.bytes()};
    const MovedMemory source = step.kind == Kind::borrow ? MovedMemory{loans[step.loan].address, loans[step.loan].bytes}
                                                         : MovedMemory{base + step.source.begin, step.source.bytes()};
    if (step.kind == Kind::commit)
      result.status = backend.commit(target.address, target.bytes);
    else if (step.kind == Kind::move_in_use)
      result.status = move_in_use(backend, source, target);
    else
      result.status = move(backend, source, target, result.lost);
    if (!result.status) break;
    ++result.done;
  }
  return result;
}

}  // namespace berth::internal::memory
