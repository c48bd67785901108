// SPDX-License-Identifier: Apache-2.0
#include "berth/record/site.h"

#include <functional>
#include <string_view>

#include "base/text.h"
#include "record/interner.h"

namespace berth {

using namespace internal;
using namespace internal::record;

namespace {

// Sites are compared by the addresses of their string literals: fast, and at worst one source line gets two
// numbers.
struct SiteTraits {
  static std::size_t hash(const Site& site) noexcept {
    return (reinterpret_cast<std::uintptr_t>(site.file) * 31 + reinterpret_cast<std::uintptr_t>(site.function)) * 0x9e3779b97f4a7c15ULL >>
               32 ^
           std::size_t{site.line} * 2654435761U;
  }
  static bool equal(const Site& a, const Site& b) noexcept { return a.file == b.file && a.line == b.line && a.function == b.function; }
};

using Sites = Interner<Site, SiteTraits>;

// nullptr when the heap is exhausted. Never destroyed: records may be made during static destruction.
Sites* sites() noexcept { return made_once<Sites>(); }

}  // namespace

SiteId intern(const Site& site) noexcept {
  auto* const table = site.file == nullptr ? nullptr : sites();
  return table == nullptr ? SiteId{} : SiteId{table->intern(site)};
}

Site site_of(SiteId id) noexcept {
  // an id comes from the table, so it exists
  const Site* const site = id.value == 0 ? nullptr : sites()->key(id.value);
  return site == nullptr ? Site{} : *site;
}

std::string to_string(SiteId id) {
  const Site site = site_of(id);
  if (site.file == nullptr) return "unknown";
  const std::string_view path = site.file;
  const std::size_t slash = path.find_last_of('/');
  const std::string place = text::join(slash == std::string_view::npos ? path : path.substr(slash + 1), ':', site.line);
  return site.function == nullptr ? place : text::join(place, " (", std::string_view(site.function), ')');
}

}  // namespace berth
