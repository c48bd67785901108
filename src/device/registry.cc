// SPDX-License-Identifier: Apache-2.0
#include "berth/device/registry.h"
#include "berth/device/backend.h"

#include "base/text.h"
#include "berth/base/error.h"
#include "device/kinds.h"

namespace berth {

using namespace internal;
using namespace internal::device;

namespace {

// RAII mark that a backend is being made; cleared whether the factory succeeds or throws.
class Making {
 public:
  // Returns false when another thread has made it meanwhile; then there is nothing to do.
  static bool begin(Kind& kind, int index) {
    const os::Lock lock(kind.mutex);
    while (true) {
      if (kind.backends.get(index) != nullptr) return false;
      const auto [entry, fresh] = kind.being_made.try_emplace(index);
      if (fresh) return true;
      if (entry->second.is_inherited()) {  // its thread exists only in the parent process
        entry->second = {};
        return true;
      }
      kind.changed.wait(kind.mutex);
    }
  }

  Making(Kind& kind, int index) noexcept : kind_(kind), index_(index) {}
  Making(const Making&) = delete;
  Making& operator=(const Making&) = delete;
  ~Making() {
    {
      const os::Lock lock(kind_.mutex);
      kind_.being_made.erase(index_);
    }
    kind_.changed.notify_all();
  }

  void publish(std::unique_ptr<Backend> made) {
    const os::Lock lock(kind_.mutex);
    kind_.backends.set(index_, made.get());
    (void)made.release();  // the table owns it from here on
  }

 private:
  Kind& kind_;
  int index_;
};

[[noreturn]] void throw_unavailable(Device device, std::string reason) {
  throw DeviceError(ErrorCode::device_unavailable,
                    {text::join("using ", device.to_string()), std::move(reason), "berth doctor shows what this machine has"},
                    {{"device", device.to_string()}});
}

[[noreturn]] void throw_past_the_last(Device device, int count) {
  throw DeviceError(ErrorCode::no_such_device,
                    {text::join("using ", device.to_string()), text::join("this machine has ", count, " of the kind ", device.kind_name()),
                     text::join("use ", device.kind_name(), ":0", count > 1 ? text::join(" to ", device.kind_name(), ':', count - 1) : "")},
                    {{"index", device.index()}, {"count", count}});
}

}  // namespace

void register_backend(std::string_view kind, std::unique_ptr<BackendFactory> factory) { add_kind(kind, std::move(factory)); }

Backend& backend(Device device) {
  Kind* const kind = kind_at(device.key().kind);
  if (kind == nullptr) throw_unavailable(device, "there is no such kind of device");
  if (Backend* const known = kind->backends.get(device.index())) return *known;
  const int count = kind->factory->count();
  if (count == 0) throw_unavailable(device, kind->factory->unavailable_reason());
  if (device.index() >= count) throw_past_the_last(device, count);
  if (Making::begin(*kind, device.index())) {
    Making making(*kind, device.index());
    std::unique_ptr<Backend> made = kind->factory->make(device);
    if (made == nullptr) throw_unavailable(device, "its factory made no backend");
    making.publish(std::move(made));
  }
  return *kind->backends.get(device.index());
}

Backend* find_backend(Device device) noexcept {
  const Kind* const kind = kind_at(device.key().kind);
  if (kind == nullptr) return nullptr;
  if (Backend* const known = kind->backends.get(device.index())) return known;
  try {
    return &backend(device);
  } catch (...) {    // a third party's factory may throw anything
    return nullptr;  // backend() reports the reason
  }
}

std::vector<KindInfo> device_kinds() {
  std::vector<KindInfo> kinds;
  for (std::uint16_t i = 0; i < kind_count(); ++i) {
    Kind& kind = *kind_at(i);
    const int count = kind.factory->count();
    kinds.push_back({kind.name, count, count == 0 ? kind.factory->unavailable_reason() : ""});
  }
  return kinds;
}

std::vector<Device> all_devices() {
  std::vector<Device> devices;
  for (const KindInfo& kind : device_kinds()) {
    for (int index = 0; index < kind.count; ++index) devices.emplace_back(kind.name, index);
  }
  return devices;
}

}  // namespace berth
