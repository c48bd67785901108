// SPDX-License-Identifier: Apache-2.0
#include "device/cuda/kernels/device_memory.cuh"
#include "device/cuda/kernels/pairs.h"
#include "device/cuda/kernels/quads.h"

// Tiled transposes with conversion. A block reads a tile along the contiguous runs of the source, 16 bytes at a
// time, transposes it in shared memory, and writes it along the contiguous runs of the target, 16 bytes at a
// time. Elements are converted before they are transposed, and those smaller than a word are first combined
// with their neighbours in the target to words, so that shared memory is written and read without bank
// conflicts:
//
//     a thread reads        cells, for 4-byte targets    for 2-byte targets        for 1-byte targets
//     a0 a1 a2 a3 of b      [a0 b] [a1 b] …              [a0 b, a0 b+1] …          [a0 b, a0 b+1, a0 b+2, a0 b+3] …
//
// A row of shared memory holds the elements of one `a` along the target, in chunks of 16 bytes. The chunks are
// swizzled: their index is XORed with the index of the vector that `a` came from, so that the 8 lanes that
// write one chunk of 8 vectors use 8 different groups of banks.
namespace berth::internal::device::cuda {

namespace {

template <DType From, DType To>
struct TileShape {
  static constexpr int kFrom = static_cast<int>(size_bytes(From));
  static constexpr int kTo = static_cast<int>(size_bytes(To));
  // elements per load along the source
  static constexpr int kVector = 16 / kFrom;
  static constexpr int kTogether = kTo < 4 ? 4 / kTo : 1;  // source runs per cell
  static constexpr int kCell = kTo < 4 ? 4 : kTo;          // bytes
  // elements of a tile along the source
  static constexpr int kA = tile_along_source(kFrom);
  static constexpr int kB = tile_along_target(kTo);  // and along the target
  static constexpr int kRowBytes = kB * kTo;
  static constexpr int kChunks = kRowBytes / 16;
  static constexpr int kVectorsA = kA / kVector;
  // per thread; each is kTogether vectors
  static constexpr int kUnits = kVectorsA * (kB / kTogether) / static_cast<int>(kThreads);
  static constexpr int kRowsAtOnce = static_cast<int>(kThreads) / kChunks;
  static_assert(kChunks >= 8 && kVectorsA % 8 == 0 && kUnits >= 1 && kA % kRowsAtOnce == 0);
};

// The kVector cells of one unit, each of kCell bytes.
template <class Shape>
struct Cells {
  std::uint32_t words[Shape::kVector][Shape::kCell / 4];
};

template <DType From, DType To>
__device__ __forceinline__ void convert_run(const Packed<16>& in, std::uint32_t (&out)[16 / size_bytes(From) * size_bytes(To) / 4]) {
  if constexpr (From == To) {
#pragma unroll
    for (int i = 0; i < 4; ++i) out[i] = in.words[i];
  } else {
    constexpr int kFrom = static_cast<int>(size_bytes(From));
    constexpr int kTo = static_cast<int>(size_bytes(To));
#pragma unroll
    for (int q = 0; q < 4 / kFrom; ++q) {
      Quad<From> quad;
#pragma unroll
      for (int i = 0; i < kFrom; ++i) quad.words[i] = in.words[q * kFrom + i];
      const Quad<To> made = convert<From, To>(quad);
#pragma unroll
      for (int i = 0; i < kTo; ++i) out[q * kTo + i] = made.words[i];
    }
  }
}

// Interleaves the elements of adjacent runs.
template <DType From, DType To, class Shape = TileShape<From, To>>
__device__ __forceinline__ Cells<Shape> make_cells(const Packed<16> (&runs)[Shape::kTogether]) {
  constexpr int kWords = Shape::kVector * Shape::kTo / 4;
  std::uint32_t out[Shape::kTogether][kWords];
#pragma unroll
  for (int run = 0; run < Shape::kTogether; ++run) convert_run<From, To>(runs[run], out[run]);
  Cells<Shape> cells;
  if constexpr (Shape::kTo >= 4) {
#pragma unroll
    for (int i = 0; i < kWords; ++i) cells.words[i / (Shape::kTo / 4)][i % (Shape::kTo / 4)] = out[0][i];
  } else if constexpr (Shape::kTo == 2) {
#pragma unroll
    for (int i = 0; i < kWords; ++i) {
      cells.words[2 * i][0] = __byte_perm(out[0][i], out[1][i], 0x5410);
      cells.words[2 * i + 1][0] = __byte_perm(out[0][i], out[1][i], 0x7632);
    }
  } else {
#pragma unroll
    for (int i = 0; i < kWords; ++i) {
      const std::uint32_t low01 = __byte_perm(out[0][i], out[1][i], 0x5140);
      const std::uint32_t low23 = __byte_perm(out[2][i], out[3][i], 0x5140);
      const std::uint32_t high01 = __byte_perm(out[0][i], out[1][i], 0x7362);
      const std::uint32_t high23 = __byte_perm(out[2][i], out[3][i], 0x7362);
      cells.words[4 * i][0] = __byte_perm(low01, low23, 0x5410);
      cells.words[4 * i + 1][0] = __byte_perm(low01, low23, 0x7632);
      cells.words[4 * i + 2][0] = __byte_perm(high01, high23, 0x5410);
      cells.words[4 * i + 3][0] = __byte_perm(high01, high23, 0x7632);
    }
  }
  return cells;
}

template <DType From, DType To>
class Tile {
 public:
  using Shape = TileShape<From, To>;

