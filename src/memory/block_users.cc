// SPDX-License-Identifier: Apache-2.0
#include "memory/block_users.h"

#include <algorithm>
#include <new>

namespace berth::internal::memory {

bool BlockUsers::add(StreamRef stream) noexcept {
  const auto same = [&](const User& user) { return user.stream.get() == stream.state(); };
  if (!stream || std::ranges::any_of(users_, same)) return true;
  try {
    std::shared_ptr<StreamState> kept = stream->weak_from_this().lock();
    if (kept != nullptr) users_.push_back({.stream = std::move(kept)});
    return true;
  } catch (const std::bad_alloc&) {
    return false;
  }
}

void BlockUsers::add_all(const BlockUsers& others) {
  std::vector<User> all = others.users_;
  for (const User& user : users_) {
    if (std::ranges::none_of(others.users_, [&](const User& other) { return other.stream == user.stream; })) all.push_back(user);
  }
  for (User& user : all) {
    user.event = {};
    user.point = next_point();
  }
  users_.swap(all);
}

bool BlockUsers::is_done(User& user, bool wait) noexcept {
  if (user.origin.is_inherited()) return true;
  try {
    if (user.event.point() == 0) user.event = user.stream->record();
    EventState* const state = user.event.state().get();
    if (state == nullptr || state->query()) return true;
    if (!wait || is_in_stream_work()) return false;
  } catch (...) {  // a stream that cannot be queried proves nothing; a third party's may throw anything
    return false;
  }
  try {
    user.event.state()->wait();
  } catch (...) {  // an exception of the work is for those who wait for it; the work is over
  }
  return true;
}

bool BlockUsers::are_done(bool wait, StreamRef on) noexcept {
  const auto is_before = [&](const User& user) { return on && user.point != 0 && on->comes_after(user.stream->id(), user.point); };
  std::erase_if(users_, [&](User& user) { return is_done(user, wait && !is_before(user)); });
  return std::ranges::all_of(users_, is_before);
}

bool BlockUsers::enqueue_behind(std::function<void()> work) noexcept {
  try {
    StreamState& last = *users_.front().stream;
    for (const User& user : users_) {
      if (user.stream.get() != &last) last.wait(user.event.point() == 0 ? user.stream->record() : user.event);
    }
    last.enqueue(std::move(work));
    return true;
  } catch (...) {  // a third party's stream may throw anything
    return false;
  }
}

}  // namespace berth::internal::memory
