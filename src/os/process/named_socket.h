// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "berth/base/result.h"
#include "os/file/descriptor.h"

// Unix domain sockets (os/process/socket.h) whose names are files in a folder of the user's own. Who may reach the
// folder may connect; a name stays when its process dies, and the kernel says that nobody is behind it. Reached
// through /proc/self/fd, so that neither the folder's path nor the name is bounded by the 108 bytes of a socket's
// address. Any thread.
namespace berth::internal::os {

// Opens the file of a name, to look at it or to connect: it cannot be read. Never follows a link.
Result<Descriptor> open_socket_name(int folder, const char* name) noexcept;

// Listens at a new name, accessible to this user alone whatever the umask. `already_exists` when it is taken;
// `not_found` when the folder was removed.
Result<Descriptor> listen_at(int folder, const char* name) noexcept;

// Connects to the socket behind the file. `not_found`: nobody listens there. `timeout`: its queue stays full until
// the deadline.
Result<Descriptor> connect_to(int file, std::uint64_t deadline_ns) noexcept;

// Whether a process has the socket behind the file. Leaves no trace there. Unknown counts as yes.
bool is_listened_to(int file) noexcept;

// Locks the folder, for as long as the descriptor's description is open, or until unlock_folder. False: another has
// it. Excludes all who ask, and nobody else.
Result<bool> try_lock_folder(int folder) noexcept;
void unlock_folder(int folder) noexcept;

}  // namespace berth::internal::os
