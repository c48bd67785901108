// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <functional>
#include <limits>
#include <string>
#include <vector>

#include "copy/host/conversion.h"
#include "copy/kernels/kernels.h"
#include "copy/placed.h"
#include "copy/telling_values.h"
#include "support/scale.h"

// Kernels at their ends: every size, every misalignment, and no byte read or written outside their elements.
// Compared with the plain table.
namespace berth::testing {

using namespace internal::copy;
namespace {

constexpr std::size_t kMostElements = 300;
constexpr std::array<std::size_t, kSizeCount> kSizes = {1, 2, 4, 8, 16};
constexpr std::array<std::ptrdiff_t, 11> kSteps = {-3, -2, -1, 0, 1, 2, 3, 4, 5, 16, 1000};

struct EdgeCase {
  std::size_t count;
  std::size_t source_offset;
  std::size_t target_offset;
};

// Counts 0 to 300 and misalignments 0 to 63 of both sides, so that every pair of values of two of the three
// occurs. Scaled down, fewer pairs occur.
template <class Visit>
void for_each_case(Visit visit) {
  const std::uint64_t lines = std::min<std::uint64_t>(scaled(64, 2), 64);
  for (std::size_t count = 0; count <= kMostElements; ++count) {
    for (std::size_t line = 0; line < lines; ++line) {
      const std::size_t offset = (line * 37 + count) % 64;
      visit(EdgeCase{count, offset, (offset * 5 + count * 3) % 64});
      if (::testing::Test::HasFatalFailure()) return;
    }
  }
}

std::vector<std::byte> random_bytes(std::size_t count) { return TellingValues(seed()).make(DType::u8, count); }

std::string describe(const Kernels& table, const char* what, std::size_t size, const EdgeCase& c) {
  return std::string(table.name) + " " + what + " of " + std::to_string(size) + " bytes: " + std::to_string(c.count) +
         " elements, source at " + std::to_string(c.source_offset) + ", target at " + std::to_string(c.target_offset);
}

TEST(KernelEdges, ConversionsTouchTheirElementsOnly) {
  TellingValues values(seed());
  std::size_t cases = 0;
  for (const DType from : kKernelDTypes) {
    const std::vector<std::byte> elements = values.make(from, kMostElements);
    for (const DType to : kKernelDTypes) {
      const std::size_t size = size_bytes(to);
      std::vector<std::byte> expected(kMostElements * size);
      find_conversion(plain_kernels(), from, to).run(elements.data(), expected.data(), kMostElements);
      for_each_case([&](const EdgeCase& c) {
        const Misaligned source(elements, c.count * size_bytes(from), c.source_offset);
        Guarded right(c.count * size, c.target_offset);
        std::copy_n(expected.begin(), c.count * size, right.data());
        for (const Kernels& table : all_kernels()) {
          const Guarded target(c.count * size, c.target_offset);
          find_conversion(table, from, to).run(source.data(), target.data(), c.count);
          ASSERT_TRUE(target.equals(right)) << to_string(from) << " → " << to_string(to) << ", " << describe(table, "conversion", size, c);
          ++cases;
        }
      });
      if (HasFatalFailure()) return;
    }
  }
  did(std::to_string(cases) + " conversions");
}

// Many elements are converted in another order than few.
TEST(KernelEdges, LongConversionsTouchTheirElementsOnly) {
  constexpr std::size_t kMost = kManyElements + 2 * 64 + 3;
  TellingValues values(seed());
  std::size_t cases = 0;
  for (const DType from : kKernelDTypes) {
    const std::vector<std::byte> elements = values.make(from, kMost);
    for (const DType to : kKernelDTypes) {
      const std::size_t size = size_bytes(to);
      std::vector<std::byte> expected(kMost * size);
      find_conversion(plain_kernels(), from, to).run(elements.data(), expected.data(), kMost);
      for (std::size_t count = kManyElements - 2; count <= kMost; ++count) {
        const EdgeCase c{count, count % 64, count * 5 % 64};
        const Misaligned source(elements, count * size_bytes(from), c.source_offset);
        const Guarded right(count * size, c.target_offset);
        std::copy_n(expected.begin(), count * size, right.data());
        for (const Kernels& table : all_kernels()) {
          if (&table == &all_kernels().back()) continue;  // it made the expected result
          const Guarded target(count * size, c.target_offset);
          find_conversion(table, from, to).run(source.data(), target.data(), count);
          ASSERT_TRUE(target.equals(right)) << to_string(from) << " → " << to_string(to) << ", " << describe(table, "conversion", size, c);
          ++cases;
        }
      }
    }
  }
  did(std::to_string(cases) + " conversions");
}

// Limits the elements of rows with a large step, so that they stay small.
std::size_t bounded(std::size_t count, std::ptrdiff_t step) { return step == 1000 ? count % 20 : count; }

TEST(KernelEdges, GathersTouchTheirElementsOnly) {
  const std::vector<std::byte> bytes = random_bytes((kMostElements * 16 + 20 * 1000) * 16);
  std::size_t cases = 0;
  for (std::size_t s = 0; s < kSizeCount; ++s) {
    for (const std::ptrdiff_t step : kSteps) {
      for_each_case([&](EdgeCase c) {
        c.count = bounded(c.count, step);
        const std::size_t apart = static_cast<std::size_t>(std::abs(step));
        const std::size_t reach = c.count == 0 ? 0 : (c.count - 1) * apart + 1;
        const Misaligned source(bytes, reach * kSizes[s], c.source_offset);
        const std::byte* const first = source.data() + (step < 0 && reach != 0 ? (reach - 1) * kSizes[s] : 0);
        const Guarded right(c.count * kSizes[s], c.target_offset);
        plain_kernels().gather[s](first, step, right.data(), c.count);
        for (const Kernels& table : all_kernels()) {
          const Guarded target(c.count * kSizes[s], c.target_offset);
          table.gather[s](first, step, target.data(), c.count);
          ASSERT_TRUE(target.equals(right)) << describe(table, "gather", kSizes[s], c) << ", step " << step;
          ++cases;
        }
      });
      if (HasFatalFailure()) return;
    }
  }
  did(std::to_string(cases) + " gathers");
}

TEST(KernelEdges, ScattersTouchTheirElementsOnly) {
  const std::vector<std::byte> bytes = random_bytes(kMostElements * 16);
  std::size_t cases = 0;
  for (std::size_t s = 0; s < kSizeCount; ++s) {
    for (const std::ptrdiff_t step : kSteps) {
      if (step == 0) continue;
      for_each_case([&](EdgeCase c) {
        c.count = bounded(c.count, step);
        const std::size_t apart = static_cast<std::size_t>(std::abs(step));
        const std::size_t reach = c.count == 0 ? 0 : ((c.count - 1) * apart + 1) * kSizes[s];
        const Misaligned source(bytes, c.count * kSizes[s], c.source_offset);
        const std::size_t first = step < 0 && reach != 0 ? reach - kSizes[s] : 0;
        const Guarded right(reach, c.target_offset);
        plain_kernels().scatter[s](source.data(), right.data() + first, step, c.count);
        for (const Kernels& table : all_kernels()) {
          const Guarded target(reach, c.target_offset);
          table.scatter[s](source.data(), target.data() + first, step, c.count);
          ASSERT_TRUE(target.equals(right)) << describe(table, "scatter", kSizes[s], c) << ", step " << step;
          ++cases;
        }
      });
      if (HasFatalFailure()) return;
    }
  }
  did(std::to_string(cases) + " scatters");
}

struct Plane {
  std::size_t rows;
  std::size_t columns;
  std::size_t gap;  // elements between two rows of the target
};

std::vector<Plane> planes() {
  std::vector<Plane> made;
  for (std::size_t rows = 0; rows <= 40; ++rows) {
    for (std::size_t columns = 0; columns <= 40; ++columns)
      for (const std::size_t gap : {0U, 1U, 5U, 64U}) made.push_back({rows, columns, gap});
  }
  for (const std::size_t large : {63U, 64U, 65U, 100U, 129U, 200U, 333U}) {
    for (const std::size_t other : {1U, 2U, 3U, 4U, 5U, 7U, 8U, 9U, 15U, 16U, 17U, 31U, 33U, 64U, 65U, 129U}) {
      for (const std::size_t gap : {0U, 3U}) {
        made.push_back({large, other, gap});
        made.push_back({other, large, gap});
      }
    }
  }
  return made;
}

TEST(KernelEdges, TransposesTouchTheirElementsOnly) {
  const std::vector<std::byte> bytes = random_bytes(333 * 129 * 16);
  std::size_t cases = 0;
  for (std::size_t s = 0; s < kSizeCount; ++s) {
    for (const Plane& plane : planes()) {
      const std::size_t stride = (plane.rows + plane.gap) * kSizes[s];
      const std::size_t reach = plane.columns == 0 || plane.rows == 0 ? 0 : (plane.columns - 1) * stride + plane.rows * kSizes[s];
      const std::size_t offset = (plane.rows * 7 + plane.columns * 3 + plane.gap) % 64;
      // Half of them at 0.
      const Misaligned source(bytes, plane.rows * plane.columns * kSizes[s], (offset * 5) % 64 * (offset % 2));
      const Guarded right(reach, offset);
      plain_kernels().transpose[s](source.data(), right.data(), plane.rows, plane.columns, static_cast<std::ptrdiff_t>(stride));
      for (const Kernels& table : all_kernels()) {
        const Guarded target(reach, offset);
        table.transpose[s](source.data(), target.data(), plane.rows, plane.columns, static_cast<std::ptrdiff_t>(stride));
        ASSERT_TRUE(target.equals(right)) << table.name << ": " << plane.rows << " × " << plane.columns << " elements of " << kSizes[s]
                                          << " bytes, with gaps of " << plane.gap;
        ++cases;
      }
    }
  }
  did(std::to_string(cases) + " transposes");
}

// Three parts, one below the other, each of which continues in the cache lines that the one above began; and
// the first by itself.
TEST(KernelEdges, VectorsAreTransposedByLines) {
  constexpr std::size_t kColumns = 5;
  const std::vector<std::byte> bytes = random_bytes(3 * 20 * kColumns * 16);
  std::size_t cases = 0;
  for (const Kernels& table : all_kernels()) {
    if (table.transpose_to_lines == nullptr) continue;
    for (std::size_t offset = 0; offset < kLineBytes; offset += 4) {
      for (std::size_t rows = 0; rows <= 20; ++rows) {
        const std::array<std::size_t, 3> parts = {rows, 4 + (rows + offset) % 9, 4 + rows % 5};
        const std::size_t count = rows < 4 ? 1 : 3;  // a run shorter than a line cannot continue another's line
        const std::size_t whole = count == 1 ? rows : parts[0] + parts[1] + parts[2];
        const auto stride = static_cast<std::ptrdiff_t>(whole * 16 + (rows * 3 + offset) % 11 * 4);
        const Guarded right(kColumns * static_cast<std::size_t>(stride), offset);
        const Guarded target(kColumns * static_cast<std::size_t>(stride), offset);
        std::array<std::byte, kColumns * kLineBytes> ends;
        std::size_t at = 0;
        for (std::size_t part = 0; part < count; at += parts[part++]) {
          const Misaligned source(bytes, parts[part] * kColumns * 16, (rows + part) % kLineBytes);
          plain_kernels().transpose[4](source.data(), right.data() + at * 16, parts[part], kColumns, stride);
          table.transpose_to_lines(source.data(), target.data() + at * 16, parts[part], kColumns, stride,
                                   {ends.data(), part != 0, part + 1 != count});
        }
        ASSERT_TRUE(target.equals(right)) << table.name << ": " << rows << " and more rows, the target " << offset << " bytes into a line";
        ++cases;
      }
    }
  }
  did(std::to_string(cases) + " transposes");
}

TEST(KernelEdges, FourRowsTakeTurns) {
  const std::vector<std::byte> bytes = random_bytes(12 * 200 * 4);
  std::size_t cases = 0;
  for (const Kernels& table : all_kernels()) {
    for (std::size_t s = 0; s < kSizeCount; ++s) {
      if (table.interleave_fours[s] == nullptr) continue;
      const std::size_t size = kSizes[s];
      for (std::size_t columns = 0; columns <= 150; ++columns) {
        for (const std::size_t rows : {0U, 4U, 12U}) {
          const std::size_t offset = (columns * 7 + rows) % 64;
          // The step of the source may be negative or 0.
          const auto step = static_cast<std::ptrdiff_t>((columns + columns % 7) * size) * (columns % 4 == 3   ? -1
                                                                                           : columns % 4 == 2 ? 0
                                                                                                              : 1);
          const std::size_t walked = rows == 0 ? 0 : (rows - 1) * static_cast<std::size_t>(std::abs(step));
          const Misaligned source(bytes, rows == 0 ? 0 : walked + columns * size, offset);
          const std::byte* const first = source.data() + (step < 0 ? walked : 0);
          const Guarded right(rows * columns * size, offset);
          for (std::size_t row = 0; row < rows; ++row) {
            for (std::size_t column = 0; column < columns; ++column)
              std::memcpy(right.data() + ((row / 4 * columns + column) * 4 + row % 4) * size,
                          first + static_cast<std::ptrdiff_t>(row) * step + static_cast<std::ptrdiff_t>(column * size), size);
          }
          const Guarded target(rows * columns * size, offset);
          const std::ptrdiff_t ahead = columns % 3 == 0 ? 0 : columns % 3 == 1 ? -64 : std::numeric_limits<std::ptrdiff_t>::max() / 2;
          table.interleave_fours[s](first, step, target.data(), rows, columns, ahead);
          ASSERT_TRUE(target.equals(right)) << table.name << ": " << rows << " rows of " << columns << " elements of " << size << " bytes";
          ++cases;
        }
      }
    }
  }
  did(std::to_string(cases) + " times some rows");
}

TEST(KernelEdges, RunsOfBytesTouchTheirBytesOnly) {
  const std::vector<std::byte> bytes = random_bytes(6 * 1300);
  std::size_t cases = 0;
  for (std::size_t size = 0; size <= 1100; ++size) {
    for (std::size_t runs = 0; runs <= 5; ++runs) {
      // The step of the source may be negative or 0, or the source may overlap itself.
      for (const std::ptrdiff_t step :
           {std::ptrdiff_t{0}, std::ptrdiff_t{7}, static_cast<std::ptrdiff_t>(size + size % 3), std::ptrdiff_t{-5}}) {
        const std::size_t walked = runs == 0 ? 0 : (runs - 1) * static_cast<std::size_t>(std::abs(step));
        const Misaligned source(bytes, runs == 0 ? 0 : walked + size, size % 64);
        const std::byte* const first = source.data() + (step < 0 ? walked : 0);
        const std::size_t stride = size + (size * 11 + runs) % 20;
        // Prefetched, but never read: even an unmapped address.
        const std::ptrdiff_t ahead = size % 3 == 0 ? 0 : size % 3 == 1 ? 16 * step : std::numeric_limits<std::ptrdiff_t>::max() / 2;
        const Guarded right(runs * stride, (size * 3) % 64);
        plain_kernels().copy_runs(first, step, right.data(), static_cast<std::ptrdiff_t>(stride), runs, size, 0);
        for (const Kernels& table : all_kernels()) {
          const Guarded target(runs * stride, (size * 3) % 64);
          table.copy_runs(first, step, target.data(), static_cast<std::ptrdiff_t>(stride), runs, size, ahead);
          ASSERT_TRUE(target.equals(right)) << table.name << ": " << runs << " runs of " << size << " bytes, step " << step;
          const Guarded streamed(runs * stride, (size * 3) % 64);
          table.stream_runs(first, step, streamed.data(), static_cast<std::ptrdiff_t>(stride), runs, size, {});
          table.flush_stream();
          ASSERT_TRUE(streamed.equals(right)) << table.name << ", streamed: " << runs << " runs of " << size << " bytes, step " << step;
          cases += 2;
        }
      }
    }
  }
  did(std::to_string(cases) + " times some runs");
}

// Runs in three parts, each of which begins in the cache line in which the one before ends.
TEST(KernelEdges, StreamedRunsGoOnInTheLinesThatOthersBegan) {
  constexpr std::size_t kRuns = 4;
  constexpr std::size_t kLongest = 3 * 260;
  const std::vector<std::byte> bytes = random_bytes(kRuns * kLongest);
  std::size_t cases = 0;
  for (std::size_t offset = 0; offset < kLineBytes; offset += 3) {
    for (std::size_t size = kLineBytes; size <= 260; size += 1 + size % 5) {
      const std::array<std::size_t, 3> parts = {size, kLineBytes + (size * 7 + offset) % 196, kLineBytes + (size + offset) % 70};
      const std::size_t whole = parts[0] + parts[1] + parts[2];
      const std::size_t stride = whole + (size * 11 + offset) % 40;
      const Guarded right(kRuns * stride, offset);
      plain_kernels().copy_runs(bytes.data(), kLongest, right.data(), static_cast<std::ptrdiff_t>(stride), kRuns, whole, 0);
      for (const Kernels& table : all_kernels()) {
        const Guarded target(kRuns * stride, offset);
        std::array<std::byte, kRuns * kLineBytes> ends;
        std::size_t at = 0;
        for (std::size_t part = 0; part < 3; at += parts[part++]) {
          const Misaligned source(bytes, kRuns * kLongest, (size + part) % kLineBytes);
          table.stream_runs(source.data() + at, kLongest, target.data() + at, static_cast<std::ptrdiff_t>(stride), kRuns, parts[part],
                            {ends.data(), part != 0, part != 2});
        }
        table.flush_stream();
        ASSERT_TRUE(target.equals(right)) << table.name << ": runs of " << parts[0] << " + " << parts[1] << " + " << parts[2]
                                          << " bytes, the first of them at " << offset;
        ++cases;
      }
    }
  }
  did(std::to_string(cases) + " times four runs in three parts");
}

// Both sides between guard pages, at the first and at the last byte: an access outside faults.
void between_fences(std::size_t source_bytes, std::size_t target_bytes, const std::function<void(const std::byte*, std::byte*)>& run) {
  static const Fenced source(1 << 17);
  static const Fenced target(1 << 17);
  run(source.first(source_bytes), target.first(target_bytes));
  run(source.last(source_bytes), target.last(target_bytes));
}

TEST(KernelEdges, NothingIsTouchedOutsideAPage) {
  for (const Kernels& table : all_kernels()) {
    for (std::size_t count = 0; count <= kMostElements; ++count) {
      for (const DType from : kKernelDTypes) {
        for (const DType to : kKernelDTypes)
          between_fences(count * size_bytes(from), count * size_bytes(to),
                         [&](const std::byte* a, std::byte* b) { find_conversion(table, from, to).run(a, b, count); });
      }
      for (std::size_t s = 0; s < kSizeCount; ++s) {
        for (const std::ptrdiff_t step : {-1, 0, 2, 3, 4, 5}) {
          const std::size_t reach = count == 0 ? 0 : ((count - 1) * static_cast<std::size_t>(std::abs(step)) + 1) * kSizes[s];
          const std::size_t first = step < 0 && reach != 0 ? reach - kSizes[s] : 0;
          between_fences(reach, count * kSizes[s], [&](const std::byte* a, std::byte* b) { table.gather[s](a + first, step, b, count); });
          if (step != 0)
            between_fences(count * kSizes[s], reach,
                           [&](const std::byte* a, std::byte* b) { table.scatter[s](a, b + first, step, count); });
        }
      }
    }
    for (std::size_t s = 0; s < kSizeCount; ++s) {
      for (const Plane& plane : planes()) {
        if (plane.rows * plane.columns * kSizes[s] > 1 << 17 || plane.gap != 0) continue;
        const std::size_t bytes = plane.rows * plane.columns * kSizes[s];
        between_fences(bytes, bytes, [&](const std::byte* a, std::byte* b) {
          table.transpose[s](a, b, plane.rows, plane.columns, static_cast<std::ptrdiff_t>(plane.rows * kSizes[s]));
        });
        if (table.interleave_fours[s] != nullptr && plane.rows % 4 == 0)
          between_fences(bytes, bytes, [&](const std::byte* a, std::byte* b) {
            table.interleave_fours[s](a, static_cast<std::ptrdiff_t>(plane.columns * kSizes[s]), b, plane.rows, plane.columns, 0);
          });
        if (table.transpose_to_lines != nullptr && kSizes[s] == 16)
          between_fences(bytes, bytes, [&](const std::byte* a, std::byte* b) {
            std::vector<std::byte> ends(plane.columns * kLineBytes);
            const bool long_enough = plane.rows >= 4;
            table.transpose_to_lines(a, b, plane.rows, plane.columns, static_cast<std::ptrdiff_t>(plane.rows * 16),
                                     {ends.data(), false, long_enough});
          });
      }
    }
  }
}

}  // namespace
}  // namespace berth::testing
