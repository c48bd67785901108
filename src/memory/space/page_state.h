// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string>

#include "memory/space/echoes.h"
#include "memory/space/extent_map.h"
#include "memory/space/page_accounts.h"
#include "memory/space/page_view.h"

// The state of a pool's pages: where each extent is, how much there is, and which old addresses are still in
// use. Decisions read it through a view; Space and FillSteps change it. Not thread-safe: the pool locks.
namespace berth::internal::memory {

struct PageState {
  PageState(const PageRules& rules, Budget& budget, Decay& decay) noexcept : map(rules), accounts(budget, decay) {}

  // REQUIRES: open, here and below.
  PageView view() const noexcept;

  // [begin, begin + bytes) of a cached extent. REQUIRES: Extents::kNodesPerCut nodes are reserved.
  PoolExtent* make_live(PoolExtent* from, std::size_t begin, std::size_t bytes) noexcept {
    PoolExtent* const made = map.make_live(from, begin, bytes);
    accounts.hand_out(bytes);
    return made;
  }

  std::string audit() const;

  ExtentMap map;
  PageAccounts accounts;
  Echoes echoes;
};

}  // namespace berth::internal::memory