  __device__ Tile(const TilesTask& task, std::byte* shared) : task_(task), shared_(shared) {
    const std::uint32_t rest = task.tiles_along_source.quotient(blockIdx.x);
    a_ = (blockIdx.x - rest * task.tiles_along_source.divisor) * Shape::kA;
    const std::uint32_t matrix = task.tiles_along_target.quotient(rest);
    b_ = (rest - matrix * task.tiles_along_target.divisor) * Shape::kB;
    const Offsets offsets = task.outer.at(matrix);
    source_ = task.source + offsets.source + static_cast<std::int64_t>(b_) * task.source_step + std::size_t{a_} * Shape::kFrom;
    target_ = task.target + offsets.target + static_cast<std::int64_t>(a_) * task.target_step + std::size_t{b_} * Shape::kTo;
    a_count_ = min(task.along_source - a_, static_cast<std::uint32_t>(Shape::kA));
    b_count_ = min(task.along_target - b_, static_cast<std::uint32_t>(Shape::kB));
  }

  __device__ void run() const {
    const bool full = a_count_ == Shape::kA && b_count_ == Shape::kB;
    if (full && task_.wide_source)
      read_all([](const std::byte* at) { return load<16>(at); });
    else if (full && !task_.wide_source && has_room_around())
      read_all([](const std::byte* at) { return load_anywhere(at); });
    else
      read_carefully();
    __syncthreads();
    if (full && task_.wide_target)
      write_all();
    else if (full)
      write_shifted();
    else
      write_carefully();
  }

 private:
  // The vector along the source, and the cell along the target, of a thread's unit.
  __device__ static std::uint32_t unit_a(int unit) {
    const std::uint32_t group = threadIdx.x / 32 + 8 * unit;
    return threadIdx.x % 8 + 8 * (group % (Shape::kVectorsA / 8));
  }
  __device__ static std::uint32_t unit_b(int unit) {
    const std::uint32_t group = threadIdx.x / 32 + 8 * unit;
    return threadIdx.x % 32 / 8 + 4 * (group / (Shape::kVectorsA / 8));
  }
  __device__ const std::byte* run_at(std::uint32_t vector, std::uint32_t b) const {
    return source_ + static_cast<std::int64_t>(b) * task_.source_step + vector * 16;
  }

  // The address of a row's chunk in shared memory.
  __device__ std::byte* chunk(std::uint32_t a, std::uint32_t number) const {
    return shared_ + a * Shape::kRowBytes + (number ^ (a / Shape::kVector & 7)) * 16;
  }
  __device__ Packed<16> read_chunk(std::uint32_t a, std::uint32_t number) const {
    const uint4 read = *reinterpret_cast<const uint4*>(chunk(a, number));
    return {{read.x, read.y, read.z, read.w}};
  }

  __device__ void put(std::uint32_t vector, std::uint32_t cell, const Cells<Shape>& cells) const {
    const std::uint32_t offset = cell * Shape::kCell;
#pragma unroll
    for (int i = 0; i < Shape::kVector; ++i) {
      std::byte* const at = chunk(vector * Shape::kVector + i, offset / 16) + offset % 16;
      Packed<Shape::kCell> value;
#pragma unroll
      for (int word = 0; word < Shape::kCell / 4; ++word) value.words[word] = cells.words[i][word];
      store<Shape::kCell>(at, value);
    }
  }

