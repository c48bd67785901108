// SPDX-License-Identifier: Apache-2.0
#include <string>
#include <utility>

#include "base/text.h"
#include "berth/base/error.h"
#include "berth/share/channel.h"
#include "os/file/named_files.h"
#include "os/file/own_descriptor.h"
#include "os/file/shared_file.h"
#include "os/process/fork.h"
#include "os/process/named_socket.h"
#include "os/process/socket.h"
#include "os/process/wait_ready.h"
#include "os/system.h"
#include "share/errors.h"
#include "share/names.h"

// Listeners: sockets whose names are files in the folder of names. A name appears when its socket listens, and whether
// somebody still has the socket is for the kernel to say, so that a name is never wrongly taken for dead. Whoever makes
// or removes a name has the *gate* of the folder meanwhile, a lock that the kernel releases with its holder:
//
//     listen:  gate → is the name free, or dead: remove it → socket at `.listen` → `.listen` renamed → gate off
//     close:   gate → is the name still of this socket: remove it → gate off
//     reap:    gate → is it dead: remove it → gate off
namespace berth {

using namespace internal;
using namespace internal::share;

namespace {

constexpr const char* kUnnamed = ".listen";
constexpr std::string_view kPrefix = ".listen-";

constexpr Advice kOfListeners[] = {
    {ErrorCode::not_found, "start the process whose Listener has that name first"},
    {ErrorCode::already_exists, "choose another name, or reach the process that listens there with Channel::connect"},
};

std::string file_name(std::string_view name) { return text::join(kPrefix, name); }

// The folder, with its gate locked. In a forked child it is closed, so that the gate does not stay locked with it.
struct GatedFolder {
  os::OwnDescriptor folder;

  GatedFolder() = default;
  GatedFolder(const GatedFolder&) = delete;
  GatedFolder& operator=(const GatedFolder&) = delete;
  ~GatedFolder() {
    if (folder) os::unlock_folder(folder.number());
  }

  // `not_found` when there is no folder, or it was just removed.
  Status enter(const NamesFolder& where, bool make) {
    Result<os::Descriptor> opened = where.open(make);
    if (!opened) return opened.failure();
    folder.set(std::move(*opened));
    const std::uint64_t until = os::deadline_after(kGatePatience);
    for (;;) {
      const Result<bool> locked = os::try_lock_folder(folder.number());
      if (!locked) return locked.failure();
      if (*locked) break;
      if (os::steady_time_ns() >= until)
        return Failure{ErrorCode::timeout, 0, "another process is making or removing the name of a listener, and does not finish"};
      os::sleep_us(200);
    }
    const Result<os::FileFacts> facts = os::facts_of(folder.number());
    if (!facts) return facts.failure();
    return facts->links > 0 ? Status() : Failure{ErrorCode::not_found, 0, "the folder was just removed"};
  }
};

enum class Seen { nothing, alive, dead, foreign };

Result<Seen> look(int folder, const std::string& file) {
  const Result<os::Descriptor> opened = os::open_socket_name(folder, file.c_str());
  if (!opened && opened.failure().code == ErrorCode::not_found) return Seen::nothing;
  if (!opened) return opened.failure();
  const Result<os::FileFacts> facts = os::facts_of(opened->number());
  if (!facts) return facts.failure();
  if (!facts->is_socket || facts->user != os::user_id()) return Seen::foreign;
  return os::is_listened_to(opened->number()) ? Seen::alive : Seen::dead;
}

// REQUIRES: the gate is locked.
Status make_free(int folder, const std::string& file) {
  const Result<Seen> seen = look(folder, file);
  if (!seen) return seen.failure();
  switch (*seen) {
    case Seen::nothing: return {};
    case Seen::alive: return Failure{ErrorCode::already_exists, 0, "another process listens under that name"};
    case Seen::foreign: return Failure{ErrorCode::already_exists, 0, "in its place is something that is no socket of this user"};
    case Seen::dead: break;
  }
  return os::remove_name(folder, file.c_str());
}

// REQUIRES: the gate is locked.
Result<os::Descriptor> listen_under(int folder, const std::string& file) {
  if (const Status free = make_free(folder, file); !free) return free.failure();
  if (const Status free = make_free(folder, kUnnamed); !free) return free.failure();  // of one that died right here
  Result<os::Descriptor> socket = os::listen_at(folder, kUnnamed);
  if (!socket) return socket;
  if (const Status named = os::rename_name(folder, kUnnamed, file.c_str()); !named) {
    (void)os::remove_name(folder, kUnnamed).ok();
    return named.failure();
  }
  return socket;
}

// Removes the name if nobody listens there. Whether it did.
Result<bool> remove_dead(const NamesFolder& where, const std::string& file) {
  GatedFolder gate;
  if (const Status entered = gate.enter(where, false); !entered) return entered.failure();
  const Result<Seen> seen = look(gate.folder.number(), file);
  if (!seen) return seen.failure();
  if (*seen != Seen::dead) return false;
  if (const Status removed = os::remove_name(gate.folder.number(), file.c_str()); !removed) return removed.failure();
  return true;
}

Result<os::Descriptor> connect_under(const NamesFolder& where, const std::string& file, std::uint64_t deadline_ns) {
  const Result<os::Descriptor> folder = where.open(false);
  if (!folder)
    return folder.failure().code == ErrorCode::not_found ? Failure{ErrorCode::not_found, 0, "no process listens under that name"}
                                                         : folder.failure();
  const Result<os::Descriptor> name = os::open_socket_name(folder->number(), file.c_str());
  if (!name) return name.failure();
  const Result<os::FileFacts> facts = os::facts_of(name->number());
  if (!facts) return facts.failure();
  if (!facts->is_socket) return Failure{ErrorCode::untrusted, 0, "what is there is not a socket"};
  if (facts->user != os::user_id()) return Failure{ErrorCode::untrusted, 0, "the socket belongs to another user"};
  Result<os::Descriptor> made = os::connect_to(name->number(), deadline_ns);
  if (!made && made.failure().code == ErrorCode::not_found) {
    (void)remove_dead(where, file).ok();
    where.remove_if_empty();
  }
  return made;
}

// Calls `see(folder, name, file)` for each name in the folder; not at all when there is no folder.
template <class See>
void for_each_listener(const NamesFolder& where, See see) {
  const Result<os::Descriptor> folder = where.open(false);
  if (!folder && folder.failure().code == ErrorCode::not_found) return;
  if (!folder) throw_name_failure(folder.failure(), "listing the listeners of", where.path());
  for (const std::string& file : value_or_throw(os::names_in(folder->number()), "listing listeners")) {
    if (file.starts_with(kPrefix)) see(folder->number(), file.substr(kPrefix.size()), file);
  }
}

}  // namespace

struct Listener::State {
  os::OwnDescriptor socket;
  const os::Origin origin;
  NamesFolder folder;
  std::string file;
  os::FileFacts facts;  // of the name

