// SPDX-License-Identifier: Apache-2.0
#include "berth/device/device.h"

#include <charconv>

#include "base/text.h"
#include "berth/base/error.h"
#include "device/kinds.h"

namespace berth {

using namespace internal;
using namespace internal::device;

namespace {

[[noreturn]] void throw_unknown_kind(std::string_view text) {
  throw DeviceError(
      ErrorCode::no_such_device,
      {text::join("device ", text::quoted(text)), "no such kind of device", text::join("the known kinds are ", known_kinds())},
      {{"device", text::printable(text)}, {"known", known_kinds()}});
}

[[noreturn]] void throw_bad_index(std::string_view text) {
  throw DeviceError(
      ErrorCode::no_such_device,
      {text::join("device ", text::quoted(text)), "the index is not a number from 0 to 65535", "write kind:index, as in cuda:0"},
      {{"device", text::printable(text)}});
}

}  // namespace

Device::Device(std::string_view text) {
  if (text == "cpu") return;  // by far the most common
  const std::size_t colon = text.find(':');
  const std::string_view kind = text.substr(0, colon);
  if (find_kind(kind) == nullptr) throw_unknown_kind(text);
  key_.kind = kind_number(kind);
  if (colon == std::string_view::npos) return;
  const std::string_view digits = text.substr(colon + 1);
  const auto [rest, error] = std::from_chars(digits.data(), digits.data() + digits.size(), key_.index);
  if (digits.empty() || error != std::errc() || rest != digits.data() + digits.size()) throw_bad_index(text);
}

Device::Device(std::string_view kind, int index) {
  if (find_kind(kind) == nullptr) throw_unknown_kind(kind);
  if (index < 0 || index >= BackendTable::kMost) throw_bad_index(text::join(kind, ':', index));
  key_ = {kind_number(kind), static_cast<std::uint16_t>(index)};
}

std::string_view Device::kind_name() const noexcept {
  const Kind* const kind = kind_at(key_.kind);
  return kind == nullptr ? "unknown" : std::string_view(kind->name);
}

std::string Device::to_string() const { return text::join(kind_name(), ':', key_.index); }

}  // namespace berth
