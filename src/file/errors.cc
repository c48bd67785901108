// SPDX-License-Identifier: Apache-2.0
#include "file/errors.h"

#include <cerrno>
#include <cstring>
#include <utility>

#include "base/text.h"

namespace berth::internal::file {

namespace {

struct Advice {
  ErrorCode code;
  const char* help;
  int os_error = 0;  // 0: any
};

constexpr Advice kAdvice[] = {
    {ErrorCode::not_found, "check the path"},
    {ErrorCode::permission_denied, "check the permissions of the file and its folder, and whether its file system is mounted read-only"},
    {ErrorCode::untrusted, "write to a folder of your own, or remove what is there first"},
    {ErrorCode::too_many_descriptors, "raise the limit with ulimit -n, or close what is not needed"},
    {ErrorCode::out_of_memory, "free space on the disk, or write to another"},
    {ErrorCode::out_of_memory, "raise the limits (ulimit -v, sysctl vm.max_map_count), or map or read the file in parts", ENOMEM},
    {ErrorCode::out_of_memory, "free space within the quota, or write to another disk", EDQUOT},
    {ErrorCode::out_of_memory, "raise the limit (ulimit -f), or write several files", EFBIG},
    {ErrorCode::unsupported, "give a regular file: copy what comes from a pipe or a device into one"},
    {ErrorCode::unsupported, "name a file in it", EISDIR},
    {ErrorCode::unsupported, "name a regular file, or one that is not there yet", EEXIST},
    {ErrorCode::device_error, "let the sandbox allow the call: berth doctor shows what this machine has and lacks", EPERM},
    {ErrorCode::device_error, "let the sandbox allow the call: berth doctor shows what this machine has and lacks", ENOSYS},
    {ErrorCode::io_error, "the disk or the network behind the file failed: look at the system's log, and try again"},
};

std::string text_of(const Failure& failure) {
  // "Cannot allocate memory" is what the system calls every kind of room that it refuses; that something is there, `why` says.
  if (failure.os_error == 0 || failure.os_error == ENOMEM || failure.os_error == EEXIST) return failure.why;
  char reason[128];
  return text::join(std::string_view(failure.why), ": ", std::string_view(strerror_r(failure.os_error, reason, sizeof reason)));
}

}  // namespace

void throw_file_failure(const Failure& failure, std::string_view asked, std::string_view path, std::vector<Fact> facts) {
  std::string help = "check the path, and the file system that it is on";
  for (const Advice& advice : kAdvice) {
    if (advice.code == failure.code && (advice.os_error == 0 || advice.os_error == failure.os_error)) help = advice.help;
  }
  facts.emplace_back("path", text::printable(path, 4096));
  facts.emplace_back("os_error", failure.os_error);
  ErrorText words{text::join(asked, ' ', text::quoted(path)), text_of(failure), std::move(help)};
  switch (failure.code) {
    case ErrorCode::not_found:
    case ErrorCode::untrusted:
    case ErrorCode::permission_denied: throw AccessError(failure.code, std::move(words), std::move(facts));
    default: throw DeviceError(failure.code, std::move(words), std::move(facts));
  }
}

void throw_fault(std::string_view path, Fault fault) {
  std::string asked = text::join("reading ", text::quoted(path));
  if (fault.name) asked += text::join(", tensor ", text::quoted(*fault.name));
  if (fault.offset) asked += text::join(", at byte ", *fault.offset);
  std::vector<Fact> facts{{"rule", fault.rule}, {"path", text::printable(path, 4096)}};
  if (fault.name) facts.emplace_back("name", text::printable(*fault.name));
  if (fault.offset) facts.emplace_back("offset", *fault.offset);
  facts.insert(facts.end(), fault.facts.begin(), fault.facts.end());
  throw FormatError(fault.code, {std::move(asked), std::move(fault.why), std::move(fault.help)}, std::move(facts));
}

void require_path(const std::string& path, std::string_view asked) {
  if (!path.empty() && path.find('\0') == std::string::npos) return;
  throw ArgumentError(
      ErrorCode::invalid_name,
      {text::join(asked, ' ', text::quoted(path)), path.empty() ? "the path is empty" : "the path has a zero byte in it", "name a file"},
      {{"path", text::printable(path)}});
}

}  // namespace berth::internal::file
