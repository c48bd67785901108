// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstring>
#include <span>
#include <string>
#include <string_view>

#include "berth/storage/storage.h"

// The bytes of tickets, as mutations leave them.
namespace berth::testing::fuzz {

inline std::string_view text_of(std::span<const std::byte> bytes) { return {reinterpret_cast<const char*>(bytes.data()), bytes.size()}; }

// Every element, unless a stride of 0 makes many of few bytes: a copy of them is as large as they are.
inline void read_all(const Storage& x) {
  constexpr std::size_t kMostElements = 10'000;
  if (x.num_elements() <= kMostElements) (void)x.clone();
}

// Corrects the checksum, so that the fields after it are parsed.
inline std::string mend_ticket(std::string ticket) {
  if (ticket.size() < 8) return ticket;
  std::uint32_t sum = 2166136261U;
  for (std::size_t i = 0; i < ticket.size(); ++i) {
    if (i < 4 || i >= 8) sum = (sum ^ static_cast<unsigned char>(ticket[i])) * 16777619U;
  }
  std::memcpy(ticket.data() + 4, &sum, sizeof sum);
  return ticket;
}

}  // namespace berth::testing::fuzz
