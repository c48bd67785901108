// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <string_view>

namespace berth::internal::cli {

// How a step of the tour speaks.
struct TourVoice {
  std::function<void(std::string_view line)> say;
  std::function<void(std::string_view code, std::string_view result)> show;
  std::function<void(bool right, std::string_view claim)> check;
};

// Writes a model file, and reads it again.
void tour_files(const TourVoice& voice);

}  // namespace berth::internal::cli
