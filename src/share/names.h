// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <string>
#include <string_view>
#include <vector>

#include "berth/base/error.h"
#include "berth/base/result.h"
#include "os/file/own_descriptor.h"

// The names of shared storages and listeners, and the folder that they are files in: of this user alone, and
// checked each time, since another user may have made it first. It is not kept open: it may be removed when it is
// empty, and made again. Any thread.
//
//     NAME            a named storage (share/named_file.h)
//     .listen-NAME    the socket of a listener (share/listener.cc)
//     .listen         such a socket before it has its name
namespace berth::internal::share {

// Throws ArgumentError(invalid_name) for an invalid name: see share/named.h.
void require_name(std::string_view name, const char* asked);
bool is_name(std::string_view name) noexcept;

std::string fresh_name();  // 128 random bits

class NamesFolder {
 public:
  NamesFolder();  // as the environment says now

  const std::string& path() const noexcept { return path_; }
  // `make` creates it if needed, else `not_found`.
  Result<os::Descriptor> open(bool make) const noexcept;
  // No effect when it is not empty, or was named by BERTH_SHM_DIR, so that it is not berth's to remove.
  void remove_if_empty() const noexcept;

 private:
  std::string path_;
  bool was_given_ = false;
};

constexpr std::chrono::milliseconds kGatePatience{1000};  // for a process that was stopped while it has the gate
constexpr int kNameTries = 16;                            // a name, or the folder, may be removed and made meanwhile

// Throws a failure with names: with other advice than `help` when the folder itself is the cause.
[[noreturn]] void throw_name_failure(const Failure& failure, const char* asked, std::string_view name, std::vector<Fact> facts = {},
                                     std::string help = {});

}  // namespace berth::internal::share
