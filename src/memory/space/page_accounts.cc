// SPDX-License-Identifier: Apache-2.0
#include "memory/space/page_accounts.h"

namespace berth::internal::memory {

const Budget* PageAccounts::claim(std::size_t bytes, PageOwner from) noexcept {
  const Budget* refused = nullptr;
  if (from == PageOwner::device)
    refused = budget_.claim(bytes);
  else if (!budget_.claim_here(bytes))
    refused = &budget_;
  if (refused == nullptr) promised_ += bytes;
  return refused;
}

void PageAccounts::gain(std::size_t bytes, PageOwner from) noexcept {
  promised_ -= bytes;
  figures_.committed += bytes;
  if (figures_.committed > device_room_) device_room_ = SIZE_MAX;
  decay_.took(bytes);
  ++(from == PageOwner::lender ? figures_.moves : figures_.commits);
}

void PageAccounts::give_up_claim(std::size_t bytes, PageOwner from) noexcept {
  promised_ -= bytes;
  give_up(bytes, from);
}

void PageAccounts::move(std::size_t from_bytes, std::size_t to_bytes) noexcept {
  figures_.committed -= from_bytes - to_bytes;
  budget_.give_up(from_bytes - to_bytes);
  begin_move();
}

void PageAccounts::begin_move() noexcept {
  ++figures_.moves;
  ++figures_.decommits;
  ++calls_;
}

void PageAccounts::trim(std::size_t bytes, PageOwner to) noexcept {
  figures_.committed -= bytes;
  give_up(bytes, to);
  ++figures_.decommits;
  decay_.gave(bytes);
}

// What has moved stays claimed here, on behalf of its new holder.
void PageAccounts::lend(std::size_t bytes, bool lost) noexcept {
  figures_.committed -= bytes;
  if (lost) budget_.give_up(bytes);
  begin_move();
}

void PageAccounts::adopt(std::size_t bytes) noexcept {
  figures_.committed += bytes;
  note_peak();
  ++figures_.moves;
}

std::string PageAccounts::audit(std::size_t live, std::size_t held, std::size_t moving) const {
  if (live != figures_.live) return "space: live bytes are not the sum of the live extents";
  if (figures_.committed < held || figures_.committed > held + moving)
    return "space: committed bytes are not the sum of the extents with memory";
  if (figures_.committed > figures_.peak_committed || figures_.live > figures_.peak_live) return "space: a peak is too low";
  if (figures_.committed + promised_ > budget_.used()) return "space: more is committed than was claimed";
  return {};
}

}  // namespace berth::internal::memory
