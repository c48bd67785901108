// SPDX-License-Identifier: Apache-2.0
#include "share/errors.h"

#include <algorithm>
#include <cstring>
#include <iterator>

#include "base/refuse.h"
#include "base/text.h"

namespace berth::internal::share {

namespace {

constexpr Advice kAdvice[] = {
    {ErrorCode::out_of_memory,
     "free memory, or raise the limit: of the control group, of the file system for what has a name, of addresses (ulimit -v) or of "
     "mappings (vm.max_map_count)"},
    {ErrorCode::too_many_descriptors, "raise the limit with ulimit -n, or close what is not needed"},
    {ErrorCode::permission_denied, "run both sides as the same user"},
    {ErrorCode::untrusted, "take descriptors and names only from processes that you trust; berth shm ls shows what is wrong with a name"},
    {ErrorCode::already_consumed,
     "export the storage again: a ticket is good for one import, or for as many as ExportOptions::imports says"},
    {ErrorCode::already_exists, "choose another name, or open the one that is there"},
    {ErrorCode::not_found, "berth shm ls lists the names; memory without one comes with a storage, through a Channel"},
    {ErrorCode::limit_exceeded, "drop storages, tickets or channels that are not needed, or share fewer, larger ones"},
    {ErrorCode::fork_unsafe, "in the child, copy it with to(\"cpu\") and share the copy"},
    {ErrorCode::peer_dead, "start the other process again, and make a new channel"},
    {ErrorCode::timeout, "the other process is stopped or busy: wait longer, or end it"},
    {ErrorCode::version_mismatch, "use one build of berth on both sides"},
    {ErrorCode::format_error, "send it again: the other side is at fault, or the bytes were damaged on the way"},
    {ErrorCode::device_unavailable, "mount /proc, and a tmpfs at /dev/shm, or name a folder of your own on a tmpfs with BERTH_SHM_DIR"},
    {ErrorCode::invalid_argument, "pass a connected socket, such as one of socketpair(AF_UNIX, SOCK_SEQPACKET, 0, …)"},
    {ErrorCode::invalid_name, "use 1 to 200 bytes of UTF-8 without '/' and control characters, and no leading dot"},
    {ErrorCode::wrong_device, "share(storage) first"},
    {ErrorCode::unsupported, "share a clone() of it, or of a storage on another device a copy made with to(\"cpu\")"},
};

std::string text_of(const Failure& failure) {
  if (failure.os_error == 0) return failure.why;
  char reason[128];
  return text::join(std::string_view(failure.why), ": ", std::string_view(strerror_r(failure.os_error, reason, sizeof reason)));
}

}  // namespace

const char* advice_for(ErrorCode code, std::span<const Advice> table, const char* otherwise) noexcept {
  const auto found = std::ranges::find(table, code, &Advice::code);
  return found == table.end() ? otherwise : found->help;
}

void throw_share_failure(const Failure& failure, std::string asked, std::vector<Fact> facts, std::string help) {
  constexpr const char* kOtherwise = "the system refused a call that sharing needs: berth doctor shows what this machine has and lacks";
  if (help.empty() && failure.cause == Refusal::rlimit) help = base::kRaiseLimit;
  if (help.empty()) help = advice_for(failure.code, kAdvice, kOtherwise);
  facts.emplace_back("os_error", failure.os_error);
  ErrorText text{std::move(asked), text_of(failure), std::move(help)};
  switch (failure.code) {
    case ErrorCode::limit_exceeded:
    case ErrorCode::invalid_name:
    case ErrorCode::invalid_argument: throw ArgumentError(failure.code, std::move(text), std::move(facts));
    case ErrorCode::permission_denied:
    case ErrorCode::untrusted:
    case ErrorCode::already_consumed:
    case ErrorCode::already_exists:
    case ErrorCode::not_found:
    case ErrorCode::wrong_device:
    case ErrorCode::busy: throw AccessError(failure.code, std::move(text), std::move(facts));
    case ErrorCode::format_error:
    case ErrorCode::version_mismatch: throw FormatError(failure.code, std::move(text), std::move(facts));
    default: throw DeviceError(failure.code, std::move(text), std::move(facts));
  }
}

}  // namespace berth::internal::share
