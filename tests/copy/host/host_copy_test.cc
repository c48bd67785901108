// SPDX-License-Identifier: Apache-2.0
#include "copy/host/host_copy.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <ostream>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/sanitizers.h"
#include "berth/copy/convert.h"
#include "copy/random_layout.h"
#include "copy/telling_values.h"
#include "support/scale.h"

// Whole copies and fills on the host, with random layouts, dtypes, threads and kernels, against a loop over all
// indices.
namespace berth::testing {

using namespace internal;
using namespace internal::copy;
namespace {

constexpr int kThreads[] = {1, 2, 5, 16};
constexpr std::byte kUntouched{0xab};

// One call each: under a sanitizer these tests would spend most of their time in loops over bytes.
bool are_same(const std::vector<std::byte>& a, const std::vector<std::byte>& b) {
  return a.size() == b.size() && (a.empty() || std::memcmp(a.data(), b.data(), a.size()) == 0);
}
void clear(std::vector<std::byte>& bytes) {
  if (!bytes.empty()) std::memset(bytes.data(), static_cast<int>(kUntouched), bytes.size());
}

// One side of a copy in a heap block of its own, which ends with the last byte that the layout reaches, and
// begins `before` bytes early.
struct Side {
  DType dtype = DType::u8;
  Layout layout;
  std::size_t before = 0;
  std::vector<std::byte> bytes;

  std::byte* data() { return bytes.data() + before + static_cast<std::size_t>(layout.first) * size_bytes(dtype); }
  HostSide view() { return {data(), dtype, layout.strides}; }
};

struct Copy {
  std::vector<std::int64_t> shape;
  Side source;
  Side target;
  std::vector<std::byte> expected;
  std::size_t run_bytes = 0;  // if not 0, it may be run as a HostRun

  HostCopy view() { return {shape, source.view(), target.view()}; }
  HostRun run() { return {source.data(), target.data(), run_bytes}; }
};

std::ostream& operator<<(std::ostream& out, const Copy& copy) {
  out << to_string(copy.source.dtype) << " → " << to_string(copy.target.dtype) << ", sizes and steps";
  for (std::size_t i = 0; i < copy.shape.size(); ++i)
    out << " " << copy.shape[i] << " (" << copy.source.layout.strides[i] << ", " << copy.target.layout.strides[i] << ")";
  return out;
}

// Every table, and a copy of each that uses non-temporal stores whatever the size.
std::span<const Kernels> tables() {
  static const std::vector<Kernels> all = [] {
    std::vector<Kernels> made(all_kernels().begin(), all_kernels().end());
    for (Kernels table : all_kernels()) {
      table.least_streamed = 0;
      made.push_back(table);
    }
    return made;
  }();
  return all;
}

std::string name_of(const Kernels& table) { return table.least_streamed == 0 ? std::string(table.name) + ", streamed" : table.name; }

// Makes copies with their expected results.
class Copies {
 public:
  explicit Copies(std::uint64_t seed) : random_(seed), values_(seed + 1) {}

  Random& random() { return random_; }
  int threads() { return kThreads[random_.below(std::size(kThreads))]; }
  const Kernels& kernels() { return tables()[random_.below(tables().size())]; }

  DType dtype() {
    return random_.one_in(8) ? all_dtypes()[random_.below(kDTypeCount)].dtype : kKernelDTypes[random_.below(kKernelDTypes.size())];
  }

