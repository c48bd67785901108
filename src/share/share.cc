// SPDX-License-Identifier: Apache-2.0
#include "berth/share/share.h"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <memory>
#include <string_view>
#include <utility>

#include "base/text.h"
#include "berth/base/error.h"
#include "berth/device/backend.h"
#include "berth/memory/default_allocator.h"
#include "berth/share/ticket.h"
#include "device/cuda/host_register.h"
#include "device/shared/shared_range.h"
#include "os/memory/memory.h"
#include "os/process/fork.h"
#include "share/errors.h"
#include "share/exchange.h"
#include "storage/make.h"

namespace berth {

using namespace internal;
using namespace internal::device;
using namespace internal::share;
using namespace internal::storage;

using share::throw_share_failure;

// Makes tickets: has access to Ticket's private members.
struct internal::share::TicketMaker {
  static Ticket make(std::vector<std::byte> bytes) {
    Ticket ticket;
    ticket.bytes_ = std::move(bytes);
    return ticket;
  }
};

namespace {

Buffer make_shared_buffer(std::size_t bytes, const AllocationOptions& options, const Site& site) {
  Allocator& allocator = *default_allocator(share::shared_device());
  return BufferMaker::make(request_of(bytes, options, allocator, site), allocator, nullptr);
}

[[noreturn]] void throw_busy(const char* why, const char* help) {
  throw AccessError(ErrorCode::busy, {"sharing a storage in place", why, help});
}

// Throws if the storage cannot be moved, before anything changes.
void require_movable(const Storage& storage, const ShareOptions& options) {
  const Buffer& buffer = storage.buffer();
  constexpr const char* kWait = "share a clone(), or wait until nobody else has the address";
  if (buffer.owner() == Owner::dlpack) throw_busy("its memory came by DLPack, and its owner has the address", kWait);
  if (BufferMaker::is_borrowed(buffer) && !options.borrowed) {
    throw_busy("its memory is borrowed, and its lender has the address",
               "share a clone(), adopt the memory with a deleter, or pass {.borrowed = true} and leave the lender the old bytes");
  }
  if (BufferMaker::is_pinned_down(buffer)) throw_busy("a DLPack export, or a copy that is under way, has its address", kWait);
  const std::string_view kind = storage.device().kind_name();
  if ((kind != "cpu" && kind != "pinned") || (buffer.allocator() == nullptr && !buffer.is_external())) {
    throw DeviceError(ErrorCode::unsupported,
                      {"sharing a storage in place", text::join("it is on ", storage.device().to_string()), "use to(\"cpu\") first"},
                      {{"device", storage.device().to_string()}});
  }
}

// Locks the pages of a buffer for the device, if there is one that wants it, until the reference goes. REQUIRES: no
// other memory is in these pages.
std::shared_ptr<const void> locked_pages(const Buffer& buffer) {
  if (!cuda::can_register_host()) return nullptr;
  void* const data = buffer.data();
  if (const Status done = cuda::register_host(data, buffer.size_bytes()); !done)
    throw_failure(done.failure(), buffer.device(), "page-locking shared memory");
  return {data, [](const void* locked) { (void)cuda::unregister_host(const_cast<void*>(locked)).ok(); }};
}

bool stays_as_it_is(const Storage& storage) {
  return storage.is_shared() || storage.is_mapped() || storage.buffer().size_bytes() == 0 || storage.device().kind_name() == "cuda";
}

// The segment of a ticket; null if this process does not know it.
std::shared_ptr<share::Segment> segment_of(const share::TicketContent& content) { return share::Segment::find(content.segment); }

share::TicketContent content_of(const Ticket& ticket, const char* asked) {
  return share::value_or_throw(share::read_ticket(ticket.bytes()), asked);
}

[[noreturn]] void throw_unknown_segment(const char* asked) {
  throw AccessError(ErrorCode::not_found, {asked, "this process has no descriptor of the segment that the ticket names",
                                           "receive it through a Channel, or pass a descriptor of the segment to import_ticket"});
}

void require_imports(std::uint32_t imports) {
  constexpr std::uint32_t kMost = ExportOptions::kMostImports;
  if (imports != 0 && imports <= kMost) return;
  throw ArgumentError(imports == 0 ? ErrorCode::invalid_argument : ErrorCode::limit_exceeded,
                      {text::join("exporting a storage for ", imports, " imports"),
                       imports == 0 ? std::string("nobody could import it") : text::join("a ticket is good for at most ", kMost),
                       imports == 0 ? "ask for 1 or more" : "export it several times, or give it a name with create_shared"},
                      {{"imports", imports}, {"limit", kMost}});
}

// Whether there was something to revoke.
bool revoke_all(const share::TicketContent& content, share::Segment& segment) {
  bool any = false;
  (void)content.any_name([&](const share::TicketName& name) {
    any = segment.revoke(name) || any;
    return false;
  });
  return any;
}

struct RevokeUnlessMade {
  const share::TicketContent& content;
  share::Segment& segment;
  bool done = false;
  ~RevokeUnlessMade() {
    if (!done) (void)revoke_all(content, segment);
  }
};

Storage import_from(const share::TicketContent& content, const std::shared_ptr<share::Segment>& segment, const ImportOptions& options,
                    const Site& site) {
  return share::value_or_throw(share::import_content(content, segment, options.read_only, {}, site), "importing a ticket");
}

}  // namespace

NewShared new_shared(std::size_t bytes, const AllocationOptions& options, Site site) {
  const Shape shape{static_cast<std::int64_t>(bytes)};
  const Storage made = StorageMaker::make(make_shared_buffer(bytes, options, site), DType::u8, shape, Strides::contiguous(shape), 0, bytes);
  return {made, shared_location(made)};
}

SharedLocation shared_location(const Storage& storage) {
  const Buffer& buffer = storage.buffer();
  if (buffer.size_bytes() == 0) return {};
  const std::optional<SharedPosition> position = find_shared_position(storage.data_ptr(), storage.size_bytes());
  if (!position) throw_share_failure(share::not_shared(buffer), "looking up a storage in shared memory");
  return {position->descriptor, position->offset, storage.size_bytes()};
}

void share(const Storage& storage, Site site) { berth::share(storage, ShareOptions(), site); }

void share(const Storage& storage, const ShareOptions& options, Site site) {
  if (stays_as_it_is(storage)) return;
  require_movable(storage, options);
  const Buffer& old = storage.buffer();
  const Block block = old.block();
  const bool locked = storage.is_pinned();
  // The block's alignment, at most what `shared` can provide. Pages that are to be locked are the block's alone.
  const std::size_t alignment = std::max(std::min(block.alignment, std::size_t{kSharedDataOffset}), locked ? os::page_bytes() : 0);
  const Buffer moved = make_shared_buffer(old.size_bytes(), {.alignment = alignment, .tag = block.tag, .padded = locked}, site);
  std::memcpy(moved.data(), old.data(), old.size_bytes());
  BufferMaker::set_used_bytes(moved, BufferMaker::used_bytes(old));
  if (locked) BufferMaker::set_page_lock(moved, locked_pages(moved));
  BufferMaker::exchange(old, moved);
}

void reap_shared() noexcept { (void)share::Segment::reap_all(); }

Ticket Ticket::from_bytes(std::span<const std::byte> bytes) {
  Ticket ticket;
  ticket.bytes_.assign(bytes.begin(), bytes.end());
  (void)content_of(ticket, "reading a ticket");
  return ticket;
}

Ticket export_ticket(const Storage& storage, const ExportOptions& options) {
  require_imports(options.imports);
  share::TicketContent content{.layout = share::layout_of(storage)};
  if (storage.buffer().size_bytes() != 0) {
    const share::Exported held = share::value_or_throw(share::exported(storage), "exporting a storage");
    content.kind = held.kind;
    content.segment = held.segment->id();
    content.further.reserve(options.imports - 1);
    content.name = share::value_or_throw(held.segment->make_ticket(held.entry), "exporting a storage");
    RevokeUnlessMade made{content, *held.segment};
    for (std::uint32_t last = content.name.ticket; content.further.size() + 1 < options.imports; last = content.further.back().ticket) {
      const share::TicketName next = share::value_or_throw(held.segment->make_next_ticket(held.entry, last), "exporting a storage");
      content.further.push_back({next.ticket, next.generation});
    }
    Ticket ticket = TicketMaker::make(share::ticket_bytes(content));
    made.done = true;
    return ticket;
  }
  return TicketMaker::make(share::ticket_bytes(content));
}

Storage import_ticket(const Ticket& ticket, const ImportOptions& options, Site site) {
  const share::TicketContent content = content_of(ticket, "importing a ticket");
  if (content.kind == share::TicketContent::Kind::no_bytes) return share::storage_without_bytes(content.layout);
  const std::shared_ptr<share::Segment> segment = segment_of(content);
  if (segment == nullptr) throw_unknown_segment("importing a ticket");
  return import_from(content, segment, options, site);
}

Storage import_ticket(const Ticket& ticket, int descriptor, const ImportOptions& options, Site site) {
  const share::TicketContent content = content_of(ticket, "importing a ticket");
  if (content.kind == share::TicketContent::Kind::no_bytes) return share::storage_without_bytes(content.layout);
  std::shared_ptr<share::Segment> segment = segment_of(content);
  if (segment == nullptr) segment = share::value_or_throw(share::Segment::attach(descriptor), "importing a ticket");
  if (segment->id() != content.segment)
    throw_share_failure({ErrorCode::untrusted, 0, "the descriptor is that of another segment"}, "importing a ticket");
  return import_from(content, segment, options, site);
}

bool refuse_ticket(const Ticket& ticket) {
  const share::TicketContent content = content_of(ticket, "refusing a ticket");
  if (content.kind == share::TicketContent::Kind::no_bytes) return true;
  const std::shared_ptr<share::Segment> segment = segment_of(content);
  return segment != nullptr && revoke_all(content, *segment);
}

std::size_t imports_left(const Ticket& ticket) {
  const share::TicketContent content = content_of(ticket, "counting the imports that a ticket is good for");
  if (content.kind == share::TicketContent::Kind::no_bytes) return SIZE_MAX;
  const std::shared_ptr<share::Segment> segment = segment_of(content);
  if (segment == nullptr) throw_unknown_segment("counting the imports that a ticket is good for");
  std::size_t left = 0;
  (void)content.any_name([&](const share::TicketName& name) {
    left += segment->is_held(name) ? 1 : 0;
    return false;
  });
  return left;
}

}  // namespace berth
