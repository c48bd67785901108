// SPDX-License-Identifier: Apache-2.0
#include "berth/device/backend.h"

#include <cstring>

#include "base/refuse.h"
#include "base/text.h"
#include "berth/base/checked.h"

namespace berth {

using namespace internal;

Backend::~Backend() = default;
BackendFactory::~BackendFactory() = default;

Status Backend::move(void*, void*, std::size_t) noexcept { return Failure{ErrorCode::unsupported, 0, "this device cannot move pages"}; }
Status Backend::begin_move(void*, void*, std::size_t) noexcept {
  return Failure{ErrorCode::unsupported, 0, "this device cannot move pages that are in use"};
}
Status Backend::end_move(void*, std::size_t) noexcept { return Failure{ErrorCode::invalid_argument, 0, "no move was begun there"}; }

Status Backend::zero(void* target, std::size_t bytes, StreamRef stream) noexcept {
  constexpr std::byte kZero{0};
  return fill(target, bytes, {&kZero, 1}, stream);
}

Status Backend::copy_batch(std::span<const Transfer> transfers, StreamRef stream) noexcept {
  for (const Transfer& transfer : transfers) {
    if (const Status done = copy(transfer, stream); !done) return done;
  }
  return {};
}

Status Backend::copy_elements(const ElementCopy&, StreamRef) noexcept {
  return Failure{ErrorCode::unsupported, 0, "the device has no kernels to gather and convert with"};
}

bool Backend::reaches(Device) const noexcept { return false; }

Result<Stream> Backend::make_stream() noexcept { return Failure{ErrorCode::unsupported, 0, "this device has no streams"}; }

Result<void*> Backend::allocate(std::size_t bytes, std::size_t alignment) noexcept {
  const auto length = try_align_up(bytes, properties().unit_bytes);
  if (!length) return Failure{ErrorCode::out_of_memory, 0, "the size is larger than any address space"};
  Result<void*> range = reserve(*length, alignment);
  if (!range) return range;
  const Status committed = commit(*range, *length);
  if (!committed) {
    (void)release(*range, *length).ok();  // report the first failure
    return committed.failure();
  }
  return range;
}

void Backend::free(void* address, std::size_t bytes, std::size_t) noexcept {
  // A device that cannot free memory has been lost, or is about to be; there is no way to report it here.
  (void)release(address, *try_align_up(bytes, properties().unit_bytes)).ok();
}

namespace {

std::string failure_text(const Failure& failure) {
  std::string why(*failure.why == '\0' ? to_string(failure.code) : std::string_view(failure.why));
  if (failure.os_error != 0) why += text::join(" (", std::string_view(std::strerror(failure.os_error)), ')');
  return why;
}

struct Advice {
  ErrorCode code;
  std::string_view help;
};

constexpr Advice kAdvice[] = {
    {ErrorCode::device_lost, "everything on the device is gone: restart the process, or go on with host memory"},
    {ErrorCode::fork_unsafe, "use the device in the process that opened it, or open it after the fork"},
    {ErrorCode::out_of_bounds, "check that the memory is allocated and the sizes are right"},
    {ErrorCode::unsupported, "berth devices shows what each device can do"},
    {ErrorCode::device_error, "berth doctor shows what this machine has and lacks"},
    {ErrorCode::out_of_memory, "free memory on the device, or use a smaller size"},
};

}  // namespace

void throw_failure(const Failure& failure, Device device, std::string_view asked) {
  std::string_view help = "the device refused what it was asked: check the sizes and addresses";
  for (const Advice& advice : kAdvice) {
    if (advice.code == failure.code) help = advice.help;
  }
  if (failure.cause == Refusal::rlimit) help = base::kRaiseLimit;
  throw DeviceError(failure.code, {text::join(asked, " on ", device.to_string()), failure_text(failure), std::string(help)},
                    {{"device", device.to_string()}, {"os_error", failure.os_error}});
}

}  // namespace berth
