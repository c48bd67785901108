// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "berth/base/error.h"
#include "berth/base/result.h"

// Throws what is wrong with a file as the right exception, with advice. Used by everything in file/; any
// thread.
namespace berth::internal::file {

// For failed system calls. The path is appended to `asked`.
[[noreturn]] void throw_file_failure(const Failure& failure, std::string_view asked, std::string_view path, std::vector<Fact> facts = {});

template <class T>
T value_or_throw(Result<T> result, std::string_view asked, std::string_view path) {
  if (!result) throw_file_failure(result.failure(), asked, path);
  return std::move(*result);
}

inline void require_done(const Status& status, std::string_view asked, std::string_view path) {
  if (!status) throw_file_failure(status.failure(), asked, path);
}

// The file breaks a rule of its format.
struct Fault {
  std::string_view rule;  // one word, for programs: "duplicate_key"
  std::string why;
  std::string help = "get the file again, or write it with another tool";
  ErrorCode code = ErrorCode::format_error;
  std::optional<std::uint64_t> offset = {};   // in the file
  std::optional<std::string_view> name = {};  // the tensor
  std::vector<Fact> facts = {};               // further facts
};
[[noreturn]] void throw_fault(std::string_view path, Fault fault);

// Throws ArgumentError(invalid_name) for an empty path, or one with a NUL byte, which the system would
// truncate.
void require_path(const std::string& path, std::string_view asked);

}  // namespace berth::internal::file
