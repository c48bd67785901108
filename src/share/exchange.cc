// SPDX-License-Identifier: Apache-2.0
#include "share/exchange.h"

#include <utility>

#include "berth/memory/default_allocator.h"
#include "berth/storage/create.h"
#include "os/lock/mutex.h"
#include "share/device_memory.h"
#include "share/errors.h"

namespace berth::internal::share {

namespace {

struct Held {
  std::shared_ptr<Segment> segment = {};
  std::uint32_t entry = 0;
};

// Holds an entry of a segment for a buffer: of its own block, or of bytes of another process.
class EntryGuard : public storage::BufferGuard {
 public:
  explicit EntryGuard(std::shared_ptr<const void> companion = {}) : companion_(std::move(companion)) {}
  ~EntryGuard() override {
    if (held_.segment != nullptr) held_.segment->drop_handle(held_.entry);
  }

  void release_block(const Block& block, Allocator* allocator, std::shared_ptr<Allocator> kept_alive) noexcept override {
    const Held held = std::exchange(held_, {});
    held.segment->drop_handle(held.entry, HeldBlock{block, allocator, std::move(kept_alive), std::move(companion_)});
  }

  const Held& held() const noexcept { return held_; }
  void hold(Held held) noexcept { held_ = std::move(held); }

 private:
  Held held_;
  std::shared_ptr<const void> companion_;  // released when there is no claim on the entry
};

// Holds the entry of a stub for a buffer over another process's device memory. The memory is unmapped before
// the claim is dropped.
class DeviceGuard final : public EntryGuard {
 public:
  explicit DeviceGuard(std::shared_ptr<device::cuda::ImportedPieces> pieces) : pieces_(std::move(pieces)) {}

  void release_block(const Block& block, Allocator* allocator, std::shared_ptr<Allocator> kept_alive) noexcept override {
    pieces_.reset();
    EntryGuard::release_block(block, allocator, std::move(kept_alive));
  }

