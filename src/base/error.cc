// SPDX-License-Identifier: Apache-2.0
#include "berth/base/error.h"

#include <array>
#include <utility>

#include "berth/base/json.h"

namespace berth {

std::string_view to_string(ErrorCode code) noexcept {
  constexpr std::array<std::string_view, 44> kNames = {"invalid_argument",
                                                       "size_overflow",
                                                       "invalid_shape",
                                                       "invalid_alignment",
                                                       "limit_exceeded",
                                                       "out_of_bounds",
                                                       "size_mismatch",
                                                       "unsupported_dtype",
                                                       "misaligned",
                                                       "not_viewable",
                                                       "overlapping_view",
                                                       "graph_cycle",
                                                       "undefined_value",
                                                       "duplicate_value",
                                                       "unknown_shape",
                                                       "binding_conflict",
                                                       "plan_invalid",
                                                       "invalid_name",
                                                       "read_only",
                                                       "wrong_device",
                                                       "busy",
                                                       "already_consumed",
                                                       "already_exists",
                                                       "not_found",
                                                       "permission_denied",
                                                       "untrusted",
                                                       "no_such_device",
                                                       "device_unavailable",
                                                       "device_lost",
                                                       "device_error",
                                                       "fork_unsafe",
                                                       "unsupported",
                                                       "peer_dead",
                                                       "timeout",
                                                       "too_many_descriptors",
                                                       "io_error",
                                                       "format_error",
                                                       "version_mismatch",
                                                       "path_escape",
                                                       "file_truncated",
                                                       "file_changed",
                                                       "out_of_memory",
                                                       "callback_failed",
                                                       "cancelled"};
  const auto index = static_cast<std::size_t>(code);
  return index < kNames.size() ? kNames[index] : "unknown_error";
}

struct Error::Detail {
  ErrorCode code;
  ErrorText text;
  std::vector<Fact> facts;
  std::string what;
};

Error::Error(ErrorCode code, ErrorText text, std::vector<Fact> facts) {
  std::string what = text.asked + ": " + text.why;
  if (!text.help.empty()) what += "; help: " + text.help;
  detail_ = std::make_shared<const Detail>(Detail{code, std::move(text), std::move(facts), std::move(what)});
}

// Out of line, as key functions, so that all libraries and the program share one type_info per class.
Error::~Error() = default;
ArgumentError::~ArgumentError() = default;
AccessError::~AccessError() = default;
DeviceError::~DeviceError() = default;
FormatError::~FormatError() = default;

const char* Error::what() const noexcept { return detail_->what.c_str(); }
ErrorCode Error::code() const noexcept { return detail_->code; }
const std::string& Error::asked() const noexcept { return detail_->text.asked; }
const std::string& Error::why() const noexcept { return detail_->text.why; }
const std::string& Error::help() const noexcept { return detail_->text.help; }
const std::vector<Fact>& Error::facts() const noexcept { return detail_->facts; }

std::string_view Error::fact(std::string_view name) const noexcept {
  for (const Fact& fact : detail_->facts) {
    if (fact.name == name) return fact.value;
  }
  return {};
}

void Error::write_json(JsonWriter& json) const {
  json.begin_object();
  json.member("error", to_string(code())).member("asked", asked()).member("why", why()).member("help", help());
  json.key("facts").begin_object();
  for (const Fact& fact : facts()) {
    json.key(fact.name);
    fact.is_number ? json.number(fact.value) : json.value(fact.value);
  }
  json.end_object().end_object();
}

}  // namespace berth
