// SPDX-License-Identifier: Apache-2.0
#include "copy/host/host_copy.h"

#include <algorithm>
#include <cstring>

#include "base/float_mode.h"
#include "copy/host/conversion.h"
#include "copy/host/element_run.h"
#include "copy/host/host_plan.h"
#include "copy/host/stream_row.h"
#include "copy/host/tiles.h"
#include "copy/host/workers.h"
#include "copy/kernels/kernels.h"
#include "os/memory/bus_guard.h"

namespace berth::internal::copy {

namespace {

constexpr std::size_t kLeastItemBytes = std::size_t{1} << 19;  // read and written by one item of work: far more
                                                               // than scheduling it costs
constexpr std::size_t kMostItemBytes = std::size_t{4} << 20;
constexpr std::size_t kBytesPerThread = std::size_t{1} << 19;  // less does not pay for waking a thread

std::size_t count_elements(std::span<const std::int64_t> shape) noexcept {
  std::size_t count = 1;
  for (const std::int64_t size : shape) count *= static_cast<std::size_t>(size);
  return count;
}

std::size_t bytes_moved(std::span<const std::int64_t> shape, const HostSide& source, const HostSide& target) noexcept {
  return count_elements(shape) * (size_bytes(source.dtype) + size_bytes(target.dtype));
}

int useful_threads(std::size_t bytes, int threads) noexcept {
  return static_cast<int>(std::min(static_cast<std::size_t>(threads), std::max<std::size_t>(bytes / kBytesPerThread, 1)));
}

// Small enough that each thread gets several items, so that all threads finish at about the same time.
std::size_t item_bytes(std::size_t bytes, int threads) noexcept {
  const std::size_t share = bytes / (8 * static_cast<std::size_t>(threads));
  return std::clamp(share / kLeastItemBytes * kLeastItemBytes, kLeastItemBytes, kMostItemBytes);
}

// The same as run_in_parallel, for items that only touch memory.
template <class Body>
void touch_in_parallel(std::size_t items, int threads, const Body& body) noexcept {
  run_in_parallel(items, threads, [&](std::size_t item) noexcept { os::BusGuard::touch([&] { body(item); }); });
}

// A plan with its kernels, split into items that may run concurrently.
class HostWork {
 public:
  HostWork(const Kernels& kernels, const HostPlan& plan, const HostSide& source, const HostSide& target, std::size_t elements) noexcept
      : kernels_(kernels),
        plan_(plan),
        elements_(elements),
        streamed_(elements * size_bytes(target.dtype) >= kernels.least_streamed),
        conversion_(find_conversion(kernels, source.dtype, target.dtype)),
        source_(source.data),
        target_(target.data),
        source_bytes_(static_cast<std::ptrdiff_t>(size_bytes(source.dtype))),
        target_bytes_(static_cast<std::ptrdiff_t>(size_bytes(target.dtype))) {}

  void run(int threads) noexcept { plan_.kind == HostPlan::Kind::tiles ? run_tiles(threads) : run_rows(threads); }

 private:
  // Whole cache lines, whatever the size of an element.
  std::size_t item_elements(int threads) const noexcept {
    return item_bytes(elements_ * element_bytes(), threads) / element_bytes() / kLineBytes * kLineBytes;
  }
  std::size_t element_bytes() const noexcept { return static_cast<std::size_t>(source_bytes_ + target_bytes_); }
  const std::byte* source_at(std::int64_t element) const noexcept { return source_ + element * source_bytes_; }
  std::byte* target_at(std::int64_t element) const noexcept { return target_ + element * target_bytes_; }

