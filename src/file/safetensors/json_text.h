// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <memory>
#include <string_view>

namespace berth::internal::file {

// Text with padding after it, because the parser reads in large steps past the end. Plain data.
class JsonText {
 public:
  static constexpr std::size_t kRoom = 64;

  explicit JsonText(std::size_t bytes) : bytes_(bytes), data_(new char[bytes + kRoom]) { std::fill_n(data_.get() + bytes, kRoom, '\0'); }
  explicit JsonText(std::string_view text) : JsonText(text.size()) { std::copy(text.begin(), text.end(), data_.get()); }

  char* data() const noexcept { return data_.get(); }
  std::size_t size() const noexcept { return bytes_; }
  std::string_view view() const noexcept { return {data_.get(), bytes_}; }

 private:
  std::size_t bytes_;
  std::unique_ptr<char[]> data_;  // bytes_, then the padding
};

}  // namespace berth::internal::file
