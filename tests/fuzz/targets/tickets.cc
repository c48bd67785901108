// SPDX-License-Identifier: Apache-2.0
#include "fuzz/tickets.h"
#include "berth/base/error.h"
#include "berth/share/share.h"
#include "berth/share/ticket.h"
#include "fuzz/target.h"
#include "share/ticket_bytes.h"

// Tickets. There is one way to write one: what is accepted is written again as the same bytes. What is imported is inside
// what was shared, and can be read to its last element.
namespace berth::testing::fuzz {
namespace {

using namespace internal::share;

constexpr std::size_t kShared = 480;  // bytes

// A ticket whose changes are in the input: the ticket of a live storage, where the input has zeros.
std::string over_a_live_ticket(std::string_view changes, const Ticket& live) {
  std::string ticket(text_of(live.bytes()));
  ticket.resize(std::min(std::max(ticket.size(), changes.size()), ticket.size() + 64));
  for (std::size_t i = 0; i < std::min(changes.size(), ticket.size()); ++i) ticket[i] = static_cast<char>(ticket[i] ^ changes[i]);
  return mend_ticket(ticket);
}

void import(std::string_view changes) {
  static const Storage x = zeros({4, 5, 6}, DType::f32, "shared");
  const Ticket live = export_ticket(x.transpose(0, 1));
  struct Refusing {
    const Ticket& ticket;
    ~Refusing() { refuse_ticket(ticket); }
  } refusing{live};
  const std::string bytes = over_a_live_ticket(changes, live);
  const Storage y = import_ticket(Ticket::from_bytes(std::as_bytes(std::span(bytes))));
  require(y.buffer().size_bytes() <= kShared, "an import takes no more memory than was shared");
  read_all(y);
}

void run(std::string_view bytes) {
  Draw draw(bytes);
  if (draw.below(2) == 0) return import(draw.rest());
  const std::string ticket = mend_ticket(std::string(draw.rest()));
  const std::span<const std::byte> all = std::as_bytes(std::span(ticket));
  (void)Ticket::from_bytes(all);
  const auto content = read_ticket(all);
  require(content.ok(), "what from_bytes accepts is a ticket");
  require(text_of(ticket_bytes(*content)) == ticket, "a ticket is written in one way");
}

const Registered tickets({.name = "tickets", .run = run});

}  // namespace
}  // namespace berth::testing::fuzz
