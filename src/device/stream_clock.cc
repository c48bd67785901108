// SPDX-License-Identifier: Apache-2.0
#include "device/stream_clock.h"

#include <algorithm>

namespace berth::internal::device {

std::uint64_t StreamClock::point_of(std::uint64_t stream_id) const noexcept {
  const auto found = std::ranges::find_if(entries_, [&](const Entry& entry) { return entry.progress->stream_id() == stream_id; });
  return found == entries_.end() ? 0 : found->point;
}

void StreamClock::add(const Entry& entry) {
  const auto same = [&](const Entry& other) { return other.progress == entry.progress; };
  if (const auto found = std::ranges::find_if(entries_, same); found != entries_.end())
    found->point = std::max(found->point, entry.point);
  else if (entries_.size() < kMost)
    entries_.push_back(entry);
}

std::shared_ptr<const StreamClock> StreamClock::merged(const StreamClock* known, Entry event, const StreamClock* with, std::uint64_t own) {
  const auto is_news = [&](const Entry& entry) {
    return entry.progress->stream_id() != own && (known == nullptr || known->point_of(entry.progress->stream_id()) < entry.point);
  };
  if (!is_news(event) && (with == nullptr || std::ranges::none_of(with->entries_, is_news))) return nullptr;
  auto made = std::make_shared<StreamClock>();
  if (event.progress->stream_id() != own) made->add(event);
  for (const StreamClock* const from : {with, known}) {
    if (from == nullptr) continue;
    for (const Entry& entry : from->entries_) {
      if (entry.progress->stream_id() != own) made->add(entry);
    }
  }
  return made;
}

}  // namespace berth::internal::device
