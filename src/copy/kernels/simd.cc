// SPDX-License-Identifier: Apache-2.0
#include <iterator>
#include <utility>
#include <vector>

#include "copy/kernels/arm_casts.h"
#include "copy/kernels/kernels.h"

// The kernels need a vector length that is known at compile time, which SVE and RVV do not have.
#define HWY_DISABLED_TARGETS (HWY_SVE | HWY_SVE2 | HWY_SVE_256 | HWY_SVE2_128 | HWY_RVV)
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "copy/kernels/simd.cc"
#include <hwy/foreach_target.h>  // includes this file again for each instruction set
#include <hwy/highway.h>
// After foreach_target.h, because these are included again too. Targets without vectors use the scalar loops.
// (Highway's emulation is also incorrect in places: its EMU128 converts an infinite f64 to the largest f32.)
#undef BERTH_NO_VECTORS
#define BERTH_NO_VECTORS (HWY_TARGET == HWY_SCALAR || HWY_TARGET == HWY_EMU128)
#if !BERTH_NO_VECTORS
#include "copy/kernels/byte_casts-inl.h"
#include "copy/kernels/float_casts-inl.h"
#include "copy/kernels/moves-inl.h"
#include "copy/kernels/number_casts-inl.h"
#endif

HWY_BEFORE_NAMESPACE();
namespace berth::internal::copy::HWY_NAMESPACE {

#if BERTH_NO_VECTORS
Kernels make_kernels() { return plain_kernels(); }
#else
// Casts block by block, and the tail through one padded block. A long row alternates between its first half and
// its second: processors prefetch several streams at once, and are faster with two than with one.
template <DType From, DType To, Rounding How>
HWY_ATTR void cast_row(const std::byte* source, std::byte* target, std::size_t count) noexcept {
  constexpr std::size_t kFrom = size_bytes(From);
  constexpr std::size_t kTo = size_bytes(To);
  const auto* from = reinterpret_cast<const std::uint8_t*>(source);
  auto* to = reinterpret_cast<std::uint8_t*>(target);
  const Op<From, To, How> cast;
  if (count >= kManyElements) {
    const std::size_t half = count / (2 * kBlock) * kBlock;
    for (std::size_t i = 0; i < half; i += kBlock) {
      cast(from + i * kFrom, to + i * kTo);
      cast(from + (half + i) * kFrom, to + (half + i) * kTo);
    }
    count -= 2 * half;
    from += 2 * half * kFrom;
    to += 2 * half * kTo;
  }
  for (; count >= kBlock; count -= kBlock, from += kBlock * kFrom, to += kBlock * kTo) cast(from, to);
  if (count == 0) return;
  std::uint8_t last[kBlock * kFrom] = {};
  std::uint8_t done[kBlock * kTo];
  std::memcpy(last, from, count * kFrom);
  cast(last, done);
  std::memcpy(to, done, count * kTo);
}

template <std::size_t... I>
constexpr std::array<ConvertRow, kCastCount> cast_rows(std::index_sequence<I...>) {
  return {cast_row<kCasts[I].from, kCasts[I].to, kCasts[I].rounding>...};
}

// More than the L2 cache of any core. Copies through the last-level cache, which may hold that much, are
// slower; but so is reading streamed data soon afterwards (docs/decisions/0015).
constexpr std::size_t kLeastStreamed = std::size_t{16} << 20;

constexpr bool kHasFours = kBlock == 16;

constexpr std::array<InterleaveFours, kSizeCount> fours() {
  if constexpr (kHasFours)
    return {interleave_fours<1>, interleave_fours<2>, interleave_fours<4>};
  else
    return {};
}

constexpr std::size_t kCastsHere = kHasByteCasts ? kNeededAndByteCasts : kNeededCasts;

Kernels make_kernels() {
  return {.name = hwy::TargetName(HWY_TARGET),
          .casts = cast_rows(std::make_index_sequence<kCastsHere>()),
          .gather = {gather<1>, gather<2>, gather<4>, gather<8>, plain::gather<16>},
          .scatter = {scatter<1>, scatter<2>, scatter<4>, scatter<8>, plain::scatter<16>},
          .transpose = {transpose<1>, transpose<2>, transpose<4>, transpose<8>, transpose_vectors},
          .copy_runs = copy_runs,
          .stream_runs = stream_runs,
          .flush_stream = flush_stream,
          .interleave_fours = fours(),
          .transpose_to_lines = kHasFours ? transpose_to_lines : nullptr,
          .least_streamed = HWY_ARCH_X86 ? kLeastStreamed : SIZE_MAX};
}
#endif

}  // namespace berth::internal::copy::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace berth::internal::copy {

HWY_EXPORT(make_kernels);

namespace {

// Highway dispatches to the best target of the processor; the tests need the others too.
Kernels kernels_for(std::int64_t target) {
  if constexpr (std::size(HWY_DISPATCH_TABLE(make_kernels)) == 1) return HWY_DISPATCH_TABLE(make_kernels)[0]();
  hwy::ChosenTarget chosen;
  chosen.Update(target);
  return HWY_DISPATCH_TABLE(make_kernels)[chosen.GetIndex()]();
}

std::vector<Kernels> make_all() {
  std::vector<Kernels> all;
  for (const std::int64_t target : hwy::SupportedAndGeneratedTargets()) {
    if (target != HWY_SCALAR && target != HWY_EMU128) all.push_back(kernels_for(target));
  }
  if (HWY_ARCH_ARM && !all.empty()) all.insert(all.begin(), with_arm_casts(all.front()));
  all.push_back(plain_kernels());
  return all;
}

}  // namespace

std::span<const Kernels> all_kernels() noexcept {
  // Never destroyed: copies may run after main.
  static const auto* const all = new std::vector<Kernels>(make_all());
  return *all;
}

namespace {

// Made when the library is loaded, so that no copy can fail on this allocation, and no fork can interrupt it.
[[maybe_unused]] const std::span<const Kernels> g_kernels_at_load = all_kernels();

}  // namespace

}  // namespace berth::internal::copy
#endif