  // Whether the aligned vectors around every vector of the tile are readable.
  __device__ bool has_room_around() const {
    const std::byte* const last = run_at(Shape::kVectorsA - 1, Shape::kB - 1);
    const std::byte* const first = run_at(0, 0);
    const std::byte* const last_of_first = run_at(Shape::kVectorsA - 1, 0);
    const std::byte* const first_of_last = run_at(0, Shape::kB - 1);
    const auto inside = [this](const std::byte* at) { return has_room(at, task_.source_begin, task_.source_end); };
    return inside(first) && inside(last) && inside(last_of_first) && inside(first_of_last);
  }

  template <class Load>
  __device__ __forceinline__ void read_all(Load load_vector) const {
    Packed<16> runs[Shape::kUnits][Shape::kTogether];
#pragma unroll
    for (int unit = 0; unit < Shape::kUnits; ++unit) {
#pragma unroll
      for (int i = 0; i < Shape::kTogether; ++i) runs[unit][i] = load_vector(run_at(unit_a(unit), unit_b(unit) * Shape::kTogether + i));
    }
#pragma unroll
    for (int unit = 0; unit < Shape::kUnits; ++unit) put(unit_a(unit), unit_b(unit), make_cells<From, To>(runs[unit]));
  }

  __device__ __forceinline__ void read_carefully() const {
#pragma unroll 1
    for (int unit = 0; unit < Shape::kUnits; ++unit) {
      const std::uint32_t a = unit_a(unit) * Shape::kVector;
      const std::uint32_t b = unit_b(unit) * Shape::kTogether;
      if (a >= a_count_ || b >= b_count_) continue;
      const std::uint32_t count = min(a_count_ - a, static_cast<std::uint32_t>(Shape::kVector));
      Packed<16> runs[Shape::kTogether];
#pragma unroll
      for (int i = 0; i < Shape::kTogether; ++i) {
        const std::byte* const at = run_at(unit_a(unit), b + i);
        runs[i] = {};
        if (b + i >= b_count_) continue;
        const bool whole = count == Shape::kVector && has_room(at, task_.source_begin, task_.source_end);
        runs[i] = whole ? load_anywhere(at) : load_some<Shape::kFrom>(at, count);
      }
      put(unit_a(unit), unit_b(unit), make_cells<From, To>(runs));
    }
  }

  __device__ __forceinline__ void write_all() const {
    const std::uint32_t number = threadIdx.x % Shape::kChunks;
#pragma unroll
    for (int pass = 0; pass < Shape::kA / Shape::kRowsAtOnce; ++pass) {
      const std::uint32_t a = threadIdx.x / Shape::kChunks + pass * Shape::kRowsAtOnce;
      store<16>(target_ + static_cast<std::int64_t>(a) * task_.target_step + number * 16, read_chunk(a, number));
    }
  }

  // A full tile with misaligned rows: writes the aligned vectors inside each row, and then both ends, which
  // together are one vector, by elements.
  __device__ __forceinline__ void write_shifted() const {
    const std::uint32_t number = threadIdx.x % Shape::kChunks;
#pragma unroll
    for (int pass = 0; pass < Shape::kA / Shape::kRowsAtOnce; ++pass) {
      const std::uint32_t a = threadIdx.x / Shape::kChunks + pass * Shape::kRowsAtOnce;
      std::byte* const row = target_ + static_cast<std::int64_t>(a) * task_.target_step;
      const std::uint32_t before = past_vector(row);
      const Packed<16> last = read_chunk(a, number);
      if (before == 0)
        store<16>(row + number * 16, last);
      else if (number != 0)
        store<16>(row + number * 16 - before, middle(read_chunk(a, number - 1), last, 16 - before));
    }
    constexpr std::uint32_t kEnds = 16 / Shape::kTo;
#pragma unroll
    for (std::uint32_t i = threadIdx.x; i < Shape::kA * kEnds; i += kThreads) {
      const std::uint32_t a = i / kEnds;
      std::byte* const row = target_ + static_cast<std::int64_t>(a) * task_.target_step;
      const std::uint32_t before = past_vector(row);
      if (before == 0) continue;
      const std::uint32_t first = (16 - before) / Shape::kTo;  // elements before the first vector
      const std::uint32_t number_of = i % kEnds;
      const std::uint32_t at = (number_of < first ? number_of : Shape::kB - kEnds + number_of) * Shape::kTo;
      copy_element(row + at, chunk(a, at / 16) + at % 16);
    }
  }
  __device__ static std::uint32_t past_vector(const std::byte* at) {
    return static_cast<std::uint32_t>(reinterpret_cast<std::uintptr_t>(at) & 15);
  }

