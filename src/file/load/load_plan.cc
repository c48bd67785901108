// SPDX-License-Identifier: Apache-2.0
#include "file/load/load_plan.h"

#include <algorithm>
#include <numeric>

namespace berth::internal::file::load {

namespace {

constexpr std::size_t kMostParts = 256;  // of a piece: bounds the list that a thread keeps

std::size_t largest_size(const FileTensor& tensor) noexcept {
  return std::max({size_bytes(tensor.in_file), size_bytes(tensor.from_host), size_bytes(tensor.at_target)});
}

std::vector<std::size_t> in_file_order(std::span<const FileTensor> tensors) {
  std::vector<std::size_t> order(tensors.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::sort(order, [&](std::size_t a, std::size_t b) {
    const FileTensor& first = tensors[a];
    const FileTensor& second = tensors[b];
    if (first.file != second.file) return first.file < second.file;
    if (first.offset != second.offset) return first.offset < second.offset;
    return a < b;
  });
  return order;
}

class Cutter {
 public:
  Cutter(std::span<const FileTensor> tensors, std::size_t piece_bytes) : tensors_(tensors), piece_bytes_(piece_bytes) {}

  void add(std::size_t index) {
    const FileTensor& tensor = tensors_[index];
    const std::size_t most = piece_bytes_ / largest_size(tensor);  // elements of a whole piece
    for (std::size_t first = 0; first < tensor.elements;) {
      const std::size_t count = std::min(tensor.elements - first, most);
      append({index, first, count}, tensor);
      first += count;
    }
  }

  LoadPlan take() { return std::move(plan_); }

 private:
  void append(const Part& part, const FileTensor& tensor) {
    const std::uint64_t offset = tensor.offset + part.first * size_bytes(tensor.in_file);
    const std::size_t bytes = part.count * size_bytes(tensor.in_file);
    const std::size_t room = padded(part.count * largest_size(tensor));
    if (!continues(tensor.file, offset) || room > room_left_ || plan_.pieces.back().end - plan_.pieces.back().begin == kMostParts) {
      plan_.pieces.push_back({tensor.file, offset, 0, plan_.parts.size(), plan_.parts.size()});
      room_left_ = piece_bytes_;
    }
    Piece& piece = plan_.pieces.back();
    piece.bytes += bytes;
    ++piece.end;
    room_left_ -= room;
    plan_.parts.push_back(part);
    plan_.bytes += bytes;
  }

  bool continues(std::size_t file, std::uint64_t offset) const noexcept {
    if (plan_.pieces.empty()) return false;
    const Piece& last = plan_.pieces.back();
    return last.file == file && last.offset + last.bytes == offset;
  }

  const std::span<const FileTensor> tensors_;
  const std::size_t piece_bytes_;
  std::size_t room_left_ = 0;  // of the last piece
  LoadPlan plan_;
};

}  // namespace

LoadPlan plan_load(std::span<const FileTensor> tensors, std::size_t piece_bytes) {
  Cutter cutter(tensors, piece_bytes);
  for (const std::size_t index : in_file_order(tensors)) cutter.add(index);
  return cutter.take();
}

}  // namespace berth::internal::file::load
