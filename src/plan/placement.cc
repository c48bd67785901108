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

// What one or several plans need of a piece.
struct Room {
  std::size_t bytes = 0;
  std::size_t alignment = 0;
  void add(const Plan& plan, const Piece& piece) {
    bytes = std::max(bytes, piece.bytes);
    alignment = std::max(alignment, piece_alignment(plan, piece));
  }
};

Buffer make_room(const Plan& plan, std::uint32_t index, const Room& room, const std::shared_ptr<Allocator>& allocator) {
  const Device device(plan.graph().devices[index]);
  if (allocator != nullptr && allocator->device() != device)
    base::refuse(text::join("placing the arena of ", device.to_string()),
                 text::join("the allocator is on ", allocator->device().to_string()), "pass an allocator of that device");
  if (room.bytes == 0) return {};
  const std::shared_ptr<Allocator>& chosen = allocator != nullptr ? allocator : default_allocator(device);
  const std::size_t usual = backend(device).properties().alignment;
  return make_buffer(room.bytes, chosen, {.alignment = std::max(room.alignment, usual)});
}

Buffer make_piece(const Plan& plan, const Piece& piece, const std::shared_ptr<Allocator>& allocator) {
  Room room;
  room.add(plan, piece);
  return make_room(plan, piece.device, room, allocator);
}

Piece piece_of(const PlanChunk& chunk) { return {chunk.device, chunk.offset, chunk.bytes}; }

bool has_chunks(const Plan& plan, std::uint32_t device) {
  return std::any_of(plan.tables().chunks.begin(), plan.tables().chunks.end(), [&](const PlanChunk& c) { return c.device == device; });
}

// A device's whole arena; empty where it has chunks.
Piece whole_of(const Plan& plan, std::uint32_t device) {
  return {device, 0, has_chunks(plan, device) ? 0 : plan.tables().arenas[device].bytes};
}

void require_locations(const Plan& plan) {
  if (!plan.has_locations())
    base::refuse("placing a plan", text::join("its outcome is ", to_string(plan.outcome()), ", and no value has a location"),
                 "plan with a larger capacity");
}

void require_one_arena(const Plan& plan) {
  if (!plan.tables().chunks.empty())
    base::refuse("placing several plans on one memory", "one of them has chunks", "plan every range for one arena");
}

void require_same_devices(const Plan& plan, const Plan& first) {
  if (plan.graph().devices != first.graph().devices)
    base::refuse("placing several plans on one memory", "they are for different devices", "give plans of ranges of one graph");
}

// The allocator of each device, by the names that are given; null for its default. Those of chunks are left out.
std::vector<std::shared_ptr<Allocator>> choose_allocators(const Plan& plan,
                                                          const std::map<std::string, std::shared_ptr<Allocator>>& allocators) {
  const Graph& graph = plan.graph();
  std::vector<std::shared_ptr<Allocator>> chosen(graph.devices.size());
  const std::vector<PlanChunk>& chunks = plan.tables().chunks;
  for (const auto& [name, allocator] : allocators) {
    (void)require_allocator(allocator.get());
    if (std::any_of(chunks.begin(), chunks.end(), [&name = name](const PlanChunk& chunk) { return chunk.name == name; })) continue;
    const Device wanted(name);
    const auto at = std::find_if(graph.devices.begin(), graph.devices.end(), [&](const std::string& one) { return Device(one) == wanted; });
    if (at == graph.devices.end())
      base::refuse(text::join("an allocator for ", text::quoted(name)), "the graph has no such device", "leave it out");
    chosen[static_cast<std::size_t>(at - graph.devices.begin())] = allocator;
  }
  return chosen;
}

}  // namespace

Placement place(Plan plan, const std::map<std::string, std::shared_ptr<Allocator>>& allocators) {
  require_locations(plan);
  Placement placement(std::move(plan));
  const std::vector<std::shared_ptr<Allocator>> chosen = choose_allocators(placement.plan(), allocators);
  for (std::uint32_t device = 0; device < chosen.size(); ++device)
    placement.arenas_.push_back(make_piece(placement.plan(), whole_of(placement.plan(), device), chosen[device]));
  for (const PlanChunk& chunk : placement.plan().tables().chunks) {
    const auto named = allocators.find(chunk.name);
    const bool own = named != allocators.end() && !chunk.name.empty();
    placement.chunks_.push_back(make_piece(placement.plan(), piece_of(chunk), own ? named->second : chosen[chunk.device]));
  }
  return placement;
}

std::vector<Placement> place(std::vector<Plan> plans, const std::map<std::string, std::shared_ptr<Allocator>>& allocators) {
  std::vector<Placement> placements;
  for (Plan& plan : plans) {
    require_locations(plan);
    require_one_arena(plan);
    require_same_devices(plan, plans.front());
  }
  if (plans.empty()) return placements;
  const std::vector<std::shared_ptr<Allocator>> chosen = choose_allocators(plans.front(), allocators);
  std::vector<Buffer> arenas;
  for (std::uint32_t device = 0; device < chosen.size(); ++device) {
    Room room;
    for (const Plan& plan : plans) room.add(plan, whole_of(plan, device));
    arenas.push_back(make_room(plans.front(), device, room, chosen[device]));
  }
  for (Plan& plan : plans) {
    Placement& placement = placements.emplace_back(Placement(std::move(plan)));
    placement.arenas_ = arenas;
  }
  return placements;
}

Placement place(Plan plan, const Placement& earlier) {
  require_locations(plan);
  require_one_arena(plan);
  require_one_arena(earlier.plan());
  require_same_devices(plan, earlier.plan());
  for (std::uint32_t device = 0; device < earlier.arenas_.size(); ++device) {
    Room room;
    room.add(plan, whole_of(plan, device));
    const Buffer& arena = earlier.arenas_[device];
    const bool is_aligned = room.alignment == 0 || reinterpret_cast<std::uintptr_t>(arena.data()) % room.alignment == 0;
    if (room.bytes > arena.size_bytes() || !is_aligned)
      base::refuse(ErrorCode::limit_exceeded,
                   text::join("placing a plan on the memory of an earlier one on ", plan.graph().devices[device]),
                   text::join("it needs ", room.bytes, " bytes aligned to ", room.alignment, ", and has ", arena.size_bytes()),
                   "place the plans together: place({earlier, plan})", {{"needed", room.bytes}, {"has", arena.size_bytes()}});
  }
  Placement placement(std::move(plan));
  placement.arenas_ = earlier.arenas_;
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
