// SPDX-License-Identifier: Apache-2.0
#include "copy/host/element_run.h"

#include <algorithm>
#include <cstdint>
#include <cstdlib>

namespace berth::internal::copy {

namespace {

constexpr std::size_t kElementsAtOnce = 1024;

}  // namespace

ElementRun::ElementRun(const Kernels& kernels, const Conversion& conversion, std::int64_t source_step, std::int64_t target_step) noexcept
    : conversion_(conversion),
      copy_runs_(kernels.copy_runs),
      source_step_(source_step),
      target_step_(target_step),
      source_bytes_(source_step * static_cast<std::ptrdiff_t>(size_bytes(conversion.from))),
      target_bytes_(target_step * static_cast<std::ptrdiff_t>(size_bytes(conversion.to))) {
  if (source_step != 1) gather_ = kernels.gather[size_index(size_bytes(conversion.from))];
  if (target_step != 1) scatter_ = kernels.scatter[size_index(size_bytes(conversion.to))];
}

void ElementRun::operator()(const std::byte* source, std::byte* target, std::size_t count) const noexcept {
  if (gather_ == nullptr && scatter_ == nullptr) return conversion_.run(source, target, count);
  if (conversion_.is_copy() && scatter_ == nullptr) return gather_(source, source_step_, target, count);
  if (conversion_.is_copy() && gather_ == nullptr) return scatter_(source, target, target_step_, count);
  for (std::size_t done = 0; done < count; done += kElementsAtOnce) {
    const auto at = static_cast<std::ptrdiff_t>(done);
    run_piece(source + at * source_bytes_, target + at * target_bytes_, std::min(kElementsAtOnce, count - done));
  }
}

void ElementRun::operator()(const std::byte* source, std::ptrdiff_t source_stride, std::byte* target, std::ptrdiff_t target_stride,
                            std::size_t runs, std::size_t count, std::ptrdiff_t ahead) const noexcept {
  if (gather_ == nullptr && scatter_ == nullptr && conversion_.is_copy())
    return copy_runs_(source, source_stride, target, target_stride, runs, count * size_bytes(conversion_.from), ahead);
  const ConvertRow cast = gather_ == nullptr && scatter_ == nullptr && conversion_.count == 1 ? conversion_.rows[0] : nullptr;
  const auto bytes = static_cast<std::uintptr_t>(std::abs(source_bytes_)) * count;
  for (; runs > 0; --runs, source += source_stride, target += target_stride) {
    if (ahead != 0) {
      const std::uintptr_t next =
          reinterpret_cast<std::uintptr_t>(source) + static_cast<std::uintptr_t>(ahead) - (source_bytes_ < 0 ? bytes : 0);
      for (std::uintptr_t at = 0; at < bytes; at += kLineBytes) __builtin_prefetch(reinterpret_cast<const void*>(next + at), 0, 2);
    }
    cast != nullptr ? cast(source, target, count) : (*this)(source, target, count);
  }
}

void ElementRun::run_piece(const std::byte* source, std::byte* target, std::size_t count) const noexcept {
  alignas(64) std::byte gathered[kElementsAtOnce * 16];
  alignas(64) std::byte converted[kElementsAtOnce * 16];
  if (gather_ != nullptr) {
    gather_(source, source_step_, gathered, count);
    source = gathered;
  }
  if (scatter_ == nullptr) return conversion_.run(source, target, count);
  if (!conversion_.is_copy()) {
    conversion_.run(source, converted, count);
    source = converted;
  }
  scatter_(source, target, target_step_, count);
}

}  // namespace berth::internal::copy
