// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "berth/export.h"

// Call sites. A function that creates something takes `Site site = Site::here()` as its last argument, and so
// learns where in the user's code it was called, at the cost of passing three constants. A site is interned the
// first time it is recorded: records and reports carry a four-byte `SiteId`.
namespace berth {

struct Site {
  const char* file = nullptr;  // string literals: never freed
  const char* function = nullptr;
  std::uint32_t line = 0;

  static constexpr Site here(const char* file = __builtin_FILE(), const char* function = __builtin_FUNCTION(),
                             std::uint32_t line = __builtin_LINE()) noexcept {
    return {file, function, line};
  }
};

// An interned site. 0 is "unknown".
struct SiteId {
  std::uint32_t value = 0;
  friend constexpr bool operator==(SiteId, SiteId) = default;
};

// Interning never fails: past 65,535 different sites it returns "unknown". Any thread; lock-free unless the
// site is new.
BERTH_EXPORT SiteId intern(const Site& site) noexcept;
BERTH_EXPORT Site site_of(SiteId id) noexcept;

// "decoder.cc:118 (grow)", without the directory; "unknown" for 0.
BERTH_EXPORT std::string to_string(SiteId id);

// Where a call came from, as far as that is known: the site that was passed with it, and the return addresses
// on the stack. A free has only the return addresses: passing a site with each free would cost too much.
struct CallSite {
  static constexpr std::size_t kMostFrames = 12;

  Site site = {};
  const void* frames[kMostFrames] = {};  // innermost first, null-terminated unless full

  explicit operator bool() const noexcept { return site.file != nullptr || frames[0] != nullptr; }
};

}  // namespace berth
