// SPDX-License-Identifier: Apache-2.0
#include "berth/plan/placement.h"

#include <algorithm>

#include "base/text.h"
#include "berth/base/error.h"
#include "berth/device/registry.h"

namespace berth {

namespace {

[[noreturn]] void refuse(std::string asked, std::string why, std::string help) {
  throw ArgumentError(ErrorCode::invalid_argument, {std::move(asked), std::move(why), std::move(help)});
}

// The most that any value of the device asks for, so that offsets keep their alignment in memory.
std::size_t arena_alignment(const Plan& plan, std::uint32_t device) {
  std::size_t most = 0;
  for (ValueId v = 0; v < plan.graph().values.size(); ++v)
    if (plan.graph().values[v].device == device && plan.place(v).planned() && plan.place(v).extent_bytes != 0)
      most = std::max(most, plan.place(v).alignment);
  return most;
}

Buffer make_arena(const Plan& plan, std::uint32_t device, const std::shared_ptr<Allocator>& allocator) {
  const Device place(plan.graph().devices[device]);
  const std::size_t bytes = plan.tables().arenas[device].bytes;
  if (allocator != nullptr && allocator->device() != place)
    refuse(text::join("placing the arena of ", place.to_string()), text::join("the allocator is on ", allocator->device().to_string()),
           "hand in an allocator of that device");
  if (bytes == 0) return {};
  const std::shared_ptr<Allocator>& chosen = allocator != nullptr ? allocator : default_allocator(place);
  const std::size_t usual = backend(place).properties().alignment;
  return make_buffer(bytes, chosen, {.alignment = std::max(arena_alignment(plan, device), usual)});
}

}  // namespace

Placement place(Plan plan, const std::map<std::string, std::shared_ptr<Allocator>>& allocators) {
  if (!plan.has_places())
    refuse("placing a plan", text::join("its outcome is ", to_string(plan.outcome()), ", and no value has a place"),
           "plan with a larger capacity");
  Placement placement(std::move(plan));
  const Graph& graph = placement.plan().graph();
  std::vector<std::shared_ptr<Allocator>> chosen(graph.devices.size());
  for (const auto& [name, allocator] : allocators) {
    const Device wanted(name);
    const auto at = std::find_if(graph.devices.begin(), graph.devices.end(), [&](const std::string& one) { return Device(one) == wanted; });
    if (at == graph.devices.end())
      refuse(text::join("an allocator for ", text::quoted(name)), "the graph has no such device", "leave it out");
    (void)require_allocator(allocator.get());
    chosen[static_cast<std::size_t>(at - graph.devices.begin())] = allocator;
  }
  for (std::uint32_t device = 0; device < chosen.size(); ++device)
    placement.arenas_.push_back(make_arena(placement.plan(), device, chosen[device]));
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

Storage Placement::operator[](ValueId value) const {
  (void)plan_.place(value);  // refuses what is not there
  const GraphValue& one = plan_.graph().values[value];
  if (one.dtype && one.shape) return at(value, *one.dtype, *one.shape);
  const auto bytes = static_cast<std::int64_t>(one.size_bytes().value_or(0));
  return at(value, DType::u8, Shape{bytes});
}

Storage Placement::at(ValueId value, DType dtype, const Shape& shape) const {
  const ValuePlace& where = plan_.place(value);
  const std::string name = plan_.graph().describe_value(value);
  if (!where.planned())
    refuse(text::join("the storage of ", name), text::join("it has no place: ", to_string(where.reason)), "look at Plan::unplanned");
  const std::size_t needed = shape.size_bytes(dtype);
  const std::size_t planned = *plan_.graph().values[value].size_bytes();
  if (needed > planned)
    throw ArgumentError(ErrorCode::limit_exceeded,
                        {text::join(name, " as ", to_string(dtype), " ", shape.to_string()),
                         text::join("it needs ", needed, " bytes and was planned with ", planned), "plan again with the larger size"},
                        {{"needed", needed}, {"planned", planned}});
  if (where.offset % size_bytes(dtype) != 0 && needed != 0)
    throw ArgumentError(ErrorCode::misaligned, {text::join(name, " as ", to_string(dtype)), text::join("it lies at offset ", where.offset),
                                                "plan it with the alignment of the dtype"});
  const Buffer& buffer = arenas_[plan_.graph().values[value].device];
  if (needed == 0) return Storage(buffer, dtype, shape, Strides::contiguous(shape), 0);
  return Storage(buffer, dtype, shape, Strides::contiguous(shape), static_cast<std::int64_t>(where.offset / size_bytes(dtype)));
}

void Placement::move(std::uint32_t device, const std::shared_ptr<Allocator>& allocator) {
  const Buffer& old = arena(device);
  (void)require_allocator(allocator.get());
  if (old && old.use_count() > 1)
    throw AccessError(ErrorCode::busy,
                      {text::join("moving the arena of ", plan_.graph().devices[device]),
                       text::join(old.use_count() - 1, " handles of it are out"), "let go of its storages first"},
                      {{"handles", old.use_count() - 1}});
  Buffer fresh = make_arena(plan_, device, allocator);
  if (fresh) fresh.copy_from(old);
  arenas_[device] = std::move(fresh);
}

}  // namespace berth
