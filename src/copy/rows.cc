// SPDX-License-Identifier: Apache-2.0
#include "copy/rows.h"

#include <cstring>

#include "berth/device/registry.h"

namespace berth {

namespace {

bool is_host(const Backend& backend) noexcept { return backend.properties().abilities.host_access; }

Backend& host_backend() { return backend(Device()); }

template <std::size_t Size>
void gather(const std::byte* from, std::ptrdiff_t step, std::size_t count, std::byte* host) noexcept {
  for (std::size_t i = 0; i < count; ++i, from += step, host += Size) std::memcpy(host, from, Size);
}

template <std::size_t Size>
void scatter(std::byte* to, std::ptrdiff_t step, std::size_t count, const std::byte* host) noexcept {
  for (std::size_t i = 0; i < count; ++i, to += step, host += Size) std::memcpy(to, host, Size);
}

}  // namespace

void read_row(const RowPlace& from, std::int64_t offset, std::int64_t stride, std::size_t count, std::byte* host) {
  const auto size = static_cast<std::ptrdiff_t>(size_bytes(from.dtype));
  const std::byte* const first = from.data + offset * size;
  if (stride == 1 || count == 1) return transfer(first, *from.backend, host, host_backend(), count * static_cast<std::size_t>(size));
  const std::ptrdiff_t step = stride * size;
  if (!is_host(*from.backend)) {
    for (std::size_t i = 0; i < count; ++i)
      transfer(first + static_cast<std::ptrdiff_t>(i) * step, *from.backend, host + static_cast<std::ptrdiff_t>(i) * size, host_backend(),
               static_cast<std::size_t>(size));
    return;
  }
  switch (size) {
    case 1: return gather<1>(first, step, count, host);
    case 2: return gather<2>(first, step, count, host);
    case 4: return gather<4>(first, step, count, host);
    case 8: return gather<8>(first, step, count, host);
    default: return gather<16>(first, step, count, host);
  }
}

void write_row(const RowPlace& to, std::int64_t offset, std::int64_t stride, std::size_t count, const std::byte* host) {
  const auto size = static_cast<std::ptrdiff_t>(size_bytes(to.dtype));
  std::byte* const first = to.data + offset * size;
  if (stride == 1 || count == 1) return transfer(host, host_backend(), first, *to.backend, count * static_cast<std::size_t>(size));
  const std::ptrdiff_t step = stride * size;
  if (!is_host(*to.backend)) {
    for (std::size_t i = 0; i < count; ++i)
      transfer(host + static_cast<std::ptrdiff_t>(i) * size, host_backend(), first + static_cast<std::ptrdiff_t>(i) * step, *to.backend,
               static_cast<std::size_t>(size));
    return;
  }
  switch (size) {
    case 1: return scatter<1>(first, step, count, host);
    case 2: return scatter<2>(first, step, count, host);
    case 4: return scatter<4>(first, step, count, host);
    case 8: return scatter<8>(first, step, count, host);
    default: return scatter<16>(first, step, count, host);
  }
}

bool can_transfer(const Backend& source, const Backend& target) noexcept {
  return &source == &target || is_host(source) || is_host(target);
}

void transfer(const void* source, Backend& source_backend, void* target, Backend& target_backend, std::size_t bytes) {
  Backend& runner = is_host(target_backend) ? source_backend : target_backend;
  if (is_host(runner)) {  // both ends are the host's: no need to ask anyone
    std::memmove(target, source, bytes);
    return;
  }
  const Status done = runner.copy({target, target_backend.device(), source, source_backend.device(), bytes}, {});
  if (!done) throw_failure(done.failure(), runner.device(), "copying");
}

}  // namespace berth
