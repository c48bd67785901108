// SPDX-License-Identifier: Apache-2.0
#include "memory/space/page_state.h"

namespace berth::internal::memory {

PageView PageState::view() const noexcept {
  const PageFigures& figures = accounts.figures();
  return {.rules = map.rules(),
          .parts = {&map.part(PagePart::slabs), &map.part(PagePart::large)},
          .borders = &map.borders(),
          .base = reinterpret_cast<std::uintptr_t>(map.range().base),
          .split = map.range().split,
          .committed = figures.committed,
          .promised = accounts.promised(),
          .live = figures.live,
          .peak_live = figures.peak_live,
          .room = accounts.room(),
          .handed_out = accounts.handed_out(),
          .moved_edges = accounts.moved_edges(),
          .cuts_matter = accounts.cuts_matter(),
          .churns = accounts.churns(),
          .echo_room = echoes.room()};
}

std::string PageState::audit() const {
  if (std::string wrong = map.audit(); !wrong.empty()) return wrong;
  std::size_t live = 0;
  std::size_t held = 0;
  std::size_t moving = 0;
  for (const PagePart part : {PagePart::slabs, PagePart::large}) {
    for (const PoolExtent* e = map.part(part).front(); e != nullptr; e = e->next) {
      live += e->state == ExtentState::live ? e->bytes : 0;
      held += e->state == ExtentState::cached || e->state == ExtentState::live ? e->bytes : 0;
      moving += e->state == ExtentState::transit ? e->bytes : 0;
    }
  }
  if (std::string wrong = accounts.audit(live, held, moving); !wrong.empty()) return wrong;
  return echoes.audit();
}

}  // namespace berth::internal::memory