  Status open() {
    for (int i = 0; i < kNameTries; ++i) {
      GatedFolder gate;
      const Status entered = gate.enter(folder, true);
      if (!entered && entered.failure().code == ErrorCode::not_found) continue;
      if (!entered) return entered;
      Result<os::Descriptor> made = listen_under(gate.folder.number(), file);
      if (!made && made.failure().code == ErrorCode::not_found && i + 1 < kNameTries) continue;
      if (!made) return made.failure();
      const Result<os::FileFacts> found = os::facts_of_name(gate.folder.number(), file.c_str());
      if (!found) return found.failure();
      facts = *found;
      socket.set(std::move(*made));
      return {};
    }
    return Failure{ErrorCode::device_error, 0, "the folder is made and removed too quickly"};
  }

  // The name goes first: who no longer finds it is told at once that nobody is there.
  ~State() {
    if (!socket || origin.is_inherited()) return;
    {
      GatedFolder gate;
      if (!gate.enter(folder, false)) return;
      const Result<os::FileFacts> now = os::facts_of_name(gate.folder.number(), file.c_str());
      if (now && now->same_file(facts)) (void)os::remove_name(gate.folder.number(), file.c_str()).ok();
    }
    folder.remove_if_empty();
  }
};

Listener::Listener(std::string_view name) : state_(std::make_unique<State>()) {
  require_name(name, "listening for channels");
  state_->file = file_name(name);
  const Status opened = state_->open();
  if (opened) return;
  state_->folder.remove_if_empty();
  throw_name_failure(opened.failure(), "listening for channels under", name, {}, advice_for(opened.failure().code, kOfListeners));
}
Listener::Listener(Listener&& other) noexcept = default;
Listener& Listener::operator=(Listener&& other) noexcept = default;
Listener::~Listener() = default;

Channel Listener::accept(std::chrono::milliseconds patience) {
  constexpr const char* kAsked = "waiting for a channel";
  if (state_ == nullptr || !state_->socket)
    throw_share_failure(
        {ErrorCode::fork_unsafe, 0, "the listener is closed here: it was moved from, or belongs to the process that forked"}, kAsked, {},
        "make a listener in this process");
  return Channel::adopt(value_or_throw(os::accept_from(state_->socket.number(), os::deadline_after(patience)), kAsked).take());
}
int Listener::descriptor() const noexcept { return state_ == nullptr ? -1 : state_->socket.number(); }

Channel Channel::connect(std::string_view name, std::chrono::milliseconds patience) {
  require_name(name, "connecting to a channel");
  Result<os::Descriptor> made = connect_under(NamesFolder(), file_name(name), os::deadline_after(patience));
  if (!made) throw_name_failure(made.failure(), "connecting to", name, {}, advice_for(made.failure().code, kOfListeners));
  return adopt(made->take());
}

std::vector<NamedListener> list_listeners() {
  std::vector<NamedListener> all;
  for_each_listener(NamesFolder(), [&](int folder, const std::string& name, const std::string& file) {
    const Result<Seen> seen = look(folder, file);
    if (seen && (*seen == Seen::alive || *seen == Seen::dead)) all.push_back({name, *seen == Seen::alive});
  });
  return all;
}

std::vector<std::string> reap_listeners() {
  std::vector<std::string> removed;
  const NamesFolder where;
  for_each_listener(where, [&](int, const std::string& name, const std::string& file) {
    if (const Result<bool> done = remove_dead(where, file); done && *done) removed.push_back(name);
  });
  (void)remove_dead(where, kUnnamed).ok();
  where.remove_if_empty();
  return removed;
}

}  // namespace berth
