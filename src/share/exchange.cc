// SPDX-License-Identifier: Apache-2.0
#include "share/exchange.h"

#include <utility>

#include "berth/storage/create.h"
#include "os/mutex.h"
#include "share/errors.h"

namespace berth::sharing {

namespace {

// Holds a slot of a segment for a buffer: its own block, or bytes of another process.
class SlotGuard : public BufferGuard {
 public:
  explicit SlotGuard(Exported held) : held_(std::move(held)) {}
  ~SlotGuard() override {
    if (held_.segment != nullptr) held_.segment->let_go(held_.slot);
  }

  void let_go(const Block& block, Allocator* allocator, std::shared_ptr<Allocator> kept_alive) noexcept override {
    const Exported held = std::exchange(held_, {});
    held.segment->let_go(held.slot, HeldBlock{block, allocator, std::move(kept_alive)});
  }

  const Exported& held() const noexcept { return held_; }
  void hold(Exported held) noexcept { held_ = std::move(held); }

 private:
  Exported held_;
};

// Guards are set once, and looked at, under this. Never destroyed.
os::Mutex& guards() {
  static auto* const made = new os::Mutex;
  return *made;
}
[[maybe_unused]] const os::Mutex& g_made_at_load = guards();

const Exported* held_by(const Buffer& buffer) noexcept {
  const os::Lock lock(guards());
  const auto* const guard = dynamic_cast<const SlotGuard*>(BufferMaker::guard(buffer).get());
  return guard == nullptr ? nullptr : &guard->held();
}

Result<SharedAttachment> make_segment(const SharedPlace& place) {
  Result<std::shared_ptr<Segment>> made = Segment::make_own(place);
  if (!made) return made.failure();
  return SharedAttachment(std::move(*made));
}

constexpr Failure kNotShared{ErrorCode::wrong_device, 0, "its bytes do not lie in shared memory of this process"};

}  // namespace

Device shared_device() {
  static const Device device("shared");
  return device;
}

Result<Exported> exported(const Storage& storage) {
  const Buffer& buffer = storage.buffer();
  if (const Exported* const known = held_by(buffer)) return *known;
  if (BufferMaker::guard(buffer) != nullptr)
    return Failure{ErrorCode::unsupported, 0, "a storage with a name travels by its name: see open_shared"};
  const Block block = buffer.block();
  const std::optional<SharedPlace> place = find_shared_place(block.data, block.bytes);
  if (!place) return kNotShared;
  const Result<SharedAttachment> attached = shared_attachment(place->range, make_segment);
  if (!attached) return attached.failure();
  auto fresh = std::make_unique<SlotGuard>(Exported{});
  const auto segment = std::static_pointer_cast<Segment>(*attached);
  const Result<std::uint32_t> slot = segment->publish(place->offset, block.bytes);
  if (!slot) return slot.failure();
  fresh->hold({segment, *slot});
  std::unique_ptr<BufferGuard> guard = std::move(fresh);
  {
    const os::Lock lock(guards());
    if (BufferMaker::guard(buffer) == nullptr) BufferMaker::guard(buffer).swap(guard);
  }
  // Another thread was first: its slot counts, and this one goes with the guard that was not needed.
  return *held_by(buffer);
}

StorageLayout layout_of(const Storage& storage) {
  return {.dtype = storage.dtype(),
          .read_only = storage.is_read_only(),
          .offset = storage.offset(),
          .shape = storage.shape(),
          .strides = storage.strides()};
}

Storage storage_without_bytes(const StorageLayout& layout) {
  const Storage made = empty(layout.shape, layout.dtype, shared_device());
  return layout.read_only ? made.read_only() : made;
}

Result<Storage> import_content(const TicketContent& content, const std::shared_ptr<Segment>& segment, bool read_only) {
  const StorageLayout& layout = content.layout;
  const Result<SlotBytes> seen = segment->look(content.name);
  if (!seen) return seen.failure();
  if (!lies_inside(layout, seen->bytes)) return Failure{ErrorCode::format_error, 0, "the ticket's elements lie outside its bytes"};
  const os::Access access = read_only ? os::Access::read : os::Access::write;
  const Result<void*> address = segment->address_of(seen->offset, seen->bytes, access);
  if (!address) return address.failure();
  // All that can fail for a lack of heap is made first: then the ticket is used up, or nothing has changed.
  Deleter none;
  Buffer buffer = BufferMaker::wrap(*address, seen->bytes, shared_device(), none, read_only, Owner::shared);
  auto guard = std::make_unique<SlotGuard>(Exported{});
  Storage made(buffer, layout.dtype, layout.shape, layout.strides, layout.offset);
  const Result<SlotBytes> imported = segment->import(content.name);
  if (!imported) return imported.failure();
  guard->hold({segment, imported->slot});
  BufferMaker::guard(buffer) = std::move(guard);
  return layout.read_only ? made.read_only() : made;
}

}  // namespace berth::sharing
