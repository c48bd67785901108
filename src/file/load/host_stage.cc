// SPDX-License-Identifier: Apache-2.0
#include "file/load/host_stage.h"

#include <algorithm>

#include "berth/base/checked.h"
#include "copy/host/host_copy.h"
#include "file/load/load_errors.h"
#include "os/memory/bus_guard.h"

namespace berth::internal::file::load {

namespace {

// Longer reads are faster, up to this size, although it exceeds a core's L2 cache by the time it is converted.
constexpr std::size_t kScratchBytes = std::size_t{2} << 20;
constexpr std::size_t kDirectSlack = 3 * os::kDirectAlignment;  // alignment of the first block, and the bytes
                                                                // of blocks outside the range

void convert(const std::byte* source, DType from, std::byte* target, DType to, std::size_t count) noexcept {
  const std::int64_t shape = static_cast<std::int64_t>(count);
  const std::int64_t stride = 1;
  copy::copy_on_host({&shape, 1}, {const_cast<std::byte*>(source), from, {&stride, 1}}, {target, to, {&stride, 1}}, 1);
}

}  // namespace

bool HostStage::is_straight(const Part& part) const noexcept {
  const FileTensor& tensor = tensor_of(part);
  return tensor.in_file == tensor.from_host && !job_.direct;
}

void HostStage::bring(const Piece& piece, std::span<std::byte* const> targets) {
  for (Cursor at{piece, job_.plan.parts_of(piece), targets, piece.offset}; !at.done();) {
    if (is_straight(at.parts[at.part]))
      read_straight(at);
    else if (!convert_in_place(at))
      read_through_scratch(at);
  }
}

void HostStage::read_straight(Cursor& at) {
  ranges_.clear();
  std::size_t bytes = 0;
  for (; !at.done() && is_straight(at.parts[at.part]); ++at.part) {
    const Part& part = at.parts[at.part];
    ranges_.push_back({at.targets[at.part], part.count * size_bytes(tensor_of(part).in_file)});
    bytes += ranges_.back().bytes;
  }
  require_read(at.piece, at.offset, bytes, os::read_parts(job_.files[at.piece.file].descriptor, at.offset, ranges_));
  at.offset += bytes;
}

void HostStage::read_through_scratch(Cursor& at) {
  const std::uint64_t offset = at.offset;
  const std::size_t bytes = take_slices(at, kScratchBytes);
  place_slices(at, job_.direct ? fill_scratch_direct(at.piece, offset, bytes) : fill_scratch(at.piece, offset, bytes));
}

bool HostStage::convert_in_place(Cursor& at) {
  const LoadFile& file = job_.files[at.piece.file];
  if (!file.still) return false;
  Cursor behind = at;
  const std::size_t bytes = take_slices(behind, at.piece.bytes);
  const std::byte* const source = bytes < job_.least_in_place ? nullptr : file.still->touch(at.offset, bytes);
  if (source == nullptr) return false;  // reading reports what is wrong
  // A lease ends when its time does, and a process that was stopped meanwhile reads on.
  const os::TouchedRange touched{source, bytes};
  const os::BusGuard guard({&touched, 1});
  place_slices(at, source);
  if (guard.lost_at() != nullptr) return false;
  file.still->drop_pages(at.offset, bytes);
  at.part = behind.part;
  at.first = behind.first;
  at.offset = behind.offset;
  return true;
}

std::size_t HostStage::take_slices(Cursor& at, std::size_t most) {
  slices_.clear();
  std::size_t bytes = 0;
  while (!at.done() && !is_straight(at.parts[at.part])) {
    const Part& part = at.parts[at.part];
    const std::size_t size = size_bytes(tensor_of(part).in_file);
    const std::size_t count = std::min(part.count - at.first, (most - bytes) / size);
    if (count == 0) break;
    slices_.push_back({at.part, at.first, count});
    bytes += count * size;
    at.first += count;
    if (at.first < part.count) break;
    ++at.part;
    at.first = 0;
  }
  at.offset += bytes;
  return bytes;
}

void HostStage::place_slices(const Cursor& at, const std::byte* source) const {
  for (const Slice& slice : slices_) {
    const FileTensor& tensor = tensor_of(at.parts[slice.part]);
    std::byte* const target = at.targets[slice.part] + slice.first * size_bytes(tensor.from_host);
    convert(source, tensor.in_file, target, tensor.from_host, slice.count);
    source += slice.count * size_bytes(tensor.in_file);
  }
}

const std::byte* HostStage::fill_scratch(const Piece& piece, std::uint64_t offset, std::size_t bytes) {
  if (scratch_ == nullptr) scratch_ = job_.make_scratch(Device(), kScratchBytes);
  const os::ReadTarget target{scratch_->data(), bytes};
  require_read(piece, offset, bytes, os::read_parts(job_.files[piece.file].descriptor, offset, {&target, 1}));
  return scratch_->data();
}

const std::byte* HostStage::fill_scratch_direct(const Piece& piece, std::uint64_t offset, std::size_t bytes) {
  if (scratch_ == nullptr) scratch_ = job_.make_scratch(Device(), kScratchBytes + kDirectSlack);
  const auto address = reinterpret_cast<std::uintptr_t>(scratch_->data());
  std::byte* const blocks = scratch_->data() + (*try_align_up(address, os::kDirectAlignment) - address);
  const std::uint64_t begin = align_down(offset, os::kDirectAlignment);
  const std::size_t before = offset - begin;
  const std::size_t whole = *try_align_up(before + bytes, os::kDirectAlignment);
  const auto read = os::read_direct(job_.files[piece.file].direct.number(), begin, {blocks, whole}, before + bytes);
  require_read(piece, begin, before + bytes, read);
  return blocks + before;
}

void HostStage::require_read(const Piece& piece, std::uint64_t offset, std::size_t bytes, const Result<std::size_t>& read) const {
  if (read.ok() && *read >= bytes) return;
  const std::uint64_t at = std::max(offset + (read.ok() ? *read : 0), piece.offset);
  if (!read) throw_unreadable(job_, piece, at, read.failure());
  throw_too_short(job_, piece, at);
}

}  // namespace berth::internal::file::load
