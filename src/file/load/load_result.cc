// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <numeric>

#include "base/text.h"
#include "berth/base/json.h"
#include "berth/file/load.h"

namespace berth {

using namespace internal;

namespace {

constexpr std::array<std::string_view, 4> kModes = {"auto", "map", "read", "direct"};

}  // namespace

std::string_view to_string(LoadMode mode) noexcept { return kModes[static_cast<std::size_t>(mode)]; }

LoadMode parse_load_mode(std::string_view name) {
  const auto found = std::ranges::find(kModes, name);
  if (found != kModes.end()) return static_cast<LoadMode>(found - kModes.begin());
  throw ArgumentError(ErrorCode::invalid_argument,
                      {text::join("loading with the mode ", text::quoted(name)), "there is no such mode", "use auto, map, read or direct"},
                      {{"mode", text::printable(name)}});
}

void LoadReport::write_json(JsonWriter& json) const {
  json.begin_object();
  json.member("mode", to_string(mode)).member("asked_mode", to_string(asked_mode)).member("mode_reason", mode_reason);
  json.member("threads", threads).member("device", device.to_string());
  json.member("tensors", tensors).member("converted", converted).member("mapped", mapped);
  json.member("file_bytes", file_bytes).member("target_bytes", target_bytes).member("staging_bytes", staging_bytes);
  json.member("time_ns", time_ns);
  json.end_object();
}

LoadedTensors::LoadedTensors(std::vector<NamedTensor> tensors, LoadReport report)
    : tensors_(std::move(tensors)), by_name_(tensors_.size()), report_(std::move(report)) {
  std::iota(by_name_.begin(), by_name_.end(), std::size_t{0});
  std::ranges::sort(by_name_, {}, [&](std::size_t i) -> const std::string& { return tensors_[i].name; });
}

const Storage* LoadedTensors::find(std::string_view name) const noexcept {
  const auto name_of = [&](std::size_t i) { return std::string_view(tensors_[i].name); };
  const auto found = std::ranges::lower_bound(by_name_, name, {}, name_of);
  return found != by_name_.end() && name_of(*found) == name ? &tensors_[*found].storage : nullptr;
}

const Storage& LoadedTensors::operator[](std::string_view name) const {
  const Storage* const found = find(name);
  if (found != nullptr) return *found;
  throw AccessError(ErrorCode::not_found,
                    {text::join("the tensor ", text::quoted(name), " of ", size(), " that were loaded"), "there is none of that name",
                     "iterate over them to see their names, or use find(name), which may return nullptr"},
                    {{"name", text::printable(name)}, {"tensors", size()}});
}

}  // namespace berth
