// SPDX-License-Identifier: Apache-2.0
#include "berth/plan/placement.h"

#include <algorithm>

#include "base/refuse.h"
#include "base/text.h"
#include "berth/base/error.h"
#include "berth/device/backend.h"
#include "berth/device/registry.h"

namespace berth {

using namespace internal;

namespace {

// One allocation: a device's whole arena, or a chunk of it.
struct Piece {
  std::uint32_t device;
  std::size_t offset;
  std::size_t bytes;
  bool holds(const ValueLocation& location) const { return location.offset >= offset && location.offset - offset < bytes; }
};

// The greatest alignment of any value in it, so that offsets keep their alignment in memory.
std::size_t piece_alignment(const Plan& plan, const Piece& piece) {
  std::size_t most = 0;
  for (ValueId v = 0; v < plan.graph().values.size(); ++v)
    if (plan.graph().values[v].device == piece.device && plan.location(v).planned() && plan.location(v).extent_bytes != 0 &&
        piece.holds(plan.location(v)))
      most = std::max(most, plan.location(v).alignment);
  return most;
}

Buffer make_piece(const Plan& plan, const Piece& piece, const std::shared_ptr<Allocator>& allocator) {
  const Device device(plan.graph().devices[piece.device]);
  if (allocator != nullptr && allocator->device() != device)
    base::refuse(text::join("placing the arena of ", device.to_string()),
                 text::join("the allocator is on ", allocator->device().to_string()), "pass an allocator of that device");
  if (piece.bytes == 0) return {};
  const std::shared_ptr<Allocator>& chosen = allocator != nullptr ? allocator : default_allocator(device);
  const std::size_t usual = backend(device).properties().alignment;
  return make_buffer(piece.bytes, chosen, {.alignment = std::max(piece_alignment(plan, piece), usual)});
}

Piece piece_of(const PlanChunk& chunk) { return {chunk.device, chunk.offset, chunk.bytes}; }

bool has_chunks(const Plan& plan, std::uint32_t device) {
  return std::any_of(plan.tables().chunks.begin(), plan.tables().chunks.end(), [&](const PlanChunk& c) { return c.device == device; });
}

// A device's whole arena; empty where it has chunks.
Piece whole_of(const Plan& plan, std::uint32_t device) {
  return {device, 0, has_chunks(plan, device) ? 0 : plan.tables().arenas[device].bytes};
}

}  // namespace

Placement place(Plan plan, const std::map<std::string, std::shared_ptr<Allocator>>& allocators) {
  if (!plan.has_locations())
    base::refuse("placing a plan", text::join("its outcome is ", to_string(plan.outcome()), ", and no value has a location"),
                 "plan with a larger capacity");
  Placement placement(std::move(plan));
  const Graph& graph = placement.plan().graph();
  std::vector<std::shared_ptr<Allocator>> chosen(graph.devices.size());
  const std::vector<PlanChunk>& chunks = placement.plan().tables().chunks;
  for (const auto& [name, allocator] : allocators) {
    if (std::any_of(chunks.begin(), chunks.end(), [&name = name](const PlanChunk& chunk) { return chunk.name == name; })) {
      (void)require_allocator(allocator.get());
      continue;  // used for chunks, below
    }
    const Device wanted(name);
    const auto at = std::find_if(graph.devices.begin(), graph.devices.end(), [&](const std::string& one) { return Device(one) == wanted; });
    if (at == graph.devices.end())
      base::refuse(text::join("an allocator for ", text::quoted(name)), "the graph has no such device", "leave it out");
    (void)require_allocator(allocator.get());
    chosen[static_cast<std::size_t>(at - graph.devices.begin())] = allocator;
  }
  for (std::uint32_t device = 0; device < chosen.size(); ++device)
    placement.arenas_.push_back(make_piece(placement.plan(), whole_of(placement.plan(), device), chosen[device]));
  for (const PlanChunk& chunk : chunks) {
    const auto named = allocators.find(chunk.name);
    const bool own = named != allocators.end() && !chunk.name.empty();
    placement.chunks_.push_back(make_piece(placement.plan(), piece_of(chunk), own ? named->second : chosen[chunk.device]));
  }
  return placement;
}

const Buffer& Placement::arena(std::uint32_t device) const {
  if (device >= arenas_.size())
    throw ArgumentError(ErrorCode::out_of_bounds,
                        {text::join("the arena of device ", device), text::join("the graph has ", arenas_.size(), " devices"),
                         "use an index into Graph::devices"},
                        {{"device", device}});
  return arenas_[device];
}

const Buffer& Placement::chunk(std::size_t index) const {
  if (index >= chunks_.size())
    throw ArgumentError(ErrorCode::out_of_bounds,
                        {text::join("chunk ", index), text::join("the plan has ", chunks_.size()), "use an index into PlanTables::chunks"},
                        {{"chunk", index}});
  return chunks_[index];
}

Placement::Spot Placement::spot(ValueId value) const {
  const ValueLocation& where = plan_.location(value);
  if (!where.planned())
    base::refuse(text::join("the bytes of ", plan_.graph().describe_value(value)),
                 text::join("it has no location: ", to_string(where.reason)), "look at Plan::unplanned");
  const std::uint32_t device = plan_.graph().values[value].device;
  for (std::size_t i = 0; i < chunks_.size(); ++i)
    if (const PlanChunk& chunk = plan_.tables().chunks[i]; chunk.device == device && piece_of(chunk).holds(where))
      return {chunks_[i], where.offset - chunk.offset};
  return {arenas_[device], where.offset};
}

Storage Placement::operator[](ValueId value) const {
  (void)plan_.location(value);  // throws if out of bounds
  const GraphValue& one = plan_.graph().values[value];
  if (one.dtype && one.shape) return at(value, *one.dtype, *one.shape);
  const auto bytes = static_cast<std::int64_t>(one.size_bytes().value_or(0));
  return at(value, DType::u8, Shape{bytes});
}

Storage Placement::at(ValueId value, DType dtype, const Shape& shape) const {
  const ValueLocation& where = plan_.location(value);
  const std::string name = plan_.graph().describe_value(value);
  if (!where.planned())
    base::refuse(text::join("the storage of ", name), text::join("it has no location: ", to_string(where.reason)),
                 "look at Plan::unplanned");
  const std::size_t needed = shape.size_bytes(dtype);
  const std::size_t planned = *plan_.graph().values[value].size_bytes();
  if (needed > planned)
    throw ArgumentError(ErrorCode::limit_exceeded,
                        {text::join(name, " as ", to_string(dtype), " ", shape.to_string()),
                         text::join("it needs ", needed, " bytes and was planned with ", planned), "plan again with the larger size"},
                        {{"needed", needed}, {"planned", planned}});
  const Spot there = spot(value);
  if (there.offset % size_bytes(dtype) != 0 && needed != 0)
    throw ArgumentError(ErrorCode::misaligned, {text::join(name, " as ", to_string(dtype)), text::join("it lies at offset ", there.offset),
                                                "plan it with the alignment of the dtype"});
  if (needed == 0) return Storage(there.buffer, dtype, shape, Strides::contiguous(shape), 0);
  return Storage(there.buffer, dtype, shape, Strides::contiguous(shape), static_cast<std::int64_t>(there.offset / size_bytes(dtype)));
}

void Placement::move(std::uint32_t device, const std::shared_ptr<Allocator>& allocator) {
  (void)arena(device);  // throws if out of bounds
  (void)require_allocator(allocator.get());
  std::vector<std::pair<Buffer*, Piece>> pieces = {{&arenas_[device], whole_of(plan_, device)}};
  for (std::size_t i = 0; i < chunks_.size(); ++i)
    if (const PlanChunk& one = plan_.tables().chunks[i]; one.device == device) pieces.emplace_back(&chunks_[i], piece_of(one));
  std::vector<Buffer> fresh;
  for (const auto& [old, piece] : pieces)
    if (*old && old->use_count() > 1)
      throw AccessError(ErrorCode::busy,
                        {text::join("moving the arena of ", plan_.graph().devices[device]),
                         text::join(old->use_count() - 1, " handles of it are live"), "drop its storages first"},
                        {{"handles", old->use_count() - 1}});
  for (const auto& [old, piece] : pieces) {
    fresh.push_back(make_piece(plan_, piece, allocator));
    if (fresh.back()) fresh.back().copy_from(*old);
  }
  for (std::size_t i = 0; i < pieces.size(); ++i) *pieces[i].first = std::move(fresh[i]);
}

}  // namespace berth
