// SPDX-License-Identifier: Apache-2.0
#include "fuzz/hostile_segment.h"
#include "share/segment.h"

// Segments of other processes: whatever their headers and tables say, what is imported lies in the file and can be
// written to, and nothing stays open.
namespace berth::testing::fuzz {
namespace {

using namespace internal;
using namespace internal::share;

TicketName name_from(Draw& draw) { return {draw.below(20), draw.below(4), draw.below(20), draw.below(4)}; }

void import(Segment& segment, const TicketName& name) {
  const Result<EntryBytes> found = segment.import(name);
  if (!found) return;
  require(found->bytes > 0 && found->offset <= HostileSegment::kBytes && found->bytes <= HostileSegment::kBytes - found->offset,
          "what is imported lies in the file");
  const Result<void*> data = segment.address_of(found->offset, found->bytes, os::Access::write);
  if (data) static_cast<volatile char*>(*data)[found->bytes - 1] = 1;
  const Result<TicketName> ticket = segment.make_ticket(found->entry);
  if (ticket) segment.revoke(*ticket);
  segment.drop_handle(found->entry);
  require(!segment.has_handles(), "a handle that is dropped is gone");
}

void act(Segment& segment, Draw& draw) {
  switch (draw.below(5)) {
    case 0: import(segment, name_from(draw)); break;
    case 1: segment.revoke(name_from(draw)); break;
    case 2: segment.reap(); break;
    case 3: (void)segment.look(name_from(draw)); break;
    default: segment.tidy(); break;
  }
}

void run(std::string_view bytes) {
  static const HostileSegment file;
  const int next = next_descriptor();
  Draw draw(bytes);
  file.fill(draw);
  {
    const Result<std::shared_ptr<Segment>> segment = Segment::attach(file.number());
    for (int left = 8; segment.ok() && left > 0 && !draw.empty(); --left) act(**segment, draw);
  }
  require(next_descriptor() == next, "a segment that is let go leaves no descriptor open");
}

const Registered segment_headers({.name = "segment_headers", .run = run});

}  // namespace
}  // namespace berth::testing::fuzz