  // An item is several rows, or a part of a long row.
  void run_rows(int threads) noexcept {
    const ElementRun run(kernels_, conversion_, plan_.row.source_step, plan_.row.target_step);
    const StreamRow stream(kernels_, conversion_);
    const bool streamed = streamed_ && plan_.is_dense() && StreamRow::is_worth(conversion_, static_cast<std::size_t>(plan_.row.size));
    const auto most = static_cast<std::int64_t>(item_elements(threads));
    const std::int64_t length = std::min(plan_.row.size, most);
    const std::int64_t pieces = (plan_.row.size + length - 1) / length;
    const std::int64_t rows = pieces > 1 ? 1 : std::max<std::int64_t>(most / length, 1);
    const std::int64_t groups = (plan_.planes + rows - 1) / rows;
    touch_in_parallel(static_cast<std::size_t>(groups * pieces), threads, [&](std::size_t item) noexcept {
      const FloatMode mode;
      const std::int64_t first = static_cast<std::int64_t>(item) / pieces * rows;
      const std::int64_t begin = static_cast<std::int64_t>(item) % pieces * length;
      const auto count = static_cast<std::size_t>(std::min(length, plan_.row.size - begin));
      PlaneWalk walk(plan_, first);
      for (std::int64_t row = first; row < std::min(first + rows, plan_.planes); ++row, walk.next()) {
        const std::byte* const from = source_at(walk.source() + begin * plan_.row.source_step);
        std::byte* const to = target_at(walk.target() + begin * plan_.row.target_step);
        streamed ? stream(from, to, count) : run(from, to, count);
      }
    });
  }

  void run_tiles(int threads) noexcept {
    const Tiles tiles(kernels_, conversion_, plan_, streamed_);
    const std::size_t per_plane = tiles.per_plane();
    const std::size_t total = per_plane * static_cast<std::size_t>(plan_.planes);
    const std::size_t together = std::max<std::size_t>(item_elements(threads) / tiles.panel_elements(), 1);
    touch_in_parallel((total + together - 1) / together, threads, [&](std::size_t item) noexcept {
      const FloatMode mode;
      const std::size_t end = std::min((item + 1) * together, total);
      PlaneWalk walk(plan_, static_cast<std::int64_t>(item * together / per_plane));
      for (std::size_t i = item * together; i < end; walk.next()) {
        const std::size_t first = i % per_plane;
        const std::size_t last = std::min(first + (end - i), per_plane);
        tiles.run(source_at(walk.source()), target_at(walk.target()), first, last);
        i += last - first;
      }
      if (streamed_) kernels_.flush_stream();
    });
  }