  // Mostly small ones, so that there can be many.
  std::vector<std::int64_t> shape() {
    const std::uint64_t kind = random_.below(4000);
    return kind == 0 ? large_shape() : random_shape(random_, kind < 200 ? 30'000 : kind < 1600 ? 1'000 : 60);
  }
  // Large enough for several threads.
  std::vector<std::int64_t> large_shape() { return random_large_shape(random_, 600'000, 3'000'000); }

  // For a batch: small ones, or on both sides of the size from which a copy gets all threads.
  std::vector<std::int64_t> batch_shape(bool heavy) {
    if (!heavy) return random_shape(random_, 500);
    return random_.one_in(3) ? random_large_shape(random_, 300'000, 1'500'000) : random_large_shape(random_, 20'000, 100'000);
  }

  Copy make(std::vector<std::int64_t> shape) {
    Copy copy;
    copy.shape = std::move(shape);
    if (random_.one_in(100) && !copy.shape.empty()) copy.shape[random_.below(copy.shape.size())] = 0;
    copy.source = side(copy.shape, dtype(), Repeats::axes);
    copy.target = side(copy.shape, random_.one_in(3) ? copy.source.dtype : dtype(), Repeats::never);
    return finish(std::move(copy));
  }

  // Of elements that are contiguous on both sides and have one dtype, for which a batch has a short form.
  Copy make_run(std::int64_t elements) {
    Copy copy;
    copy.shape = {elements};
    copy.source.dtype = copy.target.dtype = dtype();
    copy.run_bytes = static_cast<std::size_t>(elements) * size_bytes(copy.source.dtype);
    for (Side* const side : {&copy.source, &copy.target}) {
      side->layout = {{1}, 0, elements};
      side->before = random_.below(64);
      side->bytes.assign(side->before + copy.run_bytes, kUntouched);
    }
    return finish(std::move(copy));
  }

  // The source is dense along the first axis, and the target along the second, with `gap` elements between its
  // rows. The target begins `into_line` bytes into a cache line.
  Copy make_transposed(std::vector<std::int64_t> shape, DType from, DType to, std::int64_t gap, std::size_t into_line) {
    Copy copy;
    const std::int64_t source_pitch = shape[0] + gap % 3;
    const std::int64_t pitch = shape[1] + gap;
    copy.source = {from, {{1, source_pitch}, 0, source_pitch * shape[1]}, random_.below(64), {}};
    copy.target = {to, {{pitch, 1}, 0, shape[0] * pitch}, 0, {}};
    copy.shape = std::move(shape);
    const auto reach = [](const Side& side) { return static_cast<std::size_t>(side.layout.reach) * size_bytes(side.dtype); };
    copy.source.bytes.assign(copy.source.before + reach(copy.source), kUntouched);
    copy.target.bytes.assign(kLineBytes + reach(copy.target), kUntouched);
    copy.target.before = (into_line - reinterpret_cast<std::uintptr_t>(copy.target.bytes.data())) % kLineBytes;
    copy.target.bytes.resize(copy.target.before + reach(copy.target));
    return finish(std::move(copy));
  }

  Side side(const std::vector<std::int64_t>& shape, DType dtype, Repeats repeats) {
    Side made{dtype, random_layout(random_, shape, repeats), random_.one_in(2) ? random_.below(64) : 0, {}};
    if (std::ranges::find(shape, 0) != shape.end()) made.layout.first = 0;  // its one element is never accessed
    made.bytes.assign(made.before + static_cast<std::size_t>(std::max<std::int64_t>(made.layout.reach, 1)) * size_bytes(dtype), kUntouched);
    return made;
  }

 private:
  Copy finish(Copy copy) {
    const std::size_t size = size_bytes(copy.source.dtype);
    values_.fill(copy.source.dtype, copy.source.bytes.data() + copy.source.before, (copy.source.bytes.size() - copy.source.before) / size);
    copy.expected = copy.target.bytes;
    expect(copy);
    return copy;
  }

  static void expect(Copy& copy) {
    const auto from = static_cast<std::int64_t>(size_bytes(copy.source.dtype));
    const auto to = static_cast<std::int64_t>(size_bytes(copy.target.dtype));
    const std::byte* const source = copy.source.data();
    std::byte* const target = copy.expected.data() + (copy.target.data() - copy.target.bytes.data());
    for_each_index(copy.shape, copy.source.layout.strides, copy.target.layout.strides, [&](std::int64_t a, std::int64_t b) {
      convert_element(source + a * from, copy.source.dtype, target + b * to, copy.target.dtype);
    });
  }

  Random random_;
  TellingValues values_;
};

TEST(HostCopy, RandomStridedCopiesGiveWhatALoopOverAllElementsGives) {
  Copies copies(seed());
  const std::uint64_t total = scaled(1'000'000, 5'000);
  std::uint64_t elements = 0;
  for (std::uint64_t i = 0; i < total; ++i) {
    Copy copy = copies.make(copies.shape());
    const int threads = copies.threads();
    const Kernels& kernels = copies.kernels();
    copy_on_host(copy.shape, copy.source.view(), copy.target.view(), threads, kernels);
    ASSERT_TRUE(are_same(copy.target.bytes, copy.expected))
        << "copy " << i << " by " << threads << " threads, " << name_of(kernels) << ": " << copy;
    elements += static_cast<std::uint64_t>(count_elements(copy.shape));
  }
  did(std::to_string(total) + " copies of " + std::to_string(elements) + " elements, by every table");
}

// Rows of the target that are longer than one piece of a conversion, several rows in a piece, and all of them
// in one; panels below one another, the last of them a few bytes high; many panels. With normal and with
// non-temporal stores.
TEST(HostCopy, TransposesAreWhole) {
  if (kThreadSanitizer) GTEST_SKIP() << "one thread by itself has nobody to race with";
  Copies copies(seed() + 5);
  constexpr DType kPairs[][2] = {{DType::u8, DType::u8},    {DType::f32, DType::f32}, {DType::f32, DType::bf16}, {DType::u8, DType::f32},
                                 {DType::bf16, DType::f32}, {DType::i8, DType::i64},  {DType::f32, DType::c128}};
  struct Plane {
    std::vector<std::int64_t> shape;
    std::vector<std::int64_t> gaps;
  };
  const Plane planes[] = {{{3, 9001}, {0, 1, 16}}, {{700, 40}, {0, 1, 16}}, {{130, 300}, {0, 1, 16}}, {{65, 1025}, {0, 1, 16}},
                          {{40, 131}, {0, 7}},     {{70, 259}, {0, 7}},     {{130, 259}, {0, 7}},     {{100, 256}, {0, 4}},
                          {{64, 130}, {14}},       {{200, 4}, {0, 4}},      {{200, 8}, {0, 8}},       {{100, 149}, {0, 7}},
                          {{300, 5001}, {1}}};
  std::size_t done = 0;
  for (const auto& [shape, gaps] : planes) {
    for (const auto& [from, to] : kPairs) {
      for (const std::int64_t gap : gaps) {
        for (const std::size_t into_line : {std::size_t{0}, std::size_t{20}, static_cast<std::size_t>(copies.random().below(64))}) {
          Copy copy = copies.make_transposed(shape, from, to, gap, into_line);
          for (const Kernels& kernels : tables()) {
            clear(copy.target.bytes);
            copy_on_host(copy.shape, copy.source.view(), copy.target.view(), 1, kernels);
            ASSERT_TRUE(are_same(copy.target.bytes, copy.expected)) << name_of(kernels) << ": " << copy;
            ++done;
          }
        }
      }
    }
  }
  did(std::to_string(done) + " transposes");
}

TEST(HostCopy, LargeCopiesAreTheSameByAnyNumberOfThreadsAndEveryTable) {
  Copies copies(seed() + 2);
  const std::uint64_t total = scaled(100, 2);
  std::uint64_t bytes = 0;
  for (std::uint64_t i = 0; i < total; ++i) {
    Copy copy = copies.make(copies.large_shape());
    for (const Kernels& kernels : tables()) {
      for (const int threads : kThreads) {
        clear(copy.target.bytes);
        copy_on_host(copy.shape, copy.source.view(), copy.target.view(), threads, kernels);
        ASSERT_TRUE(are_same(copy.target.bytes, copy.expected))
            << i << " by " << threads << " threads, " << name_of(kernels) << ": " << copy;
      }
    }
    bytes += copy.expected.size();
  }
  did(std::to_string(total) + " copies of " + std::to_string(bytes) + " bytes by 1, 2, 5 and 16 threads and every table");
}

TEST(HostCopy, ABatchDoesEachOfItsCopies) {
  Copies copies(seed() + 3);
  const std::uint64_t total = scaled(1'000, 30);
  std::uint64_t inside = 0;
  for (std::uint64_t i = 0; i < total; ++i) {
    std::vector<Copy> made;
    const bool heavy = i % 15 == 0;  // several groups of copies, and some copies that are a group
    const std::uint64_t count = heavy ? 20 + copies.random().below(20) : copies.random().below(200);
    for (std::uint64_t k = 0; k < count; ++k) {
      const std::vector<std::int64_t> shape = copies.batch_shape(heavy);
      made.push_back(copies.random().one_in(3) ? copies.make_run(count_elements(shape)) : copies.make(shape));
    }
    std::vector<HostCopy> batch;
    std::vector<HostRun> runs;
    for (Copy& copy : made) copy.run_bytes != 0 ? runs.push_back(copy.run()) : batch.push_back(copy.view());
    copy_on_host(batch, copies.threads(), copies.kernels());
    copy_on_host(runs, copies.threads(), copies.kernels());
    for (std::size_t k = 0; k < made.size(); ++k)
      ASSERT_TRUE(are_same(made[k].target.bytes, made[k].expected))
          << "batch " << i << ", copy " << k << " of " << count << ": " << made[k];
    inside += count;
  }
  did(std::to_string(total) + " batches of " + std::to_string(inside) + " copies");
}

// Fills a target with a random value.
void expect_fill(Copies& copies, const std::vector<std::int64_t>& shape, Side& target) {
  Random& random = copies.random();
  std::array<std::byte, 16> value;
  value.fill(static_cast<std::byte>(random.below(256)));  // all bytes equal, or not
  if (random.one_in(2)) std::ranges::generate(value, [&] { return static_cast<std::byte>(random.below(256)); });
  std::vector<std::byte> expected = target.bytes;
  std::byte* const first = expected.data() + (target.data() - target.bytes.data());
  const std::size_t size = size_bytes(target.dtype);
  for_each_index(shape, target.layout.strides, target.layout.strides,
                 [&](std::int64_t at, std::int64_t) { std::memcpy(first + at * static_cast<std::int64_t>(size), value.data(), size); });
  const int threads = copies.threads();
  const Kernels& kernels = copies.kernels();
  fill_on_host(shape, target.view(), value.data(), threads, kernels);
  const Copy shown{shape, target, target, {}, 0};
  ASSERT_TRUE(are_same(target.bytes, expected)) << "by " << threads << " threads, " << name_of(kernels) << ": " << shown;
}

TEST(HostCopy, FillsReachEveryElementAndNoOther) {
  Copies copies(seed() + 4);
  Random& random = copies.random();
  const std::uint64_t total = scaled(200'000, 3'000);
  for (std::uint64_t i = 0; i < total; ++i) {
    const DType dtype = all_dtypes()[random.below(kDTypeCount)].dtype;
    const std::vector<std::int64_t> shape = random_shape(random, random.one_in(20) ? 20'000 : 200);
    Side target = copies.side(shape, dtype, Repeats::axes);
    if (shape.size() >= 2 && random.one_in(6)) {  // all axes visit the same elements
      target.layout = {std::vector<std::int64_t>(shape.size(), 1), 0, 1};
      for (const std::int64_t size : shape) target.layout.reach += size - 1;
      target.bytes.assign(target.before + static_cast<std::size_t>(target.layout.reach) * size_bytes(dtype), kUntouched);
    }
    ASSERT_NO_FATAL_FAILURE(expect_fill(copies, shape, target)) << "fill " << i;
  }
  did(std::to_string(total) + " fills");
}

TEST(HostCopy, LargeFillsReachEveryElementAndNoOther) {
  Copies copies(seed() + 5);
  Random& random = copies.random();
  const std::uint64_t total = scaled(200, 12);
  for (std::uint64_t i = 0; i < total; ++i) {
    const DType dtype = all_dtypes()[random.below(kDTypeCount)].dtype;
    // One long row, or any layout.
    const auto elements = static_cast<std::int64_t>((9'000'000 + random.below(5'000'000)) / size_bytes(dtype));
    const std::vector<std::int64_t> shape = i % 2 == 0 ? std::vector<std::int64_t>{elements} : copies.large_shape();
    Side target = copies.side(shape, dtype, Repeats::axes);
    if (i % 2 == 0) {
      target.layout = {{1}, 0, elements};
      target.bytes.assign(target.before + static_cast<std::size_t>(elements) * size_bytes(dtype), kUntouched);
    }
    ASSERT_NO_FATAL_FAILURE(expect_fill(copies, shape, target)) << "fill " << i;
  }
  did(std::to_string(total) + " fills");
}

TEST(HostCopy, AFillOfNothingWritesNothing) {
  std::byte untouched = kUntouched;
  const std::byte value{1};
  for (const std::vector<std::int64_t>& shape : {std::vector<std::int64_t>{0}, {3, 0}, {0, 3}}) {
    for (const std::int64_t stride : {0, 1}) {
      const std::vector<std::int64_t> strides(shape.size(), stride);
      fill_on_host(shape, {&untouched, DType::u8, strides}, &value, 1);
      EXPECT_EQ(untouched, kUntouched);
    }
  }
}

}  // namespace
}  // namespace berth::testing
