// SPDX-License-Identifier: Apache-2.0
#include <fmt/core.h>

#include "base/text.h"
#include "berth/berth.h"
#include "berth/extend.h"
#include "cli/commands.h"
#include "cli/table.h"

namespace berth::internal::cli {

namespace {

void write_device(JsonWriter& json, Device device) {
  const Backend& behind = backend(device);
  const BackendProperties& properties = behind.properties();
  const MemoryInfo memory = behind.memory_info();
  const Abilities& can = properties.abilities;
  json.begin_object();
  json.member("device", device.to_string()).member("kind", device.kind_name()).member("index", device.index());
  json.member("description", properties.description).member("allocator", default_allocator(device)->name());
  json.member("total_bytes", memory.total_bytes).member("free_bytes", memory.free_bytes).member("limited_by_cgroup", memory.limited);
  json.member("unit_bytes", properties.unit_bytes).member("alignment", properties.alignment);
  json.key("abilities").begin_object();
  json.member("host_access", can.host_access)
      .member("move", can.move)
      .member("streams", can.streams)
      .member("pinned", can.pinned)
      .member("fork_safe", can.fork_safe)
      .member("fork_fresh", can.fork_fresh)
      .member("shared", can.shared);
  json.end_object().end_object();
}

std::string devices_json() {
  JsonWriter json(JsonWriter::Style::pretty);
  json.begin_object().key("devices").begin_array();
  for (const Device device : all_devices()) write_device(json, device);
  json.end_array().key("unavailable").begin_array();
  for (const KindInfo& kind : device_kinds()) {
    if (kind.count == 0) json.begin_object().member("kind", kind.name).member("reason", kind.unavailable_reason).end_object();
  }
  json.end_array().end_object();
  return json.take() + "\n";
}

std::string devices_table() {
  using enum Table::Align;
  Table table({{"device"},
               {"free", right},
               {"of", right},
               {"unit", right},
               {"align", right},
               {"host"},
               {"streams"},
               {"allocator"},
               {"what it is"}});
  for (const Device device : all_devices()) {
    const Backend& behind = backend(device);
    const BackendProperties& properties = behind.properties();
    const MemoryInfo memory = behind.memory_info();
    const auto yes = [](bool flag) { return std::string(flag ? "yes" : "no"); };
    table.add({paint(Mood::strong, device.to_string()), text::bytes(memory.free_bytes),
               text::bytes(memory.total_bytes) + (memory.limited ? "*" : ""), text::bytes(properties.unit_bytes),
               text::bytes(properties.alignment), yes(properties.abilities.host_access), yes(properties.abilities.streams),
               default_allocator(device)->name(), text::printable(properties.description)});
  }
  std::string out = table.to_string();
  if (backend(Device()).memory_info().limited) out += "  * the control group's limit, not the machine's memory\n";
  for (const KindInfo& kind : device_kinds()) {
    if (kind.count == 0) out += paint(Mood::quiet, fmt::format("  {}: {}\n", kind.name, kind.unavailable_reason));
  }
  return out;
}

}  // namespace

Exit run_devices(bool json) {
  print(json ? devices_json() : devices_table());
  return Exit::ok;
}

}  // namespace berth::internal::cli