  const Kernels& kernels_;
  const HostPlan& plan_;
  const std::size_t elements_;
  const bool streamed_;  // the target is large enough for non-temporal stores
  const Conversion conversion_;
  const std::byte* const source_;
  std::byte* const target_;
  const std::ptrdiff_t source_bytes_;
  const std::ptrdiff_t target_bytes_;
};

std::size_t bytes_moved(const HostCopy& copy) noexcept { return bytes_moved(copy.shape, copy.source, copy.target); }
std::size_t bytes_moved(const HostRun& run) noexcept { return 2 * run.bytes; }

// Runs many copies: the large ones one after another, each by all threads; the small ones in groups, each group
// by one thread, which also gets the following copy, to prefetch it.
template <class One, class Large, class Small>
void run_many(std::span<const One> all, int threads, const Large& run_large, const Small& run_small) noexcept {
  std::size_t small = 0;
  std::size_t small_bytes = 0;
  for (const One& one : all) {
    const std::size_t bytes = bytes_moved(one);
    if (bytes > kMostItemBytes) {
      run_large(one);
    } else {
      ++small;
      small_bytes += bytes;
    }
  }
  if (small == 0) return;
  threads = useful_threads(small_bytes, threads);
  const std::size_t together = std::max<std::size_t>(item_bytes(small_bytes, threads) / std::max<std::size_t>(small_bytes / small, 1), 1);
  touch_in_parallel((all.size() + together - 1) / together, threads, [&](std::size_t item) noexcept {
    const std::size_t last = std::min((item + 1) * together, all.size());
    for (std::size_t i = item * together; i < last; ++i) {
      if (bytes_moved(all[i]) <= kMostItemBytes) run_small(all[i], i + 1 < last ? &all[i + 1] : nullptr);
    }
  });
}

// Prefetches the first lines of the next run: the hardware prefetcher starts only after a few lines.
void prefetch_start(const HostRun& run) noexcept {
  for (std::size_t at = 0; at < std::min(run.bytes, 32 * kLineBytes); at += kLineBytes) __builtin_prefetch(run.source + at, 0, 2);
}

bool is_uniform(const std::byte* value, std::size_t size) noexcept {
  return std::all_of(value, value + size, [&](std::byte b) { return b == value[0]; });
}

}  // namespace

void copy_on_host(std::span<const std::int64_t> shape, const HostSide& source, const HostSide& target, int threads,
                  const Kernels& kernels) noexcept {
  const std::size_t elements = count_elements(shape);
  if (elements == 0) return;
  const HostPlan plan = plan_on_host(shape, source.strides, target.strides);
  HostWork(kernels, plan, source, target, elements).run(useful_threads(bytes_moved(shape, source, target), threads));
}

void copy_on_host(std::span<const HostCopy> copies, int threads, const Kernels& kernels) noexcept {
  run_many(
      copies, threads, [&](const HostCopy& copy) { copy_on_host(copy.shape, copy.source, copy.target, threads, kernels); },
      [&](const HostCopy& copy, const HostCopy*) { copy_on_host(copy.shape, copy.source, copy.target, 1, kernels); });
}

void copy_on_host(std::span<const HostRun> runs, int threads, const Kernels& kernels) noexcept {
  std::size_t all = 0;  // decides for all: a batch of small copies fills the caches too
  for (const HostRun& run : runs) all += run.bytes;
  const Conversion bytes{.from = DType::u8, .to = DType::u8};
  const StreamRow stream(kernels, bytes);
  const auto copy = [&](const std::byte* source, std::byte* target, std::size_t count) noexcept {
    if (all >= kernels.least_streamed && StreamRow::is_worth(bytes, count))
      stream(source, target, count);
    else
      std::memcpy(target, source, count);
  };
  const auto in_pieces = [&](const HostRun& run) {
    const std::size_t piece = item_bytes(bytes_moved(run), threads) / 2;
    touch_in_parallel((run.bytes + piece - 1) / piece, threads, [&](std::size_t i) noexcept {
      copy(run.source + i * piece, run.target + i * piece, std::min(piece, run.bytes - i * piece));
    });
  };
  run_many(runs, threads, in_pieces, [&](const HostRun& run, const HostRun* next) {
    if (next != nullptr) prefetch_start(*next);
    copy(run.source, run.target, run.bytes);
  });
}

void fill_on_host(std::span<const std::int64_t> shape, const HostSide& target, const std::byte* value, int threads,
                  const Kernels& kernels) noexcept {
  const std::size_t size = size_bytes(target.dtype);
  // An axis of stride 0 would write the same elements again.
  std::array<std::int64_t, kMaxRank> sizes;
  for (std::size_t i = 0; i < shape.size(); ++i) sizes[i] = target.strides[i] == 0 && shape[i] != 0 ? 1 : shape[i];
  const std::span<const std::int64_t> walked(sizes.data(), shape.size());
  const std::size_t bytes = count_elements(walked) * size;
  if (bytes == 0) return;
  // The source is the single element, with all strides 0.
  const std::array<std::int64_t, kMaxRank> still{};
  const HostPlan plan = plan_on_host(walked, {still.data(), shape.size()}, target.strides);
  if (plan.planes == 1 && plan.row.target_step == 1 && is_uniform(value, size)) {
    std::byte* const first = target.data + plan.target_offset * static_cast<std::ptrdiff_t>(size);
    threads = useful_threads(bytes, threads);
    const std::size_t piece = item_bytes(bytes, threads);
    return touch_in_parallel((bytes + piece - 1) / piece, threads, [&](std::size_t item) noexcept {
      std::memset(first + item * piece, static_cast<int>(value[0]), std::min(piece, bytes - item * piece));
    });
  }
  const HostSide source{const_cast<std::byte*>(value), target.dtype, {}};
  HostWork(kernels, plan, source, target, count_elements(walked)).run(useful_threads(bytes, threads));
}

}  // namespace berth::internal::copy
