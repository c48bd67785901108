// SPDX-License-Identifier: Apache-2.0
#include "file/load/device_stage.h"

#include <utility>

#include "berth/device/element_copy.h"

namespace berth::internal::file::load {

void HostRoom::start(std::size_t number, StreamRef) {
  const Piece& piece = job_.plan.pieces[number];
  targets_.clear();
  for (const Part& part : job_.plan.parts_of(piece))
    targets_.push_back(job_.targets[part.tensor].data + part.first * size_bytes(job_.tensors[part.tensor].at_target));
  host_.bring(piece, targets_);
  bytes_ = piece.bytes;
}

void HostRoom::finish() { job_.progress->add(bytes_); }

DeviceRoom::DeviceRoom(LoadJob& job, std::shared_ptr<HostStage> host)
    : job_(job),
      host_(std::move(host)),
      staging_device_(job.device->properties().abilities.wants_pinned ? Device("pinned") : Device()),
      staging_(job.make_scratch(staging_device_, job.piece_bytes)) {}

void DeviceRoom::start(std::size_t number, StreamRef stream) {
  const Piece& piece = job_.plan.pieces[number];
  lay_out(piece);
  host_->bring(piece, addresses_);
  send(stream);
  bytes_ = piece.bytes;
}

void DeviceRoom::finish() { job_.progress->add(bytes_); }

void DeviceRoom::lay_out(const Piece& piece) {
  positions_.clear();
  addresses_.clear();
  std::size_t at = 0;
  for (const Part& part : job_.plan.parts_of(piece)) {
    positions_.push_back({&part, at});
    addresses_.push_back(staging_->data() + at);
    at += padded(part.count * size_bytes(tensor_of(part).from_host));
  }
}

std::byte* DeviceRoom::target_of(const Part& part) const noexcept {
  return job_.targets[part.tensor].data + part.first * size_bytes(tensor_of(part).at_target);
}

void DeviceRoom::send(StreamRef stream) {
  const Device there = job_.device->device();
  moves_.clear();
  for (const auto& [part, at] : positions_) {
    const bool by_scratch = converts_there(*part);
    if (by_scratch && scratch_ == nullptr) scratch_ = job_.make_scratch(there, job_.piece_bytes);
    std::byte* const target = by_scratch ? scratch_->data() + at : target_of(*part);
    moves_.push_back({target, there, staging_->data() + at, staging_device_, part->count * size_bytes(tensor_of(*part).from_host)});
  }
  copy::require_done(job_.device->copy_batch(moves_, stream), there, "copying what was loaded");
  for (const auto& [part, at] : positions_) {
    if (converts_there(*part)) convert(*part, at, stream);
  }
}

void DeviceRoom::convert(const Part& part, std::size_t at, StreamRef stream) {
  const FileTensor& tensor = tensor_of(part);
  const ElementCopy copy{.target = target_of(part),
                         .target_dtype = tensor.at_target,
                         .target_strides = {1},
                         .source = scratch_->data() + at,
                         .source_dtype = tensor.from_host,
                         .source_strides = {1},
                         .shape = {part.count}};
  copy::require_done(job_.device->copy_elements(copy, stream), job_.device->device(), "converting what was loaded");
}

}  // namespace berth::internal::file::load
