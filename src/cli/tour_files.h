// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <string_view>

namespace berth::internal::cli {

// The output functions of a step of the tour.
struct TourVoice {
  std::function<void(std::string_view line)> say;
  std::function<void(std::string_view code, std::string_view result)> show;
  std::function<void(bool right, std::string_view claim)> check;
};

// Writes a model file, and reads it back.
void tour_files(const TourVoice& voice);

}  // namespace berth::internal::cli
