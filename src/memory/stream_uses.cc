// SPDX-License-Identifier: Apache-2.0
#include "memory/stream_uses.h"

#include <algorithm>
#include <new>
#include <utility>

namespace berth {

std::uint32_t StreamUses::find(StreamRef stream) const noexcept {
  if (!stream) return 0;
  const auto found = by_id_.find(stream.id());
  return found == by_id_.end() ? 0 : found->second;
}

std::uint32_t StreamUses::add(StreamRef stream) noexcept {
  try {
    uses_.reserve(uses_.size() + 1);
    free_.reserve(uses_.size() + 1);
    const std::uint32_t number = free_.empty() ? count() : free_.back();
    by_id_.emplace(stream.id(), number);
    if (free_.empty())
      uses_.emplace_back();
    else
      free_.pop_back();
    uses_[number].id = stream.id();
    uses_[number].stream = stream->weak_from_this().lock();
    return number;
  } catch (const std::bad_alloc&) {
    return 0;
  }
}

StreamUses::Use StreamUses::remove(std::uint32_t number) noexcept {
  by_id_.erase(uses_[number].id);
  free_.push_back(number);
  Use gone = std::exchange(uses_[number], Use{});
  uses_[number].ticket = uses_[number].done = gone.ticket;  // tickets go on: an old one must not look young to the next stream
  return gone;
}

StreamUses::Question StreamUses::question(std::uint32_t number) const noexcept {
  const Use& use = uses_[number];
  return {.stream = use.stream, .event = use.event, .ticket = use.event_ticket, .latest = use.ticket};
}

void StreamUses::ask(Question& question, bool wait) noexcept {
  try {
    if (question.ticket == 0 || wait) {
      question.event = question.stream->record();
      question.ticket = question.latest;
    }
    question.done = question.event.query();
    if (!question.done && wait) {
      question.done = true;  // also when the work has thrown: it is over
      question.event.wait();
    }
  } catch (...) {  // a stream that cannot be asked proves nothing; a third party's may throw anything
  }
}

bool StreamUses::enter(std::uint32_t number, Question& question) noexcept {
  Use& use = uses_[number];
  if (use.stream != question.stream) return false;
  const bool news = question.done && question.ticket > use.done;
  if (news) use.done = question.ticket;
  use.event_ticket = question.done ? 0 : question.ticket;
  std::swap(use.event, question.event);  // one that is done is of no use, and of no harm
  return news;
}

bool StreamUses::any_pending() const noexcept {
  return std::ranges::any_of(uses_, [](const Use& use) { return use.is_pending(); });
}

}  // namespace berth