 private:
  std::shared_ptr<device::cuda::ImportedPieces> pieces_;
};

// Guards are set, once, and read under this lock. Never destroyed.
os::Mutex& guards() {
  static auto* const made = new os::Mutex;
  return *made;
}
[[maybe_unused]] const os::Mutex& g_exchange_guards_at_load = guards();

const Held* held_by(const Buffer& buffer) noexcept {
  const os::Lock lock(guards());
  const auto* const guard = dynamic_cast<const EntryGuard*>(storage::BufferMaker::guard(buffer).get());
  return guard == nullptr ? nullptr : &guard->held();
}

Result<device::SharedAttachment> make_segment(const device::SharedPosition& position) {
  Result<std::shared_ptr<Segment>> made = Segment::make_own(position);
  if (!made) return made.failure();
  return device::SharedAttachment(std::move(*made));
}

}  // namespace

Failure not_shared(const Buffer& buffer) noexcept {
  if (buffer.device() == shared_device()) return {ErrorCode::fork_unsafe, 0, "its memory belongs to the process that forked"};
  return {ErrorCode::wrong_device, 0, "its bytes do not lie in shared memory of this process"};
}

Device shared_device() {
  static const Device device("shared");
  return device;
}

namespace {

// Gives the buffer an entry. With `companion` it stands for something else, which lives as long as there is a
// claim on it.
Result<Held> publish(const Buffer& buffer, std::shared_ptr<const void> companion) {
  const Block block = buffer.block();
  const std::optional<device::SharedPosition> position = device::find_shared_position(block.data, block.bytes);
  if (!position) return not_shared(buffer);
  const Result<device::SharedAttachment> attached = device::shared_attachment(position->range, make_segment);
  if (!attached) return attached.failure();
  auto fresh = std::make_unique<EntryGuard>(std::move(companion));
  const auto segment = std::static_pointer_cast<Segment>(*attached);
  const Result<std::uint32_t> entry = segment->publish(position->offset, block.bytes);
  if (!entry) return entry.failure();
  fresh->hold({segment, *entry});
  std::unique_ptr<storage::BufferGuard> guard = std::move(fresh);
  {
    const os::Lock lock(guards());
    if (storage::BufferMaker::guard(buffer) == nullptr) storage::BufferMaker::guard(buffer).swap(guard);
  }
  // If another thread was first, its entry counts, and this one is released with the unused guard.
  return *held_by(buffer);
}

// Each export of device memory has a stub of its own, which keeps the buffer alive.
Result<Exported> export_from_device(const Storage& storage) {
  const Buffer& buffer = storage.buffer();
  const Block block = buffer.block();
  Result<device::cuda::PieceRun> run = device::cuda::run_under(storage.device(), block.data, block.bytes);
  if (!run) return run.failure();
  const std::vector<std::uint64_t> words = stub_words(*run);
  Storage stub = from_data(words, {static_cast<std::int64_t>(words.size())}, default_allocator(shared_device()));
  auto memory = std::make_shared<const DeviceMemory>(DeviceMemory{buffer, std::move(*run)});
  Result<Held> held = publish(stub.buffer(), memory);
  if (!held) return held.failure();
  return Exported{std::move(held->segment), held->entry, TicketContent::Kind::device_memory, std::move(stub), std::move(memory)};
}

}  // namespace

Result<Exported> exported(const Storage& storage) {
  const Buffer& buffer = storage.buffer();
  const bool on_host = storage.device() == shared_device();
  if (const Held* const known = held_by(buffer))
    return Exported{known->segment, known->entry, on_host ? TicketContent::Kind::host_segment : TicketContent::Kind::device_memory};
  if (storage.is_mapped()) return Failure{ErrorCode::unsupported, 0, "a mapped file travels by its path: map it on the other side too"};
  if (storage::BufferMaker::guard(buffer) != nullptr)
    return Failure{ErrorCode::unsupported, 0, "a storage with a name travels by its name: see open_shared"};
  if (storage.device().kind_name() == "cuda") return export_from_device(storage);
  Result<Held> held = publish(buffer, nullptr);
  if (!held) return held.failure();
  return Exported{std::move(held->segment), held->entry};
}

StorageLayout layout_of(const Storage& storage) {
  return {.dtype = storage.dtype(),
          .read_only = storage.is_read_only(),
          .offset = storage.buffer().size_bytes() == 0 ? 0 : storage.offset(),
          .shape = storage.shape(),
          .strides = storage.strides()};
}

// REQUIRES: no elements, as read_ticket has checked.
Storage storage_without_bytes(const StorageLayout& layout) {
  const Storage made = empty(layout.shape, layout.dtype, shared_device());
  return layout.read_only ? made.read_only() : made;
}

namespace {

// The bytes of a ticket in this process, and the guard that is to hold them.
struct Bytes {
  void* data = nullptr;
  std::uint64_t bytes = 0;
  Device device = {};
  std::unique_ptr<EntryGuard> guard = {};
};

Result<Bytes> bytes_in_segment(const TicketContent& content, Segment& segment, bool read_only) {
  const Result<EntryBytes> seen = segment.look(content.name);
  if (!seen) return seen.failure();
  const Result<void*> address = segment.address_of(seen->offset, seen->bytes, read_only ? os::Access::read : os::Access::write);
  if (!address) return address.failure();
  return Bytes{*address, seen->bytes, shared_device(), std::make_unique<EntryGuard>()};
}

Result<Bytes> bytes_on_device(const TicketContent& content, Segment& segment, std::span<os::Descriptor> files) {
  // This process's own memory is mapped a second time: it is another storage.
  std::vector<os::Descriptor> own;
  const std::shared_ptr<const DeviceMemory> memory = segment.is_own() ? own_memory(segment, content.name) : nullptr;
  if (segment.is_own()) {
    Result<std::vector<os::Descriptor>> made = files_for(segment, content.name);
    if (!made) return made.failure();
    own = std::move(*made);
    files = own;
  }
  const Result<device::cuda::PieceRun> run =
      memory != nullptr ? Result<device::cuda::PieceRun>(memory->run) : look_at_stub(segment, content.name);
  if (!run) return run.failure();
  const Result<Device> device = device::cuda::device_of(*run);
  if (!device) return device.failure();
  Result<std::shared_ptr<device::cuda::ImportedPieces>> pieces = pieces_here(segment, *run, files);
  if (!pieces) return pieces.failure();
  std::byte* const data = (*pieces)->data() + run->offset;
  return Bytes{data, run->bytes, *device, std::make_unique<DeviceGuard>(std::move(*pieces))};
}

}  // namespace

Result<Storage> import_content(const TicketContent& content, const std::shared_ptr<Segment>& segment, bool read_only,
                               std::span<os::Descriptor> files, const Site& site) {
  const StorageLayout& layout = content.layout;
  Result<Bytes> found = content.kind == TicketContent::Kind::device_memory ? bytes_on_device(content, *segment, files)
                                                                           : bytes_in_segment(content, *segment, read_only);
  if (!found) return found.failure();
  if (!lies_inside(layout, found->bytes)) return Failure{ErrorCode::format_error, 0, "the ticket's elements lie outside its bytes"};
  // Everything that can throw bad_alloc comes first: after that the ticket is consumed, or nothing has changed.
  Deleter none;
  Buffer buffer = storage::BufferMaker::wrap(found->data, found->bytes, found->device, none, read_only, Owner::shared, site);
  Storage made(buffer, layout.dtype, layout.shape, layout.strides, layout.offset);
  Result<EntryBytes> imported = segment->import(content.name);
  const auto try_other = [&](const TicketName& name) {
    if (segment->is_held(name)) imported = segment->import(name);
    return imported.ok();
  };
  if (!imported && !content.any_name(try_other)) return imported.failure();
  found->guard->hold({segment, imported->entry});
  storage::BufferMaker::guard(buffer) = std::move(found->guard);
  return layout.read_only ? made.read_only() : made;
}

}  // namespace berth::internal::share
