// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <unistd.h>

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>

// Files for tests, in a folder of their own that is removed with the object.
namespace berth::testing {

class Folder {
 public:
  Folder() : path_(std::filesystem::temp_directory_path() / ("berth_file_" + std::to_string(getpid()) + "_" + std::to_string(next()++))) {
    std::filesystem::create_directories(path_);
  }
  ~Folder() { std::filesystem::remove_all(path_); }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;

  std::string operator/(const std::string& name) const { return (path_ / name).string(); }
  std::string write(const std::string& name, const std::string& bytes) const {
    std::filesystem::create_directories((path_ / name).parent_path());
    std::ofstream(path_ / name, std::ios::binary) << bytes;
    return *this / name;
  }
  std::string read(const std::string& name) const {
    std::stringstream bytes;
    bytes << std::ifstream(path_ / name, std::ios::binary).rdbuf();
    return bytes.str();
  }
  std::size_t count() const {
    const std::filesystem::directory_iterator files(path_);
    return static_cast<std::size_t>(std::distance(begin(files), end(files)));
  }
  std::string path() const { return path_.string(); }

 private:
  static int& next() {
    static int number = 0;
    return number;
  }
  std::filesystem::path path_;
};

// A number in little-endian order.
inline std::string little(std::uint64_t value, std::size_t bytes) {
  std::string out;
  for (std::size_t i = 0; i < bytes; ++i) out += static_cast<char>(value >> (8 * i) & 0xFF);
  return out;
}

// A safetensors file with that header, and `data_bytes` bytes of data.
inline std::string safetensors_bytes(const std::string& header, std::size_t data_bytes) {
  std::string out = little(header.size(), 8) + header;
  for (std::size_t i = 0; i < data_bytes; ++i) out += static_cast<char>(i);
  return out;
}

}  // namespace berth::testing
