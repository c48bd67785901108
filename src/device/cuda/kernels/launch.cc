// SPDX-License-Identifier: Apache-2.0
#include "device/cuda/kernels/launch.h"

#include <bit>
#include <cstdint>
#include <cstring>

#include "device/cuda/kernels/kernel_set.h"
#include "device/cuda/kernels/tasks.h"

// The launches of each kernel family: how many blocks, and what they are told.
namespace berth::internal::device::cuda {

namespace {

constexpr std::uint64_t kMostParts = std::uint64_t{1} << 30;

std::uint32_t quotient_up(std::uint32_t dividend, std::uint32_t divisor) noexcept { return (dividend + divisor - 1) / divisor; }

std::uint64_t blocks_of(const ElementsTask& task) noexcept { return quotient_up(task.elements, kThreads * kElementsInFlight); }

CUkernel of_pair(const KernelSet::Pairs& pairs, DType from, DType to) noexcept {
  return pairs[static_cast<std::size_t>(from)][static_cast<std::size_t>(to)];
}

// The number of parts of a piece. A misaligned target has a shorter first part, and so may need one more.
std::uint64_t parts_of(const BytePiece& piece) noexcept {
  const std::uint64_t misplaced = reinterpret_cast<std::uintptr_t>(piece.target) % 16;
  return (piece.bytes + misplaced + kPartBytes - 1) / kPartBytes;
}

}  // namespace

Status launch_rows(DType from, DType to, const RowsTask& task, StreamHandle stream) noexcept {
  const Result<const KernelSet*> set = KernelSet::get();
  if (!set) return set.failure();
  // A row without a full vector still has its ends.
  const RowWork work = row_work(static_cast<int>(size_bytes(from)), static_cast<int>(size_bytes(to)));
  RowsTask cut = task;
  cut.tiles = Divider(quotient_up(task.elements, work.block_elements()));
  return launch(of_pair((*set)->rows, from, to), std::uint64_t{cut.tiles.divisor} * task.rows, &cut, stream);
}

Status launch_tiles(DType from, DType to, const TilesTask& task, StreamHandle stream) noexcept {
  const Result<const KernelSet*> set = KernelSet::get();
  if (!set) return set.failure();
  TilesTask cut = task;
  cut.tiles_along_source = Divider(quotient_up(task.along_source, tile_along_source(size_bytes(from))));
  cut.tiles_along_target = Divider(quotient_up(task.along_target, tile_along_target(size_bytes(to))));
  const std::uint64_t blocks = std::uint64_t{cut.tiles_along_source.divisor} * cut.tiles_along_target.divisor * task.matrices;
  return launch(of_pair((*set)->tiles, from, to), blocks, &cut, stream);
}

Status launch_moves(std::size_t element_bytes, const ElementsTask& task, StreamHandle stream) noexcept {
  const Result<const KernelSet*> set = KernelSet::get();
  if (!set) return set.failure();
  return launch((*set)->moves[static_cast<std::size_t>(std::countr_zero(element_bytes))], blocks_of(task), &task, stream);
}

Status launch_conversions(const ElementsTask& task, StreamHandle stream) noexcept {
  const Result<const KernelSet*> set = KernelSet::get();
  return set ? launch((*set)->conversions, blocks_of(task), &task, stream) : Status(set.failure());
}

Status launch_fill(void* target, std::size_t bytes, std::span<const std::byte> pattern, StreamHandle stream) noexcept {
  const std::size_t size = pattern.size();
  const bool is_size = size == 1 || size == 2 || size == 4 || size == 8 || size == 16;
  if (!is_size || bytes % size != 0)
    return Failure{ErrorCode::invalid_argument, 0, "a pattern has 1, 2, 4, 8 or 16 bytes and divides the target"};
  if (bytes == 0) return {};
  const Result<const KernelSet*> set = KernelSet::get();
  if (!set) return set.failure();
  const std::size_t misplaced = reinterpret_cast<std::uintptr_t>(target) % 16;
  const std::size_t to_multiple = misplaced == 0 ? 0 : 16 - misplaced;
  FillTask task;
  // A short target that contains no multiple of 16: there are no vectors, and all its bytes are `behind` its
  // start.
  if (to_multiple >= bytes) {
    task.target = static_cast<std::byte*>(target);
    std::byte whole[16];
    for (std::size_t i = 0; i < 16; ++i) whole[i] = pattern[i % size];
    std::memcpy(&task.pattern, whole, 16);
    task.behind = static_cast<std::uint32_t>(bytes);
    return launch((*set)->fill, 1, &task, stream);
  }
  task.target = static_cast<std::byte*>(target) + to_multiple;
  task.before = static_cast<std::uint32_t>(to_multiple);
  task.vectors = (bytes - to_multiple) / 16;
  task.behind = static_cast<std::uint32_t>((bytes - to_multiple) % 16);
  std::byte turned[16];
  for (std::size_t i = 0; i < 16; ++i) turned[i] = pattern[(to_multiple + i) % size];
  std::memcpy(&task.pattern, turned, 16);
  const std::uint64_t blocks = (task.vectors + kThreads * kFillInFlight - 1) / (kThreads * kFillInFlight);
  return launch((*set)->fill, blocks == 0 ? 1 : blocks, &task, stream);
}

Status launch_gather(std::span<const BytePiece> pieces, StreamHandle stream) noexcept {
  GatherTask task;
  std::uint64_t parts = 0;
  const auto flush = [&]() noexcept {
    if (task.pieces == 0) return Status();
    const Result<const KernelSet*> set = KernelSet::get();
    const Status done = set ? launch((*set)->gather, parts, &task, stream) : Status(set.failure());
    task.pieces = 0;
    parts = 0;
    return done;
  };
  for (const BytePiece& piece : pieces) {
    if (piece.bytes == 0) continue;
    const std::uint64_t more = parts_of(piece);
    if (more > kMostParts) return Failure{ErrorCode::unsupported, 0, "a piece of a gather is larger than any memory"};
    if (task.pieces == kMostPieces || parts + more > kMostParts) {
      if (const Status done = flush(); !done) return done;
    }
    parts += more;
    task.last_parts[task.pieces] = static_cast<std::uint32_t>(parts);
    task.list[task.pieces++] = piece;
  }
  return flush();
}

}  // namespace berth::internal::device::cuda
