// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <string>
#include <utility>
#include <vector>

#include "base/random.h"
#include "file/load/load_tensors.h"
#include "os/file/descriptor.h"
#include "support/descriptors.h"
#include "support/everything.h"
#include "support/scale.h"

// Files of tensors without a format, and the expected results of loading them.
namespace berth::testing {

using namespace internal::base;
namespace os = internal::os;
using namespace internal::file;

// Tensors of random bytes in one or several files, at given or random offsets. The files are removed with the
// object.
class TensorFiles {
 public:
  explicit TensorFiles(const std::string& folder = std::filesystem::temp_directory_path().string()) {
    std::string name = folder + "/berth_load_XXXXXX";
    if (mkdtemp(name.data()) == nullptr) throw std::runtime_error("no temporary folder");
    folder_ = name;
  }
  ~TensorFiles() { std::filesystem::remove_all(folder_); }
  TensorFiles(const TensorFiles&) = delete;
  TensorFiles& operator=(const TensorFiles&) = delete;

  // Adds a tensor after the others of the last file, after a gap.
  TensorEntry& add(DType dtype, const Shape& shape, std::size_t gap = 0) {
    if (bytes_.empty()) add_file();
    std::string& bytes = bytes_.back();
    bytes.append(gap, '\xee');
    const std::size_t size = shape.num_elements() * size_bytes(dtype);
    entries_.push_back({.name = "t" + std::to_string(entries_.size()),
                        .dtype = dtype,
                        .format_dtype = std::string(to_string(dtype)),
                        .shape = shape,
                        .file_offset = bytes.size(),
                        .size_bytes = size,
                        .file = bytes_.size() - 1});
    while (bytes.size() < entries_.back().file_offset + size) bytes.push_back(static_cast<char>(random_.next()));
    return entries_.back();
  }
  void add_file() { bytes_.emplace_back(); }

  // Writes the files. Nothing may be added afterwards.
  void write() {
    for (std::size_t i = 0; i < bytes_.size(); ++i) std::ofstream(path(i), std::ios::binary) << bytes_[i];
    for (std::size_t i = 0; i < bytes_.size(); ++i) descriptors_.emplace_back(open(path(i).c_str(), O_RDONLY | O_CLOEXEC));
  }

  // Whether elements are converted directly from the mapped file, where that is possible, or read first.
  void convert_in_place(bool in_place) { in_place_ = in_place; }

  std::string path(std::size_t file = 0) const { return folder_ + "/" + std::to_string(file); }
  std::span<const TensorEntry> entries() const { return entries_; }
  std::vector<TensorEntry>& entries() { return entries_; }
  std::size_t bytes() const {
    std::size_t sum = 0;
    for (const TensorEntry& entry : entries_) sum += entry.size_bytes;
    return sum;
  }

  load::LoadSource source(std::size_t piece_bytes = 0) const {
    load::LoadSource made{.files = {},
                          .entries = entries_,
                          .mapped = [this](const TensorEntry& entry) { return expected(entry, {}); },
                          .require_unchanged = [] {},
                          .piece_bytes = piece_bytes,
                          .least_in_place = in_place_ ? std::size_t{1} : std::size_t{1} << 40};
    for (std::size_t i = 0; i < descriptors_.size(); ++i) made.files.push_back({descriptors_[i].number(), path(i), {}});
    return made;
  }

  LoadedTensors load(const AllocatorRef& where, const LoadOptions& options, std::size_t piece_bytes = 0) const {
    return load::load_tensors(source(piece_bytes), where, options, Site::here());
  }

  // The expected tensor, made by a plain copy from the bytes that were written.
  Storage expected(const TensorEntry& entry, const LoadOptions& options) const {
    const char* const data = bytes_[entry.file].data() + entry.file_offset;
    const Storage raw = empty({entry.size_bytes}, DType::u8, "cpu");
    if (entry.size_bytes != 0) std::memcpy(raw.data_ptr(), data, entry.size_bytes);
    if (!entry.dtype) return raw;
    const DType dtype = load::loaded_dtype(entry, options);
    if (!entry.fortran_order) return raw.reinterpret(*entry.dtype).reshape(entry.shape).to(dtype);
    std::vector<std::int64_t> turned(entry.shape.begin(), entry.shape.end());
    std::ranges::reverse(turned);
    std::vector<std::int64_t> order;
    for (std::size_t axis = turned.size(); axis-- > 0;) order.push_back(static_cast<std::int64_t>(axis));
    return raw.reinterpret(*entry.dtype).reshape(Dims(turned)).permute(Dims(order)).to(dtype);
  }

  void expect_all(const LoadedTensors& loaded, const LoadOptions& options, const std::string& what) const {
    ASSERT_EQ(loaded.size(), entries_.size()) << what;
    for (const TensorEntry& entry : entries_) {
      const Storage& there = loaded[entry.name];
      ASSERT_TRUE(equal(there, expected(entry, options)))
          << what << ": " << entry.name << ", " << entry.format_dtype << " " << entry.shape.to_string() << " at " << entry.file_offset;
    }
  }

 private:
  Random random_{seed()};
  bool in_place_ = true;
  std::string folder_;
  std::vector<std::string> bytes_;
  std::vector<TensorEntry> entries_;
  std::vector<os::Descriptor> descriptors_;
};

// Simulated devices with and without kernels, and with and without a preference for page-locked memory.
inline const std::vector<Device>& load_devices() {
  static const std::vector<Device> made = [] {
    std::vector<Device> list;
    for (int bits = 0; bits < 4; ++bits)
      list.push_back(make_sim({.capacity_bytes = 256_MiB,
                               .seed = seed() + static_cast<std::uint64_t>(bits),
                               .kernels = (bits & 1) != 0,
                               .wants_pinned = (bits & 2) != 0}));
    return list;
  }();
  return made;
}

}  // namespace berth::testing
