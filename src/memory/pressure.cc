// SPDX-License-Identifier: Apache-2.0
#include "berth/memory/pressure.h"

#include <exception>
#include <utility>

#include "base/text.h"
#include "berth/memory/allocator.h"
#include "os/lock/mutex.h"

namespace berth {

using namespace internal;

namespace {

// Never destroyed: static storages may be refused memory while the process ends.
os::Mutex& callbacks_mutex() {
  static auto* const made = new os::Mutex;
  return *made;
}

// Created when the library is loaded, so that the first use can neither fail for lack of heap nor be
// interrupted by a fork.
[[maybe_unused]] const os::Mutex& g_callbacks_mutex_at_load = callbacks_mutex();

constinit thread_local bool t_calling = false;

class Calling {
 public:
  Calling() noexcept { t_calling = true; }
  ~Calling() { t_calling = false; }
  Calling(const Calling&) = delete;
  Calling& operator=(const Calling&) = delete;
};

std::string what_of(const std::exception_ptr& thrown) {
  try {
    std::rethrow_exception(thrown);
  } catch (const std::exception& error) {
    return text::printable(error.what());
  } catch (...) {  // it may throw anything
    return "an exception that is not a std::exception";
  }
}

}  // namespace

void Allocator::on_pressure(PressureCallback callback) {
  std::shared_ptr<const PressureCallback> changed;
  if (callback) changed = std::make_shared<const PressureCallback>(std::move(callback));
  const os::Lock lock(callbacks_mutex());
  pressure_.swap(changed);
}  // the old callback is destroyed after the unlock: its destructor may run arbitrary code

// True: retry the request. Throws Error(callback_failed).
bool Allocator::call_for_memory(const Request& request, unsigned call) const {
  if (t_calling) return false;
  std::shared_ptr<const PressureCallback> callback;
  {
    const os::Lock lock(callbacks_mutex());
    callback = pressure_;
  }
  if (callback == nullptr) return false;
  const Calling calling;
  try {
    return (*callback)({.device = device(),
                        .allocator_id = id(),
                        .requested_bytes = request.bytes,
                        .alignment = request.alignment,
                        .tag = request.tag,
                        .call = call});
  } catch (...) {  // user code may throw anything; it is nested in the Error
    std::throw_with_nested(Error(ErrorCode::callback_failed,
                                 {text::join("allocating ", text::bytes(request.bytes), " with ", name(), " on ", device().to_string()),
                                  text::join("memory was short, and the pressure callback threw: ", what_of(std::current_exception())),
                                  "let the callback return false when it can free nothing"},
                                 {{"requested", request.bytes}}));
  }
}

}  // namespace berth
