// SPDX-License-Identifier: Apache-2.0
#include "memory/stream_uses.h"

#include <algorithm>
#include <iterator>
#include <new>
#include <utility>

namespace berth::internal::memory {

std::uint32_t StreamUses::look_up(std::uint64_t id) const noexcept {
  const auto found = by_id_.find(id);
  if (found == by_id_.end()) return 0;
  last_id_ = id;
  last_number_ = found->second;
  return found->second;
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
  last_id_ = 0;
  last_number_ = 0;
  free_.push_back(number);
  return std::exchange(uses_[number], Use{});
}

StreamUses::Question StreamUses::question(std::uint32_t number, std::uint64_t point) const noexcept {
  const Use& use = uses_[number];
  const auto mark = std::ranges::find_if(use.marks, [&](const Event& event) { return event.point() >= point; });
  const Event oldest = mark == use.marks.end() ? Event() : *mark;
  return {.stream = use.stream, .event = oldest, .done = oldest.point() != 0 && oldest.point() <= use.done};
}

void StreamUses::record(Question& question) noexcept {
  try {
    if (!question.stream->is_capturing()) question.event = question.stream->record();  // else it would be a node of a graph
  } catch (...) {  // a stream that cannot be queried proves nothing; a third party's may throw anything
  }
}

void StreamUses::ask(Question& question, bool wait) noexcept {
  if (question.done) return;
  if (question.event.point() == 0) record(question);
  if (question.event.point() == 0) return;
  try {
    // Queries the state itself, not the event: what an allocator observes must not count as a wait of the
    // program.
    EventState* const state = question.event.state().get();
    question.done = state == nullptr || state->query();
    if (question.done || !wait || is_in_stream_work()) return;
    question.done = true;  // also when the work has thrown: it is over
    state->wait();
  } catch (...) {  // as above
  }
}

// In the order of points: two threads may record at once.
void StreamUses::keep_mark(Use& use, Event& event) noexcept {
  auto after = use.marks.end();
  while (after != use.marks.begin() && std::prev(after)->point() > event.point()) --after;
  try {
    use.marks.insert(after, std::move(event));
  } catch (const std::bad_alloc&) {  // a later mark will do
  }
}

bool StreamUses::enter(std::uint32_t number, Question& question) noexcept {
  Use& use = uses_[number];
  const std::uint64_t point = question.event.point();
  if (use.stream != question.stream || point == 0) return false;
  const bool news = question.done && point > use.done;
  if (news) use.done = point;
  const auto known = std::ranges::find(use.marks, point, &Event::point);
  if (!question.done && known == use.marks.end()) keep_mark(use, question.event);
  if (question.done && known != use.marks.end()) {
    question.event = std::move(*known);
    use.marks.erase(known);
  }
  return news;
}

bool StreamUses::look(std::uint32_t number) noexcept {
  Use& use = uses_[number];
  const std::uint64_t done = use.stream == nullptr ? 0 : use.stream->done_point();
  if (done <= use.done) return false;
  use.done = done;
  return true;
}

bool StreamUses::any_pending() const noexcept {
  return std::ranges::any_of(uses_, [](const Use& use) { return use.is_pending(); });
}

std::uint32_t StreamUses::oldest_pending() const noexcept {
  std::uint32_t oldest = 0;
  const auto next_mark = [&](std::uint32_t i) { return uses_[i].marks.empty() ? UINT64_MAX : uses_[i].marks.front().point(); };
  for (std::uint32_t i = 1; i < count(); ++i) {
    if (uses_[i].is_pending() && (oldest == 0 || next_mark(i) < next_mark(oldest))) oldest = i;
  }
  return oldest;
}

// Of each stream its marks, and one that is recorded then.
std::size_t StreamUses::most_waits() const noexcept {
  std::size_t most = 0;
  for (const Use& use : uses_) most += use.is_pending() ? use.marks.size() + 1 : 0;
  return most;
}

bool StreamUses::enqueue_behind_pending(std::function<void()> work) noexcept {
  StreamState* last = nullptr;
  try {
    for (const Use& use : uses_) {
      if (!use.is_pending()) continue;
      if (last != nullptr)
        last->wait(use.stream->record());
      else
        last = use.stream.get();
    }
    if (last != nullptr) last->enqueue(std::move(work));
    return last != nullptr;
  } catch (...) {  // a third party's stream may throw anything
    return false;
  }
}

}  // namespace berth::internal::memory
