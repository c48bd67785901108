// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <concepts>
#include <exception>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "berth/export.h"

// Errors. Everything berth throws on purpose derives from `Error`. Each error says three things in words (what
// was asked, why it failed, what would help) and carries the numbers behind them as facts, so that programs can
// act on it and people can read it.
//
//     try { empty({1 << 20, 1 << 20}, DType::f32, "sim:0"); }
//     catch (const OutOfMemory& e) { log(e.what()); use_less(e.report().would_be_enough_bytes); }
//
// The classes say who can act on the error; the code says which error it is. Exhaustion of the C++ heap itself
// (`std::bad_alloc`) passes through unchanged. Errors are cheap to copy and copying one never throws.
namespace berth {

class JsonWriter;  // base/json.h

// Grouped by the exception class that usually carries them.
enum class ErrorCode : unsigned char {
  // ArgumentError
  invalid_argument,
  size_overflow,
  invalid_shape,
  invalid_alignment,
  limit_exceeded,
  out_of_bounds,
  size_mismatch,
  unsupported_dtype,
  misaligned,
  not_viewable,
  overlapping_view,
  graph_cycle,
  undefined_value,
  duplicate_value,
  unknown_shape,
  binding_conflict,
  plan_invalid,
  invalid_name,
  // AccessError
  read_only,
  wrong_device,
  busy,
  already_consumed,
  already_exists,
  not_found,
  permission_denied,
  untrusted,
  // DeviceError
  no_such_device,
  device_unavailable,
  device_lost,
  device_error,
  fork_unsafe,
  unsupported,
  peer_dead,
  timeout,
  too_many_descriptors,
  io_error,
  // FormatError
  format_error,
  version_mismatch,
  path_escape,
  file_truncated,
  file_changed,
  // OutOfMemory
  out_of_memory,
  // Error itself
  callback_failed,
  cancelled,
};

// The name of the enumerator, the same in C++, JSON and the documentation.
BERTH_EXPORT std::string_view to_string(ErrorCode code) noexcept;

// One number or name behind an error: {"axis", 2}, {"device", "cuda:0"}.
struct Fact {
  std::string_view name;  // a string literal
  std::string value;
  bool is_number = false;

  Fact(std::string_view fact_name, std::string_view text) : name(fact_name), value(text) {}
  Fact(std::string_view fact_name, std::integral auto number) : name(fact_name), value(std::to_string(number)), is_number(true) {}
};

// What an error says in words. `asked` names the call and its argument, `why` the rule it broke, `help` what to
// do instead.
struct ErrorText {
  std::string asked;
  std::string why;
  std::string help;
};

class BERTH_EXPORT Error : public std::exception {
 public:
  Error(ErrorCode code, ErrorText text, std::vector<Fact> facts = {});
  ~Error() override;
  Error(const Error&) noexcept = default;
  Error& operator=(const Error&) noexcept = default;

  // "asked: why; help: help"
  const char* what() const noexcept override;

  ErrorCode code() const noexcept;
  const std::string& asked() const noexcept;
  const std::string& why() const noexcept;
  const std::string& help() const noexcept;
  const std::vector<Fact>& facts() const noexcept;

  // The value of the fact called `name`, or an empty view.
  std::string_view fact(std::string_view name) const noexcept;

  // {"error": code, "asked": …, "why": …, "help": …, "facts": {…}}
  void write_json(JsonWriter& json) const;

 private:
  struct Detail;
  std::shared_ptr<const Detail> detail_;  // shared, so that copying cannot throw
};

// The caller passed something that can never work: a shape, a stride, an alignment, a name.
class BERTH_EXPORT ArgumentError : public Error {
 public:
  using Error::Error;
  ~ArgumentError() override;
};

// The object exists, but this use of it is not allowed: it is read-only, on another device, busy, or already
// consumed.
class BERTH_EXPORT AccessError : public Error {
 public:
  using Error::Error;
  ~AccessError() override;
};

// The device does not exist, is not available here, or has failed.
class BERTH_EXPORT DeviceError : public Error {
 public:
  using Error::Error;
  ~DeviceError() override;
};

// Data from outside (a file, a DLPack tensor) breaks the rules of its format.
class BERTH_EXPORT FormatError : public Error {
 public:
  using Error::Error;
  ~FormatError() override;
};

// `OutOfMemory`, with its report, is in memory/out_of_memory.h.

}  // namespace berth