  // By the aligned vectors of the target, which may begin inside a chunk; the first and the last of a row may
  // be partial.
  __device__ __forceinline__ void write_carefully() const {
#pragma unroll 1
    for (std::uint32_t a = threadIdx.x / Shape::kChunks; a < a_count_; a += Shape::kRowsAtOnce) {
      std::byte* const row = target_ + static_cast<std::int64_t>(a) * task_.target_step;
      const auto before = static_cast<std::int32_t>(reinterpret_cast<std::uintptr_t>(row) & 15);
      const auto bytes = static_cast<std::int32_t>(b_count_ * Shape::kTo);
#pragma unroll 1
      for (std::uint32_t number = threadIdx.x % Shape::kChunks; number <= Shape::kChunks; number += Shape::kChunks)
        write_vector(row, a, static_cast<std::int32_t>(number * 16) - before, bytes);
    }
  }

  // Writes the 16 bytes of a row from `begin` on, clipped to the row; `begin` may be negative.
  __device__ __forceinline__ void write_vector(std::byte* row, std::uint32_t a, std::int32_t begin, std::int32_t bytes) const {
    if (begin >= 0 && begin + 16 <= bytes) {
      const auto from = static_cast<std::uint32_t>(begin & 15);
      const auto number = static_cast<std::uint32_t>(begin) / 16;
      const Packed<16> first = read_chunk(a, number);
      store<16>(row + begin, from == 0 ? first : middle(first, read_chunk(a, number + 1), from));
      return;
    }
#pragma unroll
    for (int i = 0; i < 16 / Shape::kTo; ++i) {
      const std::int32_t at = begin + i * Shape::kTo;
      if (at < 0 || at >= bytes) continue;
      const std::byte* const element = chunk(a, static_cast<std::uint32_t>(at) / 16) + at % 16;
      copy_element(row + at, element);
    }
  }

  __device__ static void copy_element(std::byte* to, const std::byte* from) {
    if constexpr (Shape::kTo == 1)
      *to = *from;
    else if constexpr (Shape::kTo == 2)
      *reinterpret_cast<unsigned short*>(to) = *reinterpret_cast<const unsigned short*>(from);
    else if constexpr (Shape::kTo == 4)
      *reinterpret_cast<unsigned*>(to) = *reinterpret_cast<const unsigned*>(from);
    else if constexpr (Shape::kTo == 8)
      *reinterpret_cast<uint2*>(to) = *reinterpret_cast<const uint2*>(from);
    else
      *reinterpret_cast<uint4*>(to) = *reinterpret_cast<const uint4*>(from);
  }

  const TilesTask& task_;
  std::byte* const shared_;
  const std::byte* source_;
  std::byte* target_;
  std::uint32_t a_;  // index of the tile's first element along the source
  std::uint32_t b_;
  std::uint32_t a_count_;  // tiles at the borders are partial
  std::uint32_t b_count_;
};

template <DType From, DType To>
__device__ __forceinline__ void turn_tiles(const TilesTask& task) {
  using Shape = TileShape<From, To>;
  __shared__ __align__(16) std::byte shared[Shape::kA * Shape::kRowBytes];
  Tile<From, To>(task, shared).run();
}

}  // namespace

#define BERTH_CUDA_TILES(from, to)                                                                                     \
  extern "C" __global__ void __launch_bounds__(kThreads) tiles_##from##_##to(const __grid_constant__ TilesTask task) { \
    if constexpr (has_tiles(DType::from, DType::to)) turn_tiles<DType::from, DType::to>(task);                         \
  }

BERTH_CUDA_TILE_DTYPES(BERTH_CUDA_TILES, f32)
BERTH_CUDA_TILE_DTYPES(BERTH_CUDA_TILES, f16)
BERTH_CUDA_TILE_DTYPES(BERTH_CUDA_TILES, bf16)
BERTH_CUDA_TILE_DTYPES(BERTH_CUDA_TILES, f8e4m3)
BERTH_CUDA_TILE_DTYPES(BERTH_CUDA_TILES, f8e5m2)
BERTH_CUDA_TILE_DTYPES(BERTH_CUDA_TILES, i8)
BERTH_CUDA_MOVED_DTYPES(BERTH_CUDA_TILES)

}  // namespace berth::internal::device::cuda
